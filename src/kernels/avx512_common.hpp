// Common to the kernel files for AVX-512 (F, CD, DQ, BW, VL): the target of their functions, and operations on eight
// 64-bit words. A file must include this before any other use of the intrinsics.
#pragma once

#include "kernels/kernels.hpp"

#if defined(__x86_64__)

#if !defined(__clang__)
// GCC 12 warns about the undefined registers of its own intrinsics (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

// The target is an attribute of each function, so no function that other files may link to is compiled for AVX-512.
#define BLOOMERY_TARGET [[gnu::target("avx512f,avx512cd,avx512dq,avx512bw,avx512vl,avx2,bmi,bmi2,popcnt")]]

namespace bloomery::kernels {
namespace {  // the linker must not merge these with functions of other files

BLOOMERY_TARGET inline __m512i copies(std::uint64_t word) { return _mm512_set1_epi64(static_cast<long long>(word)); }

// mix64 of eight words.
BLOOMERY_TARGET inline __m512i mix8(__m512i x) {
  x = _mm512_xor_si512(x, _mm512_srli_epi64(x, 27));
  x = _mm512_mullo_epi64(x, copies(mix_first));
  x = _mm512_xor_si512(x, _mm512_srli_epi64(x, 33));
  x = _mm512_mullo_epi64(x, copies(mix_second));
  return _mm512_xor_si512(x, _mm512_srli_epi64(x, 27));
}

// (x * factor) >> 64 for factors below 2^32.
BLOOMERY_TARGET inline __m512i scaled(__m512i x, __m512i factor) {
  const __m512i low = _mm512_srli_epi64(_mm512_mul_epu32(x, factor), 32);
  return _mm512_srli_epi64(_mm512_add_epi64(_mm512_mul_epu32(_mm512_srli_epi64(x, 32), factor), low), 32);
}

// The same for any factor.
BLOOMERY_TARGET inline __m512i high_products(__m512i x, std::uint64_t factor) {
  const __m512i lower = copies(factor), upper = copies(factor >> 32), x_upper = _mm512_srli_epi64(x, 32);
  const __m512i middle =
      _mm512_add_epi64(_mm512_mul_epu32(x_upper, lower), _mm512_srli_epi64(_mm512_mul_epu32(x, lower), 32));
  const __m512i other = _mm512_add_epi64(_mm512_mul_epu32(x, upper), _mm512_and_si512(middle, copies(0xFFFFFFFF)));
  return _mm512_add_epi64(_mm512_mul_epu32(x_upper, upper),
                          _mm512_add_epi64(_mm512_srli_epi64(middle, 32), _mm512_srli_epi64(other, 32)));
}

}  // namespace
}  // namespace bloomery::kernels

#endif
