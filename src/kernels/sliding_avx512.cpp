// Cell positions of sliding and sliding64 for AVX-512: eight 64-bit products at a time.
#include "kernels/avx512_common.hpp"
#include "layouts/sliding_positions.hpp"

namespace bloomery::kernels {
#if defined(__x86_64__)
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
  const __m512i x = _mm512_mullo_epi64(copies(odd), power);
  const __m512i at = _mm512_srli_epi64(_mm512_mul_epu32(_mm512_srli_epi64(x, 32), cells), 32);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi64_epi16(at));
}

BLOOMERY_TARGET void positions(const std::uint64_t* hash64s, std::size_t count, std::uint32_t cells,
                               std::uint32_t probes, std::uint16_t* to) noexcept {
  const __m512i first = _mm512_loadu_si512(powers.at);
  const __m512i second = _mm512_loadu_si512(powers.at + 8);
  const __m512i n = copies(cells);
  for (std::size_t i = 0; i < count; ++i, to += window_probes) {
    const std::uint64_t odd = 2 * hash64s[i] + 1;
    write8(odd, first, n, to);
    if (probes > 8) write8(odd, second, n, to + 8);
  }
}

}  // namespace

constexpr sliding_positions sliding_positions_avx512 = positions;

#else

constexpr sliding_positions sliding_positions_avx512 = nullptr;

#endif
}  // namespace bloomery::kernels
