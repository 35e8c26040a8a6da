// Kernel sets: batch and single-key operations of the cache-line layouts, implemented per instruction set. All sets
// have the same contract and write the same bits. Read kernels/scalar.cpp first.
//
// A key is represented by its hash64. The layouts define its block and its bits within the block
// (include/bloomery/layouts/split_block.hpp, split_block512.hpp, blocked.hpp). This file and the kernel sets include no
// other headers of bloomery: the linker could use an inline function compiled for AVX-512 in the whole program.
#pragma once

#include "layouts/hash_constants.hpp"

#include <cstddef>
#include <cstdint>

namespace bloomery::kernels {

// Copies of the layouts' constants; src/kernels/dispatch.cpp asserts that they are equal.
inline constexpr std::uint32_t split_block_salt[8] = {0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D,
                                                      0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31};
inline constexpr std::uint64_t blocked_step = 0xD1342543DE82EF95;

/// How the words of `keys` represent keys.
enum class form {
  hashes,   ///< pairs: hash64 of key i is words[2 * i]
  hash64s,  ///< hash64 of key i is words[i]
  mixed,    ///< hash64 of key i is mix64(words[i] ^ whitening)
};

struct keys {
  const std::uint64_t* words;
  std::size_t count;
  std::uint64_t whitening;
  kernels::form form;
};

/// Whether blocks are prefetched, and into which cache.
enum class fetch {
  none,          ///< the filter fits into a core's private cache
  first_level,   ///< measured fastest on AMD processors
  second_level,  ///< for other processors, whose first level supports too few outstanding requests
};

/// An array of blocks.
struct blocks {
  std::uint8_t* bytes;  ///< of any alignment
  std::uint64_t count;
  std::uint32_t probes;
  kernels::fetch fetch;
};

struct layout_kernel {
  /// Inserts keys in order; is_new is null or receives 1 or 0 per key. Returns the number of new keys.
  std::uint64_t (*insert)(const blocks& at, const keys& what, std::uint8_t* is_new);

  /// Bit i%64 of bitmap[i/64] is the answer for key i; unused bits of the last word are 0.
  void (*has)(const blocks& at, const keys& what, std::uint64_t* bitmap);

  /// For one key, given its block.
  bool (*insert_one)(std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept;
  bool (*has_one)(const std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept;
};

/// Capacity of a partition's write buffer in keys: two cache lines.
inline constexpr std::size_t scatter_buffer = 16;

/// The output of scatter(): partition t receives the keys of blocks t << shift to ((t + 1) << shift) - 1.
struct partitions {
  std::uint64_t block_count;  ///< of the whole filter
  std::uint32_t shift;        ///< log2 of the blocks per partition
  bool split_rule;            ///< the block rule of split_block; false: that of split_block512
  std::uint64_t* buffers;     ///< scatter_buffer words each, aligned to 64 bytes
  std::uint32_t* used;        ///< number of words in each buffer
  std::uint64_t* regions;     ///< region_size words each, aligned to 64 bytes
  std::uint32_t* filled;      ///< number of words in each region
  std::size_t region_size;    ///< a multiple of scatter_buffer
};

/// Kernels that count set bits ("ones").
struct fill_kernel {
  std::uint64_t (*ones)(const std::uint8_t* bytes, std::size_t count);
  std::uint64_t (*common_ones)(const std::uint8_t* a, const std::uint8_t* b, std::size_t count);

  // Each function returns the ones of `count` blocks and writes a value per block to `out` that determines the block's
  // FPR: for the first two the product of the ones of its eight words, for blocked the ones of the block.
  std::uint64_t (*split_block)(const std::uint8_t* bytes, std::size_t count, std::uint64_t* out);
  std::uint64_t (*split_block512)(const std::uint8_t* bytes, std::size_t count, std::uint64_t* out);
  std::uint64_t (*blocked)(const std::uint8_t* bytes, std::size_t count, std::uint64_t* out);
};

/// A layer of a scalable filter, with layout split_block512.
struct line_layer {
  std::uint8_t* bytes;
  std::uint64_t lines;
};

/// Layers of a scalable filter, the newest first.
struct line_layers {
  const line_layer* layers;
  std::size_t count;
  std::size_t far_count;  ///< number of leading layers that do not fit into a core's private cache: prefetched
};

struct kernel_set {
  const char* name;
  const char* needs;    ///< required processor features, as in /proc/cpuinfo
  bool (*supported)();  ///< by this processor and its operating system
  layout_kernel split_block;
  layout_kernel split_block512;
  layout_kernel blocked;

  /// Writes the hash64 of each key.
  void (*hash64s)(const keys& what, std::uint64_t* hash64s);

  /// Appends keys to the regions of their partitions; full buffers are written with non-temporal stores. Stops if a
  /// region is full; returns the number of keys processed.
  std::size_t (*scatter)(const partitions& into, const std::uint64_t* hash64s, std::size_t count);

  /// Copies each hash64 to `lower` if it is at most `last_lower`, otherwise to `upper`, in order; both have room for
  /// `count` words. Returns the number of words in `lower`.
  std::size_t (*split)(const std::uint64_t* hash64s, std::size_t count, std::uint64_t last_lower, std::uint64_t* lower,
                       std::uint64_t* upper);

  fill_kernel fill_statistics;

  /// Whether any layer has the key. The cache lines in all far layers are prefetched before the first one is read. The
  /// key has the same bits in each layer, which are computed once.
  bool (*layers_have)(const line_layers& at, std::uint64_t hash64) noexcept;
};

extern const kernel_set scalar;
extern const kernel_set avx2;
extern const kernel_set avx512;
extern const kernel_set neon;

/// All kernel sets of this build, the slowest first.
inline constexpr const kernel_set* kernel_sets[] = {
    &scalar,
#if defined(__x86_64__)
    &avx2,
    &avx512,
#elif defined(__aarch64__)
    &neon,
#endif
};

// The single-key functions of the table, by name, for direct calls.
#define BLOOMERY_SINGLE_KEY_CALLS                                                                          \
  bool split_block_insert(std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept;       \
  bool split_block_has(const std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept;    \
  bool split_block512_insert(std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept;    \
  bool split_block512_has(const std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept; \
  bool blocked_insert(std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept;           \
  bool blocked_has(const std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept;
namespace on_scalar {
BLOOMERY_SINGLE_KEY_CALLS
}
namespace on_avx2 {
BLOOMERY_SINGLE_KEY_CALLS
}
namespace on_avx512 {
BLOOMERY_SINGLE_KEY_CALLS
}
namespace on_neon {
BLOOMERY_SINGLE_KEY_CALLS
}
#undef BLOOMERY_SINGLE_KEY_CALLS

}  // namespace bloomery::kernels
