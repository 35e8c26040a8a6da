// spark and spark2: BloomFilter of Apache Spark (Java), versions 1 and 2 of its format, for strings and byte arrays.
//
//   h1 = mm(key, s),  h2 = mm(key, h1)         mm: Spark's variant of murmur3_x86_32; s: 0 in version 1, a seed in 2
//   version 1:  c = h1 + i h2 (mod 2^32);  c = ~c if c < 0;  bit = c % m                          i = 1 .. k
//   version 2:  c = (2^31 - 1) h1, 64 bits;  k times:  c += h2;  c = ~c if c < 0;  bit = c % m
//
// mm mixes each byte after the last whole word as a word of its own, extended with its sign. In version 1 no bit beyond
// 2^31 is ever set: a larger filter keeps its FPR only for as many keys as 2^31 bits do. Bit i is bit i % 64 of word
// i / 64. With little-endian words this is bloomery's order; the format stores words as big-endian.
#include "hash/murmur3.hpp"
#include "math/rates.hpp"
#include "schemes/java.hpp"
#include "schemes/schemes.hpp"

#include <cmath>
#include <cstdint>

namespace bloomery {
namespace {

void positions(std::string_view key, const geometry& g, const hash_choice& /*choice*/, std::uint64_t* out) {
  const std::uint32_t first = hashes::murmur3_of_spark(key, 0);
  java::positions_of_31_bits(first, hashes::murmur3_of_spark(key, first), g, out);
}

void positions2(std::string_view key, const geometry& g, const hash_choice& choice, std::uint64_t* out) {
  const std::uint32_t first = hashes::murmur3_of_spark(key, static_cast<std::uint32_t>(choice.seed));
  const auto step = static_cast<std::int32_t>(hashes::murmur3_of_spark(key, first));
  std::int64_t sum = std::int64_t{static_cast<std::int32_t>(first)} * 0x7FFFFFFF;
  for (std::uint32_t i = 0; i < g.probes; ++i) {
    sum += step;
    if (sum < 0) sum = ~sum;
    out[i] = static_cast<std::uint64_t>(sum) % g.bits;
  }
}

double expected_fpr2(const geometry& g, std::uint64_t keys) {
  return with_short_cycles(with_double_hashing(rates::classic(g.bits, g.probes, keys), g, keys), g, keys);
}

double current_fpr2(const geometry& g, const scheme_bits& seen) {
  const std::uint64_t keys = keys_of(g, seen);
  return with_short_cycles(with_double_hashing(independent_current_fpr(g, seen), g, keys), g, keys);
}

}  // namespace

constinit const scheme spark_scheme = {.name = "spark",
                                       .origin = "Spark's BloomFilter (Java), version 1",
                                       .geometry_for = java::geometry_for,
                                       .check = java::check,
                                       .positions = positions,
                                       .expected_fpr = java::expected_fpr_of_31_bits,
                                       .current_fpr = java::current_fpr_of_31_bits,
                                       .relative_error = 0.05,
                                       .error_of_bits = 2,
                                       .favoured = java::favoured_of_31_bits};

constinit const scheme spark2_scheme = {.name = "spark2",
                                        .origin = "Spark's BloomFilter (Java), version 2",
                                        .geometry_for = java::geometry_for,
                                        .check = java::check,
                                        .positions = positions2,
                                        .expected_fpr = expected_fpr2,
                                        .current_fpr = current_fpr2,
                                        .relative_error = 0.05,
                                        .error_of_bits = 7};

}  // namespace bloomery
