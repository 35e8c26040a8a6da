// python: the Bloom filter class of Python tutorials, based on the packages bitarray and mmh3.
//
//   k times, i = 0, 1, ...:  bit = mmh3.hash(key, i) % m        (murmur3_x86_32 with seed i, signed; % never negative)
//
// By default a bitarray counts the bits of a byte from the top. The class is constructed from (m, k) and has no rule
// for (n, p), so here it gets the smallest size whose exact FPR is at most p.
#include "hash/murmur3.hpp"
#include "schemes/schemes.hpp"

#include <bloomery/layouts/classic.hpp>

namespace bloomery {
namespace {

// Above this size the bias of 2^32 hashes modulo m is large; bits beyond 2^32 are never set.
constexpr std::uint64_t most_bits = std::uint64_t{1} << 31;

void check(const geometry& g) { check_scheme_geometry(g, most_bits); }

geometry geometry_for(std::uint64_t capacity, double target_fpr) {
  const geometry g = layouts::classic::geometry_for(capacity, target_fpr);
  check(g);
  return g;
}

void positions(std::string_view key, const geometry& g, const hash_choice& /*choice*/, std::uint64_t* out) {
  const auto bits = static_cast<std::int64_t>(g.bits);
  for (std::uint32_t i = 0; i < g.probes; ++i) {
    const auto hash = static_cast<std::int32_t>(hashes::murmur3_x86_32(key, i));
    const std::int64_t remainder = hash % bits;
    const std::int64_t bit = remainder < 0 ? remainder + bits : remainder;
    out[i] = static_cast<std::uint64_t>(bit) ^ 7;
  }
}

// Hashes are signed; the smallest is -2^31.
double current_fpr(const geometry& g, const scheme_bits& seen) { return remainder_current_fpr(g, seen); }

bit_range favoured(const geometry& g) { return remainder_favoured(g, -(std::int64_t{1} << 31)); }

}  // namespace

constinit const scheme python_scheme = {.name = "python",
                                        .origin = "the Python class on bitarray and mmh3",
                                        .geometry_for = geometry_for,
                                        .check = check,
                                        .positions = positions,
                                        .expected_fpr = remainder_rate_of_32_bits,
                                        .current_fpr = current_fpr,
                                        .favoured = favoured,
                                        .from_top = true};

}  // namespace bloomery
