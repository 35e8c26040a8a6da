// bits_and_blooms: the Bloom filter of bits-and-blooms (Go), version 3.
//
//   h0, h1 = the two words of murmur3_x64_128(key, seed 0);  h2, h3 = the same of the key followed by the byte 1
//   bit i = (h[i % 2] + i h[2 + (i + i % 2) % 4 / 2]  mod 2^64) % m        i = 0 .. k - 1
//
// Bit i is bit i % 64 of word i / 64. With little-endian words this is bloomery's order; WriteTo stores words as
// big-endian.
#include "hash/murmur3.hpp"
#include "schemes/schemes.hpp"

#include <cmath>
#include <string>

namespace bloomery {
namespace {

void check(const geometry& g) { check_scheme_geometry(g, most_go_bits); }

// m = ceil(-n ln(p) / ln(2)^2),  k = ceil(ln(2) m / n)
geometry geometry_for(std::uint64_t capacity, double target_fpr) {
  return ceil_probes_geometry(capacity, std::ceil(go_bits(capacity, target_fpr)));
}

void positions(std::string_view key, const geometry& g, const hash_choice& /*choice*/, std::uint64_t* out) {
  const key_hash plain = hashes::murmur3_x64_128(key, 0);
  const key_hash longer = hashes::murmur3_x64_128(std::string(key) + '\1', 0);
  const std::uint64_t starts[] = {plain.hash64, plain.high64};
  const std::uint64_t steps[] = {longer.hash64, longer.high64};
  for (std::uint32_t i = 0; i < g.probes; ++i) out[i] = (starts[i % 2] + i * steps[(i + i % 2) % 4 / 2]) % g.bits;
}

}  // namespace

constinit const scheme bits_and_blooms_scheme = {.name = "bits_and_blooms",
                                                 .origin = "bits-and-blooms/bloom 3 (Go)",
                                                 .geometry_for = geometry_for,
                                                 .check = check,
                                                 .positions = positions,
                                                 .expected_fpr = independent_rate,
                                                 .current_fpr = independent_current_fpr,
                                                 .relative_error = 0.05,
                                                 .error_of_bits = 3};

}  // namespace bloomery
