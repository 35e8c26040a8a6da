// Sizes in whole 64-bit words and chains of 32-bit hashes, common to the schemes of Java libraries.
#include "schemes/java.hpp"

#include "schemes/schemes.hpp"

#include <bloomery/sizing.hpp>

#include <algorithm>

namespace bloomery::java {
namespace {

constexpr std::uint64_t most_words = 0x7FFFFFFF;  // an array's length
constexpr std::uint64_t hashes = std::uint64_t{1} << 31;

// Most sums leave the range of 31 bits and are reflected. Measured: 0.9 for 7 probes, 0.6 for 14, 0.4 for 20.
constexpr long double share_in_range = 0.6L;

// The bits that a chain can select.
geometry reached(const geometry& g) { return {std::min(g.bits, hashes), g.probes}; }

}  // namespace

void check(const geometry& g) { check_words(g, most_words * 64); }

geometry geometry_for(std::uint64_t capacity, double target_fpr) {
  const geometry g = floor_round_geometry(capacity, target_fpr);
  check(g);
  return g;
}

void positions_of_31_bits(std::uint32_t first, std::uint32_t step, const geometry& g, std::uint64_t* out) {
  std::uint32_t sum = first;
  for (std::uint32_t i = 0; i < g.probes; ++i) {
    sum += step;
    out[i] = ((sum >> 31) != 0 ? ~sum : sum) % g.bits;
  }
}

double expected_fpr_of_31_bits(const geometry& g, std::uint64_t keys) {
  return with_double_hashing(remainder_rate(reached(g), keys, hashes), reached(g), keys, share_in_range);
}

double current_fpr_of_31_bits(const geometry& g, const scheme_bits& seen) {
  return with_double_hashing(remainder_current_fpr(g, seen, hashes), reached(g), keys_of(reached(g), seen),
                             share_in_range);
}

bit_range favoured_of_31_bits(const geometry& g) { return remainder_favoured(g, 0, hashes); }

}  // namespace bloomery::java
