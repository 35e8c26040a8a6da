// Operations on quotient filters for NEON: a block is four registers of two words each.
#include "layouts/quotient_operations.hpp"

#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstdint>

#define BLOOMERY_TARGET

namespace bloomery::kernels {
namespace {

inline unsigned ones_in(std::uint64_t x) { return vaddv_u8(vcnt_u8(vcreate_u8(x))); }

// The first lane at which the sum of all counts up to it exceeds `rank`, which becomes the rest.
inline unsigned lane_of(uint8x8_t counts, unsigned& rank) {
  const std::uint64_t sums = vget_lane_u64(vreinterpret_u64_u8(counts), 0) * 0x0101010101010101;
  const uint8x8_t above = vcgt_u8(vcreate_u8(sums), vdup_n_u8(static_cast<std::uint8_t>(rank)));
  const auto bit = static_cast<unsigned>(__builtin_ctzll(vget_lane_u64(vreinterpret_u64_u8(above), 0)));
  rank -= static_cast<unsigned>(sums << 8 >> bit & 0xFF);
  return bit / 8;
}

// The byte with the one, then the bit of this byte.
inline unsigned place_of_one(std::uint64_t x, unsigned rank) {
  const unsigned byte = lane_of(vcnt_u8(vcreate_u8(x)), rank);
  const uint8x8_t copies = vdup_n_u8(static_cast<std::uint8_t>(x >> (8 * byte)));
  const uint8x8_t bits = vtst_u8(copies, vcreate_u8(0x8040201008040201));
  return 8 * byte + lane_of(vand_u8(bits, vdup_n_u8(1)), rank);
}

#include "layouts/quotient_block.inc.hpp"

constexpr unsigned pairs_of_block = quotient_block_words / 2;
constexpr unsigned pairs_of_marks = (quotient_marks_words + 1) / 2;  // the pairs with all marks

// In each word i of a block: `bit` - 64 i, but at least `least` and at most 64. A shift uses the lowest byte of a
// place, to the left, or to the right if it is negative; a shift by 64 gives 0.
struct places {
  explicit places(unsigned bit, std::int16_t least) {
    constexpr std::int16_t begins[] = {0, 64, 128, 192, 256, 320, 384, 448};
    const int16x8_t exact = vsubq_s16(vdupq_n_s16(static_cast<std::int16_t>(bit)), vld1q_s16(begins));
    const int16x8_t all = vmaxq_s16(vminq_s16(exact, vdupq_n_s16(64)), vdupq_n_s16(least));
    const int32x4_t low = vmovl_s16(vget_low_s16(all)), high = vmovl_high_s16(all);
    pairs[0] = vmovl_s32(vget_low_s32(low));
    pairs[1] = vmovl_high_s32(low);
    pairs[2] = vmovl_s32(vget_low_s32(high));
    pairs[3] = vmovl_high_s32(high);
  }
  int64x2_t pairs[pairs_of_block];
};

// Ones from `bit` on.
struct ones_from : places {
  explicit ones_from(unsigned bit) : places(bit, 0) {}
  uint64x2_t pair(unsigned i) const { return vshlq_u64(vdupq_n_u64(~std::uint64_t{0}), pairs[i]); }
};

// The words of a block, and a pair of zeros on either side.
struct block_words {
  explicit block_words(const std::uint8_t* block) {
    pairs[0] = pairs[pairs_of_block + 1] = vdupq_n_u64(0);
    for (unsigned i = 0; i < pairs_of_block; ++i) pairs[i + 1] = vreinterpretq_u64_u8(vld1q_u8(block + 16 * i));
  }

  uint64x2_t& pair(unsigned i) { return pairs[i + 1]; }

  uint64x2_t moved_up(unsigned i, unsigned by) const {
    const uint64x2_t below = vextq_u64(pairs[i], pairs[i + 1], 1);
    return vorrq_u64(vshlq_u64(pairs[i + 1], shift(by)), vshlq_u64(below, vsubq_s64(shift(by), vdupq_n_s64(64))));
  }

