// guava32: BloomFilter of Google's Java library, strategy MURMUR128_MITZ_32, which versions before 11.0.2 used.
//
//   a, b = the lower and the upper half of the first word of murmur3_x64_128(key, seed 0), as signed 32-bit numbers
//   c = a + i b (mod 2^32);  c = ~c if c < 0;  bit = c % m        i = 1 .. k
//
// No bit beyond 2^31 is ever set: a larger filter keeps its FPR only for as many keys as 2^31 bits do. Bits and words
// are those of scheme guava.
#include "hash/murmur3.hpp"
#include "schemes/java.hpp"
#include "schemes/schemes.hpp"

#include <cstdint>

namespace bloomery {
namespace {

void positions(std::string_view key, const geometry& g, const hash_choice& /*choice*/, std::uint64_t* out) {
  const std::uint64_t word = hashes::murmur3_x64_128(key, 0).hash64;
  java::positions_of_31_bits(static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32), g, out);
}

}  // namespace

constinit const scheme guava32_scheme = {.name = "guava32",
                                         .origin = "Guava's BloomFilter (Java), MURMUR128_MITZ_32",
                                         .geometry_for = java::geometry_for,
                                         .check = java::check,
                                         .positions = positions,
                                         .expected_fpr = java::expected_fpr_of_31_bits,
                                         .current_fpr = java::current_fpr_of_31_bits,
                                         .relative_error = 0.05,
                                         .error_of_bits = 2,
                                         .favoured = java::favoured_of_31_bits};

}  // namespace bloomery
