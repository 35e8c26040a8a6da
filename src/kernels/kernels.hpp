// What a set of kernels offers: the batch and single-key calls of the one-line layouts, written for one instruction
// set. All sets have the same contract and write the same bits; kernels/scalar.cpp is the one to read first.
//
// A key is the 64-bit `hash64` of its hash. Its block and its bits within it are defined by the layouts
// (include/bloomery/layouts/split_block.hpp, split_block512.hpp, blocked.hpp). Nothing of ours is included here or by
// the files of the sets: an inline function compiled for AVX-512 could replace everyone's copy at link time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bloomery::kernels {

// The layouts' constants, once more; src/kernels/dispatch.cpp compares them.
inline constexpr std::uint32_t split_block_salt[8] = {0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D,
                                                      0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31};
inline constexpr std::uint64_t split_block512_multiplier = 0x9E3779B97F4A7C15;
inline constexpr std::uint64_t blocked_step = 0xD1342543DE82EF95;
inline constexpr std::uint64_t mix_first = 0x3C79AC492BA7B653;
inline constexpr std::uint64_t mix_second = 0x1C69B3F74AC4AE35;

/// How the words of `keys` stand for keys.
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

/// Whether blocks are fetched ahead of their use, and how near.
enum class fetch {
  none,          ///< the filter is in a core's own cache
  first_level,   ///< measured best on AMD's processors
  second_level,  ///< on others the first level has too few lines on order at a time
};

/// An array of blocks.
struct blocks {
  std::uint8_t* bytes;  ///< of any alignment
  std::uint64_t count;
  std::uint32_t probes;
  kernels::fetch fetch;
};

struct layout_kernel {
  /// Inserts keys one after another; is_new is null or takes 1 or 0 for each. Returns how many are new.
  std::uint64_t (*insert)(const blocks& at, const keys& what, std::uint8_t* is_new);

  /// Bit i%64 of bitmap[i/64] is the answer for key i; unused bits of the last word are 0.
  void (*has)(const blocks& at, const keys& what, std::uint64_t* bitmap);

  /// One key, its block found.
  bool (*insert_one)(std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept;
  bool (*has_one)(const std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept;
};

/// Keys a partition's buffer holds before they are written out: two cache lines.
inline constexpr std::size_t scatter_buffer = 16;

/// Where scatter() puts keys: partition t takes those of blocks t << shift and the following.
struct partitions {
  std::uint64_t block_count;  ///< of the whole filter
  std::uint32_t shift;        ///< log2 of the blocks of a partition
  bool split_rule;            ///< split_block's rule of blocks, else split_block512's
  std::uint64_t* buffers;     ///< scatter_buffer words each, aligned to 64 bytes
  std::uint32_t* used;        ///< words waiting in each buffer
  std::uint64_t* regions;     ///< region_size words each, aligned to 64 bytes
  std::uint32_t* filled;      ///< words in each region
  std::size_t region_size;    ///< a multiple of scatter_buffer
};

/// Counting bits. Ones are bits that are set.
struct census_kernel {
  std::uint64_t (*ones)(const std::uint8_t* bytes, std::size_t count);
  std::uint64_t (*common_ones)(const std::uint8_t* a, const std::uint8_t* b, std::size_t count);

  // Each returns the ones of `count` blocks, and writes to `out` for each block what its error rate follows from: for
  // the first two the product of the ones of its eight words, for blocked its ones.
  std::uint64_t (*split_block)(const std::uint8_t* bytes, std::size_t count, std::uint64_t* out);
  std::uint64_t (*split_block512)(const std::uint8_t* bytes, std::size_t count, std::uint64_t* out);
  std::uint64_t (*blocked)(const std::uint8_t* bytes, std::size_t count, std::uint64_t* out);
};

/// A filter of lines among others that are asked for the same keys.
struct line_layer {
  std::uint8_t* bytes;
  std::uint64_t lines;
};

/// Layers of a growing filter, the newest first.
struct line_layers {
  const line_layer* layers;
  std::size_t count;
  std::size_t far_count;  ///< the first so many are not in a core's own cache: their lines are fetched ahead
};

struct kernel_set {
  const char* name;
  const char* needs;    ///< the processor features, as in /proc/cpuinfo
  bool (*supported)();  ///< by this processor and its operating system
  layout_kernel split_block;
  layout_kernel split_block512;
  layout_kernel blocked;

  /// hash64 of each key.
  void (*hash64s)(const keys& what, std::uint64_t* hash64s);

  /// Appends keys to the regions of their partitions, passing full buffers on past the caches. Stops where a region is
  /// full; returns how many keys it took.
  std::size_t (*scatter)(const partitions& into, const std::uint64_t* hash64s, std::size_t count);

  census_kernel fill_statistics;

  /// Whether any layer has the key. The lines of all far layers are asked for before the first is looked at; the key's
  /// bits in its line are the same in each, so that they are worked out once.
  bool (*layers_have)(const line_layers& at, std::uint64_t hash64) noexcept;
};

extern const kernel_set scalar;
extern const kernel_set avx2;
extern const kernel_set avx512;
extern const kernel_set neon;

/// All sets of this build, the slowest first.
inline constexpr const kernel_set* kernel_sets[] = {
    &scalar,
#if defined(__x86_64__)
    &avx2,
    &avx512,
#elif defined(__aarch64__)
    &neon,
#endif
};

// For single keys: the same functions as in the table, by name, so that a call to them is direct.
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
