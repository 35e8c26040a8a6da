// datasketches: the Bloom filter of Apache DataSketches (C++, Java, Python).
//
//   h0 = XXH64(key, seed),  h1 = XXH64(key, seed h0)
//   bit = ((h0 + i h1 mod 2^64) >> 1) % m        i = 1 .. k
//
// Bit i is bit i % 8 of byte i / 8, which is bloomery's order. m is a multiple of 64.
#include <bloomery/hash.hpp>

#include "math/rates.hpp"
#include "schemes/schemes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace bloomery {
namespace {

// The library itself does not read larger files: in C++ it computes the number of bits in 32 bits, and in Java the
// position of a bit.
constexpr std::uint64_t most_bits = (std::uint64_t{1} << 32) - 64;

void check(const geometry& g) { check_words(g, most_bits); }

// m = ceil(-n ln(p) / ln(2)^2), rounded up to whole words,  k = ceil(-ln(p) / ln(2)), as create_by_accuracy() in C++.
geometry geometry_for(std::uint64_t capacity, double target_fpr) {
  const double words = std::ceil(std::ceil(go_bits(capacity, target_fpr)) / 64);
  const double probes = std::ceil(-std::log(target_fpr) / std::log(2.0));
  const geometry g{64 * static_cast<std::uint64_t>(std::min(words, 0x1p57)), static_cast<std::uint32_t>(probes)};
  check(g);
  return g;
}

void positions(std::string_view key, const geometry& g, const hash_choice& choice, std::uint64_t* out) {
  std::uint64_t sum = xxh64{choice.seed}(key).hash64;
  const std::uint64_t step = xxh64{sum}(key).hash64;
  for (std::uint32_t i = 0; i < g.probes; ++i) {
    sum += step;
    out[i] = (sum >> 1) % g.bits;
  }
}

// The sums of a key are a progression modulo m, except for two effects:
//
// - If h1 is odd, the shift rounds every other sum down. Steps that return to their first bit need an even h1: 1/2 of
//   the keys. Two keys share a progression if both h1 are even, or both are odd and their sums are rounded alike: 3/8.
// - A sum that passes 2^64 moves by 2^63 modulo m, a step of order o, the odd part of m. About 2/k of the short cycles
//   are not affected; the others have as many bits as both steps together. 2/3 of the shared progressions remain. Both
//   shares are measured.
double with_dependent_probes(long double rate, const geometry& g, std::uint64_t keys) {
  const std::uint64_t odd_part = g.bits >> std::countr_zero(g.bits);
  const long double unshifted = std::min(1.0L, 2.0L / g.probes);
  rate = with_double_hashing(rate, g, keys, odd_part == 1 ? 0.375L : 0.25L);
  rate = with_short_cycles(rate, g, keys, unshifted / 2);
  return with_short_cycles(rate, g, keys, (1 - unshifted) / 2, odd_part);
}

double expected_fpr(const geometry& g, std::uint64_t keys) {
  return with_dependent_probes(rates::classic(g.bits, g.probes, keys), g, keys);
}

double current_fpr(const geometry& g, const scheme_bits& seen) {
  return with_dependent_probes(independent_current_fpr(g, seen), g, keys_of(g, seen));
}

}  // namespace

constinit const scheme datasketches_scheme = {.name = "datasketches",
                                              .origin = "Apache DataSketches (C++, Java, Python)",
                                              .geometry_for = geometry_for,
                                              .check = check,
                                              .positions = positions,
                                              .expected_fpr = expected_fpr,
                                              .current_fpr = current_fpr,
                                              .relative_error = 0.05,
                                              .error_of_bits = 2};

}  // namespace bloomery
