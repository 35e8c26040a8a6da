// Batch lookups in fuse filters, in plain C++ and by vector instructions, with the answers of fuse::has
// (include/bloomery/detail/fuse.hpp). Like kernels.hpp, this file includes no other header of bloomery.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bloomery::kernels {

inline constexpr std::size_t fuse_group = 64;  // keys: one word of answers

/// The constants of the payload; src/layouts/fuse.cpp asserts that they are equal.
inline constexpr std::uint64_t fuse_header_bytes = 64;
inline constexpr std::uint64_t fuse_partition_bytes = 32;
inline constexpr std::uint64_t fuse_multiplier = 0x9E3779B97F4A7C15;

/// A checked payload.
struct fuse_cells {
  const std::uint8_t* payload;
  std::uint32_t partitions;
  unsigned width;  ///< bits of a fingerprint: 1 to 32
  bool fetch;      ///< prefetch the cells of the next group
};

/// Looks up `groups` times fuse_group keys: bit i%64 of bitmap[i/64] is the answer for key i.
using fuse_lookup = void (*)(const fuse_cells& at, const std::uint64_t* hash64s, std::size_t groups,
                             std::uint64_t* bitmap) noexcept;

/// In plain C++ (src/layouts/fuse.cpp).
extern const fuse_lookup fuse_lookup_plain;

/// For AVX-512 (F, CD, DQ, BW, VL), the features of the kernel set avx512. Null on other architectures.
extern const fuse_lookup fuse_lookup_avx512;

/// The function for the chosen kernel set.
fuse_lookup chosen_fuse_lookup();

}  // namespace bloomery::kernels
