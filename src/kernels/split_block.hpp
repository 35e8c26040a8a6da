// What every split-block kernel offers, and the choice among them. Same contract and same bits for all.
//
// A block is eight little-endian 32-bit words; a key's block and its bit in each word follow from the 64-bit `lo` of
// its hash (include/bloomery/layouts/split_block.hpp). Hashes come as pairs of 64-bit halves: lo of key i is hashes[2 *
// i].
#pragma once

#include <cstddef>
#include <cstdint>

namespace bloomery::kernels {

inline constexpr std::uint32_t split_block_salt[8] = {0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D,
                                                      0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31};

struct split_block_kernel {
  const char* name;
  bool (*supported)();  ///< by this CPU and its operating system

  /// Inserts `count` keys one after another; is_new is null or takes 1 or 0 for each.
  void (*insert)(std::uint8_t* bytes, std::uint64_t blocks, const std::uint64_t* hashes, std::size_t count,
                 std::uint8_t* is_new);

  /// Bit i%64 of bitmap[i/64] is the answer for key i; unused bits of the last word are 0.
  void (*has)(const std::uint8_t* bytes, std::uint64_t blocks, const std::uint64_t* hashes, std::size_t count,
              std::uint64_t* bitmap);
};

extern const split_block_kernel split_block_scalar;
extern const split_block_kernel split_block_avx2;

/// All kernels of this build, the slowest first.
inline constexpr const split_block_kernel* split_block_kernels[] = {
    &split_block_scalar,
#if defined(__x86_64__)
    &split_block_avx2,
#endif
};

/// Keys whose blocks are on their way from memory while one is worked on.
inline constexpr std::size_t split_block_in_flight = 32;

/// Byte offset of a key's block.
inline std::uint64_t split_block_offset(std::uint64_t lo, std::uint64_t blocks) {
  return (((lo >> 32) * blocks) >> 32) * 32;
}

}  // namespace bloomery::kernels
