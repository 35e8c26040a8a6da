// Kernels for NEON, which every AArch64 processor has: a block of split_block is two registers, a block of
// split_block512 is four.
//
// Masks are computed as in avx2.cpp. Hashes, block numbers and blocked are plain C++.
#include "kernels/kernels.hpp"

#if defined(__aarch64__)

#include <arm_neon.h>

#define BLOOMERY_TARGET

namespace bloomery::kernels {
namespace {

#include "kernels/plain.inc.hpp"

// A vector shift left by a negative count is a shift right.
constexpr std::int64_t split_block512_shifts[8] = {-16, -22, -28, -34, -40, -46, -52, -58};

struct split_block_ops : plain_split_block {
  static uint32x4_t mask_of(std::uint64_t choice, std::size_t word) {
    const uint32x4_t product = vmulq_n_u32(vld1q_u32(split_block_salt + word), static_cast<std::uint32_t>(choice));
    return vshlq_u32(vdupq_n_u32(1), vreinterpretq_s32_u32(vshrq_n_u32(product, 27)));
  }

  static uint32x4_t words_of(const std::uint8_t* at) { return vreinterpretq_u32_u8(vld1q_u8(at)); }

  static bool one_insert(std::uint8_t* block, std::uint64_t choice, std::uint32_t) {
    uint32x4_t missing = vdupq_n_u32(0);
    for (std::size_t word = 0; word < 8; word += 4) {
      const uint32x4_t old = words_of(block + 4 * word);
      const uint32x4_t mask = mask_of(choice, word);
      missing = vorrq_u32(missing, vbicq_u32(mask, old));
      vst1q_u8(block + 4 * word, vreinterpretq_u8_u32(vorrq_u32(old, mask)));
    }
    return vmaxvq_u32(missing) != 0;
  }

  static bool one_has(const std::uint8_t* block, std::uint64_t choice, std::uint32_t) {
    const uint32x4_t missing =
        vorrq_u32(vbicq_u32(mask_of(choice, 0), words_of(block)), vbicq_u32(mask_of(choice, 4), words_of(block + 16)));
    return vmaxvq_u32(missing) == 0;
  }
};

struct split_block512_ops : plain_split_block512 {
  static uint64x2_t mask_of(std::uint64_t choice, std::size_t word) {
    const uint64x2_t shifted = vshlq_u64(vdupq_n_u64(choice), vld1q_s64(split_block512_shifts + word));
    const uint64x2_t bit = vandq_u64(shifted, vdupq_n_u64(63));
    return vshlq_u64(vdupq_n_u64(1), vreinterpretq_s64_u64(bit));
  }

  static uint64x2_t words_of(const std::uint8_t* at) { return vreinterpretq_u64_u8(vld1q_u8(at)); }

  static bool any(uint64x2_t words) { return vmaxvq_u32(vreinterpretq_u32_u64(words)) != 0; }

  static bool one_insert(std::uint8_t* block, std::uint64_t choice, std::uint32_t) {
    uint64x2_t missing = vdupq_n_u64(0);
    for (std::size_t word = 0; word < 8; word += 2) {
      const uint64x2_t old = words_of(block + 8 * word);
      const uint64x2_t mask = mask_of(choice, word);
      missing = vorrq_u64(missing, vbicq_u64(mask, old));
      vst1q_u8(block + 8 * word, vreinterpretq_u8_u64(vorrq_u64(old, mask)));
    }
    return any(missing);
  }

  static bool one_has(const std::uint8_t* block, std::uint64_t choice, std::uint32_t) {
    uint64x2_t missing = vdupq_n_u64(0);
    for (std::size_t word = 0; word < 8; word += 2) {
      missing = vorrq_u64(missing, vbicq_u64(mask_of(choice, word), words_of(block + 8 * word)));
    }
    return !any(missing);
  }
};

template <class Layout>
using addresses_ops = addresses<Layout>;

struct ops : plain_ops {
  using split_block = split_block_ops;
  using split_block512 = split_block512_ops;
  using blocked = plain_blocked;
};

#include "kernels/batch.inc.hpp"

struct fill_ops : plain_fill {
  static uint64x2_t ones_of_words(uint8x16_t bytes) { return vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(vcntq_u8(bytes)))); }

  static std::uint64_t ones(const std::uint8_t* bytes, std::size_t count) {
    uint64x2_t sum = vdupq_n_u64(0);
    std::size_t i = 0;
    for (; i + 16 <= count; i += 16) sum = vaddq_u64(sum, ones_of_words(vld1q_u8(bytes + i)));
    return vaddvq_u64(sum) + plain_fill::ones(bytes + i, count - i);
  }

  static std::uint64_t common_ones(const std::uint8_t* a, const std::uint8_t* b, std::size_t count) {
    uint64x2_t sum = vdupq_n_u64(0);
    std::size_t i = 0;
    for (; i + 16 <= count; i += 16) {
      sum = vaddq_u64(sum, ones_of_words(vandq_u8(vld1q_u8(a + i), vld1q_u8(b + i))));
    }
    return vaddvq_u64(sum) + plain_fill::common_ones(a + i, b + i, count - i);
  }
};

constexpr const char* name_of_set = "neon";
constexpr const char* needs_of_set = "asimd";
bool supported() { return true; }

}  // namespace

#define BLOOMERY_SET neon
#define BLOOMERY_NAMESPACE on_neon
#include "kernels/set.inc.hpp"

}  // namespace bloomery::kernels

#endif