  uint64x2_t moved_down(unsigned i, unsigned by) const {
    const uint64x2_t above = vextq_u64(pairs[i + 1], pairs[i + 2], 1);
    return vorrq_u64(vshlq_u64(pairs[i + 1], vnegq_s64(shift(by))),
                     vshlq_u64(above, vsubq_s64(vdupq_n_s64(64), shift(by))));
  }

  void store(std::uint8_t* block) const {
    for (unsigned i = 0; i < pairs_of_block; ++i) vst1q_u8(block + 16 * i, vreinterpretq_u8_u64(pairs[i + 1]));
  }

 private:
  static int64x2_t shift(unsigned by) { return vdupq_n_s64(by); }

  uint64x2_t pairs[pairs_of_block + 2];
};

inline void insert_slot(std::uint8_t* block, const quotient_masks& masks, unsigned mark, unsigned bit,
                        std::uint32_t remainder) {
  block_words result(block), moved_marks(block), moved_slots(block);
  const ones_from mark_and_above(mark), slot_and_above(bit);
  uint64x2_t marks[pairs_of_marks];
  for (unsigned i = 0; i < pairs_of_marks; ++i) {
    marks[i] = vandq_u64(mark_and_above.pair(i), vld1q_u64(masks.marks + 2 * i));
    moved_marks.pair(i) = vandq_u64(veorq_u64(result.pair(i), vld1q_u64(masks.empty + 2 * i)), marks[i]);
  }
  for (unsigned i = 0; i < pairs_of_block; ++i) moved_slots.pair(i) = vandq_u64(result.pair(i), slot_and_above.pair(i));
  const places place(bit, -64);
  for (unsigned i = 0; i < pairs_of_block; ++i) {
    if (i < pairs_of_marks) {
      const uint64x2_t moved = veorq_u64(moved_marks.moved_up(i, 1), vld1q_u64(masks.empty + 2 * i));
      result.pair(i) = vbslq_u64(marks[i], moved, result.pair(i));
    }
    const uint64x2_t value = vshlq_u64(vdupq_n_u64(remainder), place.pairs[i]);
    const uint64x2_t moved = vorrq_u64(moved_slots.moved_up(i, masks.shape.width), value);
    result.pair(i) = vbslq_u64(slot_and_above.pair(i), moved, result.pair(i));
  }
  result.store(block);
}

inline void remove_slot(std::uint8_t* block, const quotient_masks& masks, unsigned mark, unsigned bit) {
  block_words result(block), all_marks(block);
  const block_words all(block);
  const ones_from mark_and_above(mark), slot_and_above(bit);
  for (unsigned i = 0; i < pairs_of_marks; ++i) {
    all_marks.pair(i) =
        vandq_u64(veorq_u64(result.pair(i), vld1q_u64(masks.empty + 2 * i)), vld1q_u64(masks.marks + 2 * i));
  }
  for (unsigned i = 0; i < pairs_of_block; ++i) {
    if (i < pairs_of_marks) {
      const uint64x2_t marks = vandq_u64(mark_and_above.pair(i), vld1q_u64(masks.marks + 2 * i));
      const uint64x2_t moved = veorq_u64(all_marks.moved_down(i, 1), vld1q_u64(masks.empty + 2 * i));
      result.pair(i) = vbslq_u64(marks, moved, result.pair(i));
    }
    result.pair(i) = vbslq_u64(slot_and_above.pair(i), all.moved_down(i, masks.shape.width), result.pair(i));
  }
  result.store(block);
}

}  // namespace

constexpr quotient_kernel quotient_neon = {insert_keys<inserting>, look_up_keys<looking_up>, look_up_key,
                                           remove_keys<removing>};

}  // namespace bloomery::kernels
#endif
