// guava: BloomFilter of Google's Java library, strategy MURMUR128_MITZ_64, funnel of raw bytes or UTF-8 strings.
//
//   h1, h2 = the two words of murmur3_x64_128(key, seed 0)
//   k times:  bit = (h1 & 0x7FFF...F) % m;  h1 += h2  (mod 2^64)
//
// Bit i is bit i % 64 of word i / 64. With little-endian words this is bloomery's order; Guava's writeTo stores words
// as big-endian.
#include "hash/murmur3.hpp"
#include "math/rates.hpp"
#include "schemes/java.hpp"
#include "schemes/schemes.hpp"

namespace bloomery {
namespace {

void positions(std::string_view key, const geometry& g, const hash_choice& /*choice*/, std::uint64_t* out) {
  key_hash hash = hashes::murmur3_x64_128(key, 0);
  for (std::uint32_t i = 0; i < g.probes; ++i) {
    out[i] = (hash.hash64 & 0x7FFFFFFFFFFFFFFF) % g.bits;
    hash.hash64 += hash.high64;
  }
}

double expected_fpr(const geometry& g, std::uint64_t keys) {
  return with_progressions(rates::classic(g.bits, g.probes, keys), g, keys);
}

double current_fpr(const geometry& g, const scheme_bits& seen) {
  return with_progressions(independent_current_fpr(g, seen), g, keys_of(g, seen));
}

}  // namespace

constinit const scheme guava_scheme = {.name = "guava",
                                       .origin = "Guava's BloomFilter (Java), MURMUR128_MITZ_64",
                                       .geometry_for = java::geometry_for,
                                       .check = java::check,
                                       .positions = positions,
                                       .expected_fpr = expected_fpr,
                                       .current_fpr = current_fpr,
                                       .relative_error = 0.05,
                                       .error_of_bits = 5};

}  // namespace bloomery
