// Kernels for NEON, which every AArch64 processor has. split_block and split_block512 use the operations of
// single_key_neon.hpp. Hashes, block numbers and blocked are plain C++.
#include <bloomery/layouts/single_key.hpp>

#include "kernels/kernels.hpp"

#if defined(__aarch64__)

#include <arm_neon.h>

#define BLOOMERY_TARGET

namespace bloomery::kernels {
namespace {

#include "kernels/plain.inc.hpp"

// The operations on one key are those that callers of the library inline.
template <class Plain, class Masks>
struct neon_ops : Plain {
  static bool one_insert(std::uint8_t* block, std::uint64_t choice, std::uint32_t) {
    return detail::neon_block<Masks>::insert(block, choice);
  }
  static bool one_has(const std::uint8_t* block, std::uint64_t choice, std::uint32_t) {
    return detail::neon_block<Masks>::has(block, choice);
  }
};

template <class Layout>
using addresses_ops = addresses<Layout>;

struct ops : plain_ops {
  using split_block = neon_ops<plain_split_block, detail::split_block_masks>;
  using split_block512 = neon_ops<plain_split_block512, detail::split_block512_masks>;
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
