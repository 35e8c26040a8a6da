// The part of lookups in ribbon filters that takes most of their time, in plain C++ and by vector instructions: the
// combination of slots, equal to ribbon::combined (include/bloomery/detail/ribbon.hpp). Like kernels.hpp, this file
// includes no other header of bloomery.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bloomery::kernels {

inline constexpr std::size_t ribbon_group = 32;  // keys combined by one call

/// The slots of a group of keys: ribbon::place, an array for each member.
struct ribbon_slots {
  std::uint64_t word[ribbon_group];   ///< of the block with the first slot, counted from the payload's first word
  std::uint64_t shift[ribbon_group];  ///< the number of the first slot in this block
  std::uint64_t coefficients[ribbon_group];
};

/// Writes the exclusive or of the slots with coefficient 1 to `values`, for the first `count` keys of the group.
///
/// @param width  bits of a slot, 1 to 32
using ribbon_combine = void (*)(const std::uint8_t* payload, unsigned width, const ribbon_slots& slots,
                                std::size_t count, std::uint32_t* values) noexcept;

/// In plain C++ (src/layouts/ribbon.cpp).
extern const ribbon_combine ribbon_combine_plain;

/// For AVX-512 (F, CD, DQ, BW, VL), the features of the kernel set avx512. Null on other architectures.
extern const ribbon_combine ribbon_combine_avx512;

/// The function for the chosen kernel set.
ribbon_combine chosen_ribbon_combine();

}  // namespace bloomery::kernels
