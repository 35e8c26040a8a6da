// guava: BloomFilter of Google's Java library, strategy MURMUR128_MITZ_64, funnel of raw bytes or UTF-8 strings.
//
//   h1, h2 = the halves of murmur3_x64_128(key, seed 0)
//   k times:  bit = (h1 & 0x7FFF...F) % m;  h1 += h2  (mod 2^64)
//
// Bit i is bit i % 64 of word i / 64. With little-endian words that is our own order; Guava's writeTo stores them big-endian.
#include "hashes/murmur3.hpp"
#include "rates.hpp"
#include "schemes/schemes.hpp"

#include <bloomery/error.hpp>
#include <bloomery/sizing.hpp>

#include <string>

namespace bloomery {
namespace {

constexpr std::uint64_t word_bits = 64;
constexpr std::uint64_t most_words = 0x7FFFFFFF;  // a Java array's length

void check(const geometry& g) {
  check_scheme_geometry(g, most_words * word_bits);
  if (g.bits % word_bits != 0) {
    throw error(errc::invalid_argument,
                {"bits of a Guava filter", "geometry", "a multiple of 64", std::to_string(g.bits), ""});
  }
}

geometry geometry_for(std::uint64_t capacity, double false_positive_rate) {
  const geometry g = floor_round_geometry(capacity, false_positive_rate);
  check(g);
  return g;
}

void positions(std::string_view key, const geometry& g, std::uint64_t /*seed*/, std::uint64_t* out) {
  key_hash hash = hashes::murmur3_x64_128(key, 0);
  for (std::uint32_t i = 0; i < g.probes; ++i) {
    out[i] = (hash.lo & 0x7FFFFFFFFFFFFFFF) % g.bits;
    hash.lo += hash.hi;
  }
}

double false_positive_rate(const geometry& g, std::uint64_t keys) {
  return static_cast<double>(rates::either(rates::classic(g.bits, g.probes, keys), rates::collision(0x1p128L, keys)));
}

}  // namespace

constinit const scheme guava_scheme = {.name = "guava",
                                       .origin = "Guava's BloomFilter (Java), MURMUR128_MITZ_64",
                                       .geometry_for = geometry_for,
                                       .check = check,
                                       .positions = positions,
                                       .false_positive_rate = false_positive_rate};

}  // namespace bloomery
