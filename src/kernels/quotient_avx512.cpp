// Operations on quotient filters for AVX-512. The slots of eight keys are found at a time (quotient_eight.inc.hpp). To
// insert or remove a slot, a block is one register, in which all marks and slots move together.
#include "kernels/avx512_common.hpp"
#include "layouts/quotient_operations.hpp"

#if defined(__x86_64__)

namespace bloomery::kernels {
namespace {

BLOOMERY_TARGET inline unsigned ones_in(std::uint64_t x) { return static_cast<unsigned>(_mm_popcnt_u64(x)); }

BLOOMERY_TARGET inline unsigned place_of_one(std::uint64_t x, unsigned rank) {
  return static_cast<unsigned>(_tzcnt_u64(_pdep_u64(std::uint64_t{1} << rank, x)));
}

#include "layouts/quotient_block.inc.hpp"

// In each lane i: `bit` - 64 i.
BLOOMERY_TARGET inline __m512i place_in_lanes(unsigned bit) {
  return _mm512_sub_epi64(copies(bit), _mm512_setr_epi64(0, 64, 128, 192, 256, 320, 384, 448));
}

// Ones from `bit` on. A shift by 64 or more gives 0.
BLOOMERY_TARGET inline __m512i ones_from(unsigned bit) {
  return _mm512_sllv_epi64(_mm512_set1_epi64(-1), _mm512_max_epi64(place_in_lanes(bit), _mm512_setzero_si512()));
}

BLOOMERY_TARGET inline __m512i moved_up(__m512i x, unsigned by) {
  const __m512i below = _mm512_alignr_epi64(x, _mm512_setzero_si512(), 7);
  return _mm512_or_si512(_mm512_sllv_epi64(x, copies(by)), _mm512_srlv_epi64(below, copies(64 - by)));
}

BLOOMERY_TARGET inline __m512i moved_down(__m512i x, unsigned by) {
  const __m512i above = _mm512_alignr_epi64(_mm512_setzero_si512(), x, 1);
  return _mm512_or_si512(_mm512_srlv_epi64(x, copies(by)), _mm512_sllv_epi64(above, copies(64 - by)));
}

// Bits of `then` where the mask is 1, otherwise of `otherwise`.
BLOOMERY_TARGET inline __m512i chosen(__m512i mask, __m512i then, __m512i otherwise) {
  return _mm512_ternarylogic_epi64(mask, then, otherwise, 0xCA);
}

BLOOMERY_TARGET inline void insert_slot(std::uint8_t* block, const quotient_masks& masks, unsigned mark, unsigned bit,
                                        std::uint32_t remainder) {
  const __m512i empty = _mm512_loadu_si512(masks.empty), slots = ones_from(bit);
  const __m512i marks = _mm512_and_si512(ones_from(mark), _mm512_loadu_si512(masks.marks));
  const __m512i x = _mm512_xor_si512(_mm512_loadu_si512(block), empty);
  __m512i result = chosen(marks, moved_up(_mm512_and_si512(x, marks), 1), x);
  result = chosen(slots, moved_up(_mm512_and_si512(x, slots), masks.shape.width), result);
  const __m512i place = place_in_lanes(bit);
  const __m512i value = copies(remainder);
  const __m512i low = _mm512_sllv_epi64(value, place);
  const __m512i high = _mm512_srlv_epi64(value, _mm512_sub_epi64(_mm512_setzero_si512(), place));
  result = _mm512_or_si512(result, _mm512_or_si512(low, high));
  _mm512_storeu_si512(block, _mm512_xor_si512(result, empty));
}

BLOOMERY_TARGET inline void remove_slot(std::uint8_t* block, const quotient_masks& masks, unsigned mark, unsigned bit) {
  const __m512i empty = _mm512_loadu_si512(masks.empty), all_marks = _mm512_loadu_si512(masks.marks);
  const __m512i marks = _mm512_and_si512(ones_from(mark), all_marks);
  const __m512i x = _mm512_xor_si512(_mm512_loadu_si512(block), empty);
  __m512i result = chosen(marks, moved_down(_mm512_and_si512(x, all_marks), 1), x);
  result = chosen(ones_from(bit), moved_down(x, masks.shape.width), result);
  _mm512_storeu_si512(block, _mm512_xor_si512(result, empty));
}

#include "kernels/quotient_eight.inc.hpp"

}  // namespace

constexpr quotient_kernel quotient_avx512 = {insert_keys<inserting_eight, each_eight<inserting_eight>>,
                                             look_up_keys<looking_up_eight, each_eight<looking_up_eight>>, look_up_key,
                                             remove_keys<removing_eight, each_eight<removing_eight>>};

}  // namespace bloomery::kernels
#endif
