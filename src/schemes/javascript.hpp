// Enhanced double hashing with two 32-bit hashes, common to the schemes of JavaScript libraries.
//
//   bit i = (a + i b + (i^3 - i) / 6) mod m        i = 0 .. k - 1
//
// [Dillinger & Manolios 2004, "Bloom filters in probabilistic verification"]
#pragma once

#include <bloomery/detail/geometry.hpp>
#include <bloomery/scheme.hpp>

#include <cstdint>

namespace bloomery::javascript {

/// Positions are sums of 32-bit hashes. The libraries allow no larger filter, or cannot store it as JSON.
inline constexpr std::uint64_t most_bits = std::uint64_t{1} << 32;

/// A size as computed by a library. @throws error  too_large
geometry geometry_of(double bits, double probes);

void positions(std::uint64_t a, std::uint64_t b, const geometry& g, std::uint64_t* out);

double expected_fpr(const geometry& g, std::uint64_t keys);
double current_fpr(const geometry& g, const scheme_bits& seen);

}  // namespace bloomery::javascript
