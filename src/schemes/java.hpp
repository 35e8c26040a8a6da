// Sizes in whole 64-bit words and chains of 32-bit hashes, common to the schemes of Java libraries.
#pragma once

#include <bloomery/detail/geometry.hpp>
#include <bloomery/scheme.hpp>

#include <cstdint>

namespace bloomery::java {

/// @throws error  invalid_argument, too_large: not a whole number of words of a Java array
void check(const geometry& g);

/// The rule of Guava and Spark; see floor_round_geometry().
geometry geometry_for(std::uint64_t capacity, double target_fpr);

/// c = first + i step (mod 2^32), inverted if negative, % m, for i = 1 .. k. This selects only the first 2^31 bits.
void positions_of_31_bits(std::uint32_t first, std::uint32_t step, const geometry& g, std::uint64_t* out);

double expected_fpr_of_31_bits(const geometry& g, std::uint64_t keys);
double current_fpr_of_31_bits(const geometry& g, const scheme_bits& seen);
bit_range favoured_of_31_bits(const geometry& g);

}  // namespace bloomery::java
