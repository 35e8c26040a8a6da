// Operations on quotient filters for the kernel set avx2. BMI2 deposits a bit at the place of the one with a given
// rank. A block is two registers, and the marks are in the first one.
#include "layouts/quotient_operations.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#define BLOOMERY_TARGET [[gnu::target("avx2,bmi,bmi2,popcnt")]]

namespace bloomery::kernels {
namespace {

BLOOMERY_TARGET inline unsigned ones_in(std::uint64_t x) { return static_cast<unsigned>(_mm_popcnt_u64(x)); }

BLOOMERY_TARGET inline unsigned place_of_one(std::uint64_t x, unsigned rank) {
  return static_cast<unsigned>(_tzcnt_u64(_pdep_u64(std::uint64_t{1} << rank, x)));
}

#include "layouts/quotient_block.inc.hpp"

BLOOMERY_TARGET inline __m256i loaded(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

BLOOMERY_TARGET inline void store(void* to, __m256i x) { _mm256_storeu_si256(static_cast<__m256i*>(to), x); }

BLOOMERY_TARGET inline __m256i copies(std::uint64_t x) { return _mm256_set1_epi64x(static_cast<long long>(x)); }

// In each lane i: `bit` - 64 i.
BLOOMERY_TARGET inline __m256i place_in_lanes(__m256i bit) {
  return _mm256_sub_epi64(bit, _mm256_setr_epi64x(0, 64, 128, 192));
}

// Ones from a place on. A shift by 64 or more gives 0. The maximum has elements of 32 bits, which all places fit into.
BLOOMERY_TARGET inline __m256i ones_from(__m256i place) {
  return _mm256_sllv_epi64(copies(~std::uint64_t{0}), _mm256_max_epi32(place, _mm256_setzero_si256()));
}

// The part of a value in each word if its lowest bit is at this place. A shift by a negative number gives 0, too: the
// processor takes it as a large unsigned number.
BLOOMERY_TARGET inline __m256i value_at(__m256i place, __m256i value) {
  const __m256i negative = _mm256_sub_epi64(_mm256_setzero_si256(), place);
  return _mm256_or_si256(_mm256_sllv_epi64(value, place), _mm256_srlv_epi64(value, negative));
}

// The word below each word of x. The one below the first is the last word of `below`.
BLOOMERY_TARGET inline __m256i words_below(__m256i x, __m256i below) {
  return _mm256_blend_epi32(_mm256_permute4x64_epi64(x, 0b10'01'00'00), _mm256_permute4x64_epi64(below, 0b11), 0b11);
}

// The word above each word of x. The one above the last is the first word of `above`.
BLOOMERY_TARGET inline __m256i words_above(__m256i x, __m256i above) {
  return _mm256_blend_epi32(_mm256_permute4x64_epi64(x, 0b00'11'10'01), _mm256_permute4x64_epi64(above, 0),
                            0b11'00'00'00);
}

// x, moved by `by` < 64 places. The places that become free receive bits of `below` or `above`.

BLOOMERY_TARGET inline __m256i moved_up(__m256i x, __m256i below, unsigned by) {
  const __m128i up = _mm_cvtsi32_si128(static_cast<int>(by)), down = _mm_cvtsi32_si128(static_cast<int>(64 - by));
  return _mm256_or_si256(_mm256_sll_epi64(x, up), _mm256_srl_epi64(words_below(x, below), down));
}

BLOOMERY_TARGET inline __m256i moved_down(__m256i x, __m256i above, unsigned by) {
  const __m128i up = _mm_cvtsi32_si128(static_cast<int>(64 - by)), down = _mm_cvtsi32_si128(static_cast<int>(by));
  return _mm256_or_si256(_mm256_srl_epi64(x, down), _mm256_sll_epi64(words_above(x, above), up));
}

// Bits of `then` where the mask is 1, otherwise of `otherwise`.
BLOOMERY_TARGET inline __m256i chosen(__m256i mask, __m256i then, __m256i otherwise) {
  return _mm256_xor_si256(otherwise, _mm256_and_si256(mask, _mm256_xor_si256(then, otherwise)));
}

BLOOMERY_TARGET inline void insert_slot(std::uint8_t* block, const quotient_masks& masks, unsigned mark, unsigned bit,
                                        std::uint32_t remainder) {
  const __m256i zero = _mm256_setzero_si256(), empty = loaded(masks.empty), value = copies(remainder);
  const __m256i marks = _mm256_and_si256(ones_from(place_in_lanes(copies(mark))), loaded(masks.marks));
  const __m256i place = place_in_lanes(copies(bit)), place_in_second = _mm256_sub_epi64(place, copies(256));
  const __m256i slots = ones_from(place), slots_in_second = ones_from(place_in_second);
  const __m256i first = _mm256_xor_si256(loaded(block), empty), second = loaded(block + 32);

  const __m256i moved_marks = moved_up(_mm256_and_si256(first, marks), zero, 1);
  const __m256i moving = _mm256_and_si256(first, slots), moving_in_second = _mm256_and_si256(second, slots_in_second);
  const unsigned width = masks.shape.width;
  const __m256i moved = _mm256_or_si256(moved_up(moving, zero, width), value_at(place, value));
  const __m256i moved_in_second =
      _mm256_or_si256(moved_up(moving_in_second, moving, width), value_at(place_in_second, value));
  store(block, _mm256_xor_si256(chosen(slots, moved, chosen(marks, moved_marks, first)), empty));
  store(block + 32, chosen(slots_in_second, moved_in_second, second));
}

BLOOMERY_TARGET inline void remove_slot(std::uint8_t* block, const quotient_masks& masks, unsigned mark, unsigned bit) {
  const __m256i zero = _mm256_setzero_si256(), empty = loaded(masks.empty), all_marks = loaded(masks.marks);
  const __m256i marks = _mm256_and_si256(ones_from(place_in_lanes(copies(mark))), all_marks);
  const __m256i place = place_in_lanes(copies(bit));
  const __m256i slots = ones_from(place), slots_in_second = ones_from(_mm256_sub_epi64(place, copies(256)));
  const __m256i first = _mm256_xor_si256(loaded(block), empty), second = loaded(block + 32);

  const __m256i moved_marks = moved_down(_mm256_and_si256(first, all_marks), zero, 1);
  const unsigned width = masks.shape.width;
  const __m256i moved = moved_down(first, second, width), moved_in_second = moved_down(second, zero, width);
  store(block, _mm256_xor_si256(chosen(slots, moved, chosen(marks, moved_marks, first)), empty));
  store(block + 32, chosen(slots_in_second, moved_in_second, second));
}

}  // namespace

constexpr quotient_kernel quotient_avx2 = {insert_keys<inserting>, look_up_keys<looking_up>, look_up_key,
                                           remove_keys<removing>};

}  // namespace bloomery::kernels
#endif
