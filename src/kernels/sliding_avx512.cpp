// Cell positions of sliding and sliding64 for AVX-512: eight 64-bit products at a time.
#include "layouts/sliding_positions.hpp"

#if defined(__x86_64__)

#if !defined(__clang__)
// As in avx512.cpp.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#define BLOOMERY_TARGET [[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi,bmi2,popcnt")]]

namespace bloomery::kernels {
namespace {

struct power_table {
  std::uint64_t at[window_probes] = {};
  constexpr power_table() {
    at[0] = window_multiplier;
    for (std::uint32_t i = 1; i < window_probes; ++i) at[i] = at[i - 1] * window_step;
  }
};
constexpr power_table powers;

// ((odd * power >> 32) * cells) >> 32
BLOOMERY_TARGET inline void write8(std::uint64_t odd, __m512i power, __m512i cells, std::uint16_t* to) {
  const __m512i x = _mm512_mullo_epi64(_mm512_set1_epi64(static_cast<long long>(odd)), power);
  const __m512i at = _mm512_srli_epi64(_mm512_mul_epu32(_mm512_srli_epi64(x, 32), cells), 32);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi64_epi16(at));
}

BLOOMERY_TARGET void positions(const std::uint64_t* hash64s, std::size_t count, std::uint32_t cells,
                               std::uint32_t probes, std::uint16_t* to) noexcept {
  const __m512i first = _mm512_loadu_si512(powers.at);
  const __m512i second = _mm512_loadu_si512(powers.at + 8);
  const __m512i n = _mm512_set1_epi64(static_cast<long long>(cells));
  for (std::size_t i = 0; i < count; ++i, to += window_probes) {
    const std::uint64_t odd = 2 * hash64s[i] + 1;
    write8(odd, first, n, to);
    if (probes > 8) write8(odd, second, n, to + 8);
  }
}

}  // namespace

constexpr sliding_positions sliding_positions_avx512 = positions;

}  // namespace bloomery::kernels

#else

namespace bloomery::kernels {

constexpr sliding_positions sliding_positions_avx512 = nullptr;

}  // namespace bloomery::kernels

#endif
