// guava: BloomFilter of Google's Java library, strategy MURMUR128_MITZ_64, funnel of raw bytes or UTF-8 strings.
//
//   h1, h2 = the two words of murmur3_x64_128(key, seed 0)
//   k times:  bit = (h1 & 0x7FFF...F) % m;  h1 += h2  (mod 2^64)
//
// Bit i is bit i % 64 of word i / 64. With little-endian words this is bloomery's order; Guava's writeTo stores words
// as big-endian.
#include "hash/murmur3.hpp"
#include "math/rates.hpp"
#include "schemes/schemes.hpp"

#include <bloomery/error.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/sizing.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace bloomery {
namespace {

constexpr std::uint64_t word_bits = 64;
constexpr std::uint64_t most_words = 0x7FFFFFFF;  // a Java array's length

void check(const geometry& g) {
  check_scheme_geometry(g, most_words * word_bits);
  if (g.bits % word_bits != 0) {
    throw error(errc::invalid_argument, {"invalid number of bits for a Guava filter", "geometry", "a multiple of 64",
                                         std::to_string(g.bits), ""});
  }
}

geometry geometry_for(std::uint64_t capacity, double target_fpr) {
  const geometry g = floor_round_geometry(capacity, target_fpr);
  check(g);
  return g;
}

void positions(std::string_view key, const geometry& g, std::uint64_t /*seed*/, std::uint64_t* out) {
  key_hash hash = hashes::murmur3_x64_128(key, 0);
  for (std::uint32_t i = 0; i < g.probes; ++i) {
    out[i] = (hash.hash64 & 0x7FFFFFFFFFFFFFFF) % g.bits;
    hash.hash64 += hash.high64;
  }
}

// The FPR that double hashing adds to that of independent probes: about 6 n / m^2 at a fill ratio of 1/2.
//
// A key whose bits are the same progression h1 + i h2 modulo m, shifted by s steps in either direction or reversed,
// sets k - s of the k bits at once. For each s this holds for two of m^2 keys. The part already counted by the formula
// for independent bits, where such a key sets exactly one bit or none, is subtracted.
long double double_hashing_excess(const geometry& g, std::uint64_t keys) {
  const auto m = static_cast<long double>(g.bits);
  const auto n = static_cast<long double>(keys);
  const std::uint32_t k = g.probes;
  const long double fill = -std::expm1(n * k * std::log1p(-1 / m));
  const long double all = std::pow(fill, static_cast<long double>(k));
  long double rest = 1;
  long double sum = 0;
  for (std::uint32_t s = 0; s < k; ++s, rest *= fill) {
    sum += (s == 0 ? 2 : 4) * (rest - all * (1 + (k - s) * (1 / fill - 1)));
  }
  return std::clamp(n / (m * m) * sum, 0.0L, 1.0L);
}

double expected_fpr(const geometry& g, std::uint64_t keys) {
  if (keys == 0) return 0;
  return static_cast<double>(rates::either(rates::classic(g.bits, g.probes, keys), double_hashing_excess(g, keys)));
}

double current_fpr(const geometry& g, const scheme_bits& seen) {
  if (seen.ones == 0) return 0;
  const double keys = layouts::classic::keys_from_zeros(g, std::max<std::uint64_t>(g.bits - seen.ones, 1));
  const long double fill = static_cast<long double>(seen.ones) / static_cast<long double>(g.bits);
  return static_cast<double>(rates::either(std::pow(fill, static_cast<long double>(g.probes)),
                                           double_hashing_excess(g, static_cast<std::uint64_t>(std::llround(keys)))));
}

}  // namespace

constinit const scheme guava_scheme = {.name = "guava",
                                       .origin = "Guava's BloomFilter (Java), MURMUR128_MITZ_64",
                                       .geometry_for = geometry_for,
                                       .check = check,
                                       .positions = positions,
                                       .expected_fpr = expected_fpr,
                                       .current_fpr = current_fpr};

}  // namespace bloomery
