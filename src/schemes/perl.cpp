// perl: Bloom::Filter 1.2 of CPAN.
//
//   for each of k salts:  d = SHA1(key . salt);  bit = (XOR of d's five big-endian words) % m
//
// Perl's vec() numbers bits as bloomery does. Bloom::Filter takes its salts from rand(), and a stored filter contains
// them. Filters that bloomery makes have fixed salts: the salt of probe i = 0, 1, ... is the decimal text of i ("0",
// "1", ...), and with a seed other than 0 "<seed>.<i>" ("42.0", "42.1", ...). A Bloom::Filter with these salts has the
// same bits.
#include "hash/sha1.hpp"
#include "schemes/schemes.hpp"

#include <bloomery/sizing.hpp>

#include <string>

namespace bloomery {
namespace {

constexpr std::uint64_t most_bits = std::uint64_t{1} << 32;  // addressable by a 32-bit hash

void check(const geometry& g) { check_scheme_geometry(g, most_bits); }

geometry geometry_for(std::uint64_t capacity, double target_fpr) {
  const geometry g = searched_geometry(capacity, target_fpr);
  check(g);
  return g;
}

std::string salt_for(std::uint64_t seed, std::uint32_t probe) {
  return (seed == 0 ? "" : std::to_string(seed) + '.') + std::to_string(probe);
}

void positions(std::string_view key, const geometry& g, const hash_choice& choice, std::uint64_t* out) {
  for (std::uint32_t i = 0; i < g.probes; ++i) {
    std::string salted(key);
    salted += choice.salts.empty() ? salt_for(choice.seed, i) : choice.salts[i];
    const auto d = hashes::sha1(salted);
    out[i] = (d[0] ^ d[1] ^ d[2] ^ d[3] ^ d[4]) % g.bits;
  }
}

double current_fpr(const geometry& g, const scheme_bits& seen) { return remainder_current_fpr(g, seen); }

bit_range favoured(const geometry& g) { return remainder_favoured(g, 0); }

}  // namespace

constinit const scheme perl_scheme = {.name = "perl",
                                      .origin = "Bloom::Filter 1.2 (Perl)",
                                      .geometry_for = geometry_for,
                                      .check = check,
                                      .positions = positions,
                                      .expected_fpr = remainder_rate_of_32_bits,
                                      .current_fpr = current_fpr,
                                      .favoured = favoured,
                                      .salt_for = salt_for};

}  // namespace bloomery
