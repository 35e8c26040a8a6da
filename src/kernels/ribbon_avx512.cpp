// The slots of ribbon filters, combined for AVX-512: eight bits of the slots of one key at a time.
#include "kernels/avx512_common.hpp"
#include "layouts/ribbon_lookup.hpp"

namespace bloomery::kernels {
#if defined(__x86_64__)
namespace {

constexpr unsigned lanes = 8;

// Bit i: whether the number of ones in word i is odd.
BLOOMERY_TARGET inline std::uint32_t parities(__m512i x) {
  x = _mm512_xor_si512(x, _mm512_slli_epi64(x, 32));
  x = _mm512_xor_si512(x, _mm512_slli_epi64(x, 16));
  x = _mm512_xor_si512(x, _mm512_slli_epi64(x, 8));
  x = _mm512_xor_si512(x, _mm512_slli_epi64(x, 4));
  x = _mm512_xor_si512(x, _mm512_slli_epi64(x, 2));
  x = _mm512_xor_si512(x, _mm512_slli_epi64(x, 1));
  return _mm512_movepi64_mask(x);
}

BLOOMERY_TARGET void combine(const std::uint8_t* payload, unsigned width, const ribbon_slots& slots, std::size_t count,
                             std::uint32_t* values) noexcept {
  for (std::size_t key = 0; key < count; ++key) {
    const std::uint8_t* const block = payload + 8 * slots.word[key];
    const std::uint8_t* const next = block + 8 * std::size_t{width};
    const __m512i shift = copies(slots.shift[key]);
    const __m512i rest = copies(63 - slots.shift[key]);
    std::uint32_t value = 0;
    for (unsigned bit = 0; bit < width; bit += lanes) {
      const auto some = static_cast<__mmask8>(width - bit < lanes ? (1U << (width - bit)) - 1 : 0xFF);
      const __m512i low = _mm512_srlv_epi64(_mm512_maskz_loadu_epi64(some, block + 8 * bit), shift);
      const __m512i high = _mm512_slli_epi64(_mm512_maskz_loadu_epi64(some, next + 8 * bit), 1);
      const __m512i columns = _mm512_or_si512(low, _mm512_sllv_epi64(high, rest));
      value |= parities(_mm512_and_si512(columns, copies(slots.coefficients[key]))) << bit;
    }
    values[key] = value;
  }
}

}  // namespace

constexpr ribbon_combine ribbon_combine_avx512 = combine;

#else

constexpr ribbon_combine ribbon_combine_avx512 = nullptr;

#endif
}  // namespace bloomery::kernels
