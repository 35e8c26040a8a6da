// bloom_filters: BloomFilter of the npm package bloom-filters, versions 2 and 3.
//
//   a, b = the low 32 bits of XXH64(key, seed + 1) and XXH64(key, seed + 2)        seeds modulo 2^32
//   bit i = (a + i b + (i^3 - i) / 6) % m                                          i = 0 .. k - 1
//
// The package numbers bits as bloomery does. It hashes strings as UTF-8. Seed 0 stands for the package's default seed.
// The package's own seed 0 is 2^32 here, which selects the same hashes.
#include "schemes/javascript.hpp"
#include "schemes/schemes.hpp"

#include <bloomery/hash.hpp>

#include <cmath>

namespace bloomery {
namespace {

constexpr std::uint64_t default_seed = 0x12'3456'7890;

void check(const geometry& g) { check_scheme_geometry(g, javascript::most_bits); }

// m = ceil(-n ln(p) / ln(2)^2),  k = ceil(m / n ln(2)), in the order of the package's operations.
geometry geometry_for(std::uint64_t capacity, double target_fpr) {
  const double bits = std::ceil(go_bits(capacity, target_fpr));
  return javascript::geometry_of(bits, std::ceil(bits / static_cast<double>(capacity) * std::log(2.0)));
}

void positions(std::string_view key, const geometry& g, const hash_choice& choice, std::uint64_t* out) {
  const std::uint64_t first = choice.seed == 0 ? default_seed : choice.seed;
  const auto hash = [&](std::uint64_t with) {
    return xxh64{.seed = static_cast<std::uint32_t>(with)}(key).hash64 & 0xFFFF'FFFF;
  };
  javascript::positions(hash(first + 1), hash(first + 2), g, out);
}

}  // namespace

constinit const scheme bloom_filters_scheme = {.name = "bloom_filters",
                                               .origin = "bloom-filters 2 and 3 (npm)",
                                               .geometry_for = geometry_for,
                                               .check = check,
                                               .positions = positions,
                                               .expected_fpr = javascript::expected_fpr,
                                               .current_fpr = javascript::current_fpr,
                                               .relative_error = 0.1,
                                               .error_of_bits = 0.5};

}  // namespace bloomery
