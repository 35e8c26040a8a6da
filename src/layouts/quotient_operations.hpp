// Operations on batches of keys of a quotient filter, in plain C++ and by instructions of x86-64 processors, with the
// same results. Like kernels.hpp, this file includes no other header of bloomery than the constants.
#pragma once

#include "layouts/hash_constants.hpp"

#include <cstddef>
#include <cstdint>

namespace bloomery::kernels {

inline constexpr unsigned quotient_block_words = 8;
inline constexpr unsigned quotient_marks_words = 3;  ///< the marks of a block are in its first words

/// The maximum number of copies of a key.
inline constexpr unsigned quotient_most_copies = 15;

/// The parts of a block: buckets + slots bits of marks, then the slots.
struct quotient_shape {
  unsigned width;    ///< bits of a slot: a remainder, and whether the block is the second one of its key
  unsigned slots;    ///< of a block
  unsigned buckets;  ///< of a block

  constexpr unsigned marks() const noexcept { return slots + buckets; }

  /// Number of pairs of bucket and remainder.
  constexpr std::uint64_t tags() const noexcept { return std::uint64_t{buckets} << (width - 1); }

  /// The bit of a slot that is set if its block is the second one of the key.
  constexpr std::uint32_t second() const noexcept { return std::uint32_t{1} << (width - 1); }
};

/// Ones in the lower `bits` places. Requires bits < 64.
constexpr std::uint64_t lower_ones(unsigned bits) noexcept { return (std::uint64_t{1} << bits) - 1; }

/// The same for word number `word` of many, where `bits` counts from the first word.
constexpr std::uint64_t lower_ones(unsigned bits, unsigned word) noexcept {
  if (bits >= 64 * (word + 1)) return ~std::uint64_t{0};
  return bits <= 64 * word ? 0 : lower_ones(bits - 64 * word);
}

/// Constants that all blocks of a shape share, computed once: the fewer instructions a call has, the earlier the
/// processor loads the blocks of the next key.
struct quotient_masks {
  constexpr explicit quotient_masks(const quotient_shape& s) noexcept
      : shape(s), slots_begin(s.marks()), slots_of_word(57 / s.width), second(s.second()), tags(s.tags()) {
    for (unsigned i = 0; i < quotient_block_words; ++i) {
      marks[i] = lower_ones(s.marks(), i);
      empty[i] = lower_ones(s.buckets, i);
    }
    for (unsigned i = 0; i < slots_of_word; ++i) lowest |= std::uint64_t{1} << (i * s.width);
    highest = lowest << (s.width - 1);
    carries = highest - lowest;
  }
  quotient_shape shape;
  unsigned slots_begin;                            ///< the first bit of slot 0
  unsigned slots_of_word;                          ///< whole slots in a word that begins at any bit of a byte
  std::uint32_t second;                            ///< as in the shape
  std::uint64_t tags;                              ///< as in the shape
  std::uint64_t lowest = 0, highest = 0;           ///< the lowest and the highest bit of each slot of a word
  std::uint64_t carries = 0;                       ///< all bits of these slots but the highest ones
  std::uint64_t marks[quotient_block_words] = {};  ///< all marks of a block
  std::uint64_t empty[quotient_block_words] = {};  ///< the marks of an empty block, which is stored as zeros
};

/// The blocks of a filter.
struct quotient_blocks {
  std::uint8_t* bytes;  ///< of any alignment
  std::uint64_t count;
  const quotient_masks& masks;
  bool fetch;  ///< prefetch the blocks of the next keys
};

struct quotient_kernel {
  /// Inserts a copy of each key in order, until the two blocks of a key have no free slot. is_new is null or receives 1
  /// or 0 per inserted key; `all_new` increases by the number of new keys. Returns the number of inserted keys.
  std::size_t (*insert)(const quotient_blocks& at, const std::uint64_t* hash64s, std::size_t count,
                        std::uint8_t* is_new, std::uint64_t& all_new) noexcept;

  /// Bit i%64 of bitmap[i/64] is the answer for key i; unused bits of the last word are 0.
  void (*has)(const quotient_blocks& at, const std::uint64_t* hash64s, std::size_t count,
              std::uint64_t* bitmap) noexcept;

  /// Whether the key may be present, for a single key.
  bool (*has_one)(const quotient_blocks& at, std::uint64_t hash64) noexcept;

  /// Removes a copy of each key in order and writes 1 (removed, or kept because it has the maximum number of copies) or
  /// 0 (absent) per key.
  void (*remove)(const quotient_blocks& at, const std::uint64_t* hash64s, std::size_t count,
                 std::uint8_t* removed) noexcept;
};

/// In plain C++ (src/layouts/quotient.cpp).
extern const quotient_kernel quotient_plain;

#if defined(__x86_64__)
extern const quotient_kernel quotient_avx2;    ///< for processors of the kernel set avx2
extern const quotient_kernel quotient_avx512;  ///< for those of the kernel set avx512
#elif defined(__aarch64__)
extern const quotient_kernel quotient_neon;
#endif

/// The functions for the chosen kernel set.
const quotient_kernel& chosen_quotient();

}  // namespace bloomery::kernels
