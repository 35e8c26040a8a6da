// Operations on batches of keys of a quotient filter, in plain C++ and by instructions of x86-64 processors, with the
// same results. Like kernels.hpp, this file includes no other header of bloomery than the constants.
#pragma once

#include "layouts/hash_constants.hpp"

#include <cstddef>
#include <cstdint>

namespace bloomery::kernels {

inline constexpr unsigned quotient_block_words = 8;
inline constexpr unsigned quotient_marks_words = 4;  ///< the marks of a block are in its first words

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
};

/// The blocks of a filter.
struct quotient_blocks {
  std::uint8_t* bytes;  ///< of any alignment
  std::uint64_t count;
  quotient_shape shape;
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

  /// Removes a copy of each key in order and writes 1 (removed, or kept because it has the maximum number of copies) or
  /// 0 (absent) per key.
  void (*remove)(const quotient_blocks& at, const std::uint64_t* hash64s, std::size_t count,
                 std::uint8_t* removed) noexcept;
};

/// In plain C++ (src/layouts/quotient.cpp).
extern const quotient_kernel quotient_plain;

#if defined(__x86_64__)
extern const quotient_kernel quotient_bmi2;    ///< for processors with BMI2, a feature of the kernel set avx2
extern const quotient_kernel quotient_avx512;  ///< for those of the kernel set avx512
#endif

/// The functions for the chosen kernel set.
const quotient_kernel& chosen_quotient();

}  // namespace bloomery::kernels
