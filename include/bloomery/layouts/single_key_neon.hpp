// single_key for NEON, which every AArch64 processor has: a block is two or four registers. src/kernels/neon.cpp, the
// kernels for batches, uses the same operations.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/layouts/single_key.hpp>

#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace BLOOMERY_EXPORT bloomery {

namespace detail {

/// The operations on a block of `Masks::registers` registers. A key is given by its choice:
///   Masks::choice(hash64)    the value that determines the bits of a key
///   Masks::mask(choice, i)   its bits in register i
template <class Masks, class Registers = std::make_index_sequence<Masks::registers>>
struct neon_block;

template <class Masks, std::size_t... i>  // an index per register, so that the code has no loop
struct neon_block<Masks, std::index_sequence<i...>> {
  static constexpr std::size_t bytes = 16;  // of a register

  [[gnu::always_inline]] static bool has(const std::uint8_t* block, std::uint64_t choice) noexcept {
    return !any((missing_in(block + i * bytes, Masks::mask(choice, i)) | ...));
  }

  /// Returns whether one of the key's bits was clear.
  [[gnu::always_inline]] static bool insert(std::uint8_t* block, std::uint64_t choice) noexcept {
    return any((insert_into(block + i * bytes, Masks::mask(choice, i)) | ...));
  }

 private:
  // The bits of the mask that are clear in the register at this address.
  [[gnu::always_inline]] static uint8x16_t missing_in(const std::uint8_t* at, uint8x16_t mask) noexcept {
    return vbicq_u8(mask, vld1q_u8(at));
  }
  [[gnu::always_inline]] static uint8x16_t insert_into(std::uint8_t* at, uint8x16_t mask) noexcept {
    const uint8x16_t missing = missing_in(at, mask);
    vst1q_u8(at, vorrq_u8(vld1q_u8(at), mask));
    return missing;
  }
  [[gnu::always_inline]] static bool any(uint8x16_t bits) noexcept {
    return vmaxvq_u32(vreinterpretq_u32_u8(bits)) != 0;
  }
};

struct split_block_masks {
  static constexpr std::size_t registers = 2;

  [[gnu::always_inline]] static std::uint64_t choice(std::uint64_t hash64) noexcept { return hash64; }
  [[gnu::always_inline]] static uint8x16_t mask(std::uint64_t choice, std::size_t i) noexcept {
    const uint32x4_t salts = vld1q_u32(for_single_keys.salts + 4 * i);
    const uint32x4_t bit = vshrq_n_u32(vmulq_n_u32(salts, static_cast<std::uint32_t>(choice)), 27);
    return vreinterpretq_u8_u32(vshlq_u32(vdupq_n_u32(1), vreinterpretq_s32_u32(bit)));
  }
};

struct split_block512_masks {
  static constexpr std::size_t registers = 4;

  [[gnu::always_inline]] static std::uint64_t choice(std::uint64_t hash64) noexcept {
    return hash64 * for_single_keys.multiplier;
  }
  [[gnu::always_inline]] static uint8x16_t mask(std::uint64_t choice, std::size_t i) noexcept {
    // A vector shift left by a negative count is a shift right.
    const int64x2_t shifts = vld1q_s64(for_single_keys.negative_shifts64 + 2 * i);
    const uint64x2_t bit = vandq_u64(vshlq_u64(vdupq_n_u64(choice), shifts), vdupq_n_u64(63));
    return vreinterpretq_u8_u64(vshlq_u64(vdupq_n_u64(1), vreinterpretq_s64_u64(bit)));
  }
};

/// The functions of single_key for a layout with these masks.
template <class Masks>
struct single_key_neon {
  [[gnu::always_inline]] static bool has_neon(const std::uint8_t* block, std::uint64_t hash64) noexcept {
    return neon_block<Masks>::has(block, Masks::choice(hash64));
  }
  [[gnu::always_inline]] static bool insert_neon(std::uint8_t* block, std::uint64_t hash64) noexcept {
    return neon_block<Masks>::insert(block, Masks::choice(hash64));
  }
};

template <>
struct single_key<layouts::split_block> : single_key_neon<split_block_masks> {};
template <>
struct single_key<layouts::split_block512> : single_key_neon<split_block512_masks> {};

}  // namespace detail
}  // namespace bloomery

#endif
