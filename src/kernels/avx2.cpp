// Kernels for AVX2: one 256-bit register is a block of split_block, two are a block of split_block512.
//
//   split_block      choice --copy x8--> * salt --> >> 27 --> 1 << --> mask: one bit in each 32-bit word
//   split_block512   choice --copy x8--> >> 16 + 6 j --> & 63 --> 1 << --> mask: one bit in each 64-bit word
//
// Hashes, block numbers and blocked are scalar, because AVX2 has no 64-bit vector multiplication.
#include "kernels/kernels.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

// The target is an attribute of each function, so no function that other files may link to is compiled for AVX2.
#define BLOOMERY_TARGET [[gnu::target("avx2,bmi,bmi2,popcnt")]]

namespace bloomery::kernels {
namespace {

#include "kernels/plain.inc.hpp"

BLOOMERY_TARGET inline __m256i load256(const std::uint8_t* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

BLOOMERY_TARGET inline void store256(std::uint8_t* at, __m256i words) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), words);
}

struct split_block_ops : plain_split_block {
  BLOOMERY_TARGET static __m256i mask_of(std::uint64_t choice) {
    const __m256i salt = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(split_block_salt));
    const __m256i bit = _mm256_srli_epi32(_mm256_mullo_epi32(_mm256_set1_epi32(static_cast<int>(choice)), salt), 27);
    return _mm256_sllv_epi32(_mm256_set1_epi32(1), bit);
  }

  BLOOMERY_TARGET static bool one_insert(std::uint8_t* block, std::uint64_t choice, std::uint32_t) {
    const __m256i words = load256(block);
    const __m256i mask = mask_of(choice);
    store256(block, _mm256_or_si256(words, mask));
    return _mm256_testc_si256(words, mask) == 0;  // testc: 1 iff (~words & mask) == 0
  }

  BLOOMERY_TARGET static bool one_has(const std::uint8_t* block, std::uint64_t choice, std::uint32_t) {
    return _mm256_testc_si256(load256(block), mask_of(choice)) != 0;
  }
};

struct split_block512_ops : plain_split_block512 {
  // Masks of the first and the last four words.
  BLOOMERY_TARGET static __m256i mask_of(std::uint64_t choice, __m256i shifts) {
    const __m256i shifted = _mm256_srlv_epi64(_mm256_set1_epi64x(static_cast<long long>(choice)), shifts);
    return _mm256_sllv_epi64(_mm256_set1_epi64x(1), _mm256_and_si256(shifted, _mm256_set1_epi64x(63)));
  }
  BLOOMERY_TARGET static __m256i first_mask(std::uint64_t choice) {
    return mask_of(choice, _mm256_setr_epi64x(16, 22, 28, 34));
  }
  BLOOMERY_TARGET static __m256i last_mask(std::uint64_t choice) {
    return mask_of(choice, _mm256_setr_epi64x(40, 46, 52, 58));
  }

  BLOOMERY_TARGET static bool one_insert(std::uint8_t* block, std::uint64_t choice, std::uint32_t) {
    const __m256i first = load256(block);
    const __m256i last = load256(block + 32);
    const __m256i first_bits = first_mask(choice);
    const __m256i last_bits = last_mask(choice);
    store256(block, _mm256_or_si256(first, first_bits));
    store256(block + 32, _mm256_or_si256(last, last_bits));
    const __m256i missing =
        _mm256_or_si256(_mm256_andnot_si256(first, first_bits), _mm256_andnot_si256(last, last_bits));
    return _mm256_testz_si256(missing, missing) == 0;
  }

  BLOOMERY_TARGET static bool one_has(const std::uint8_t* block, std::uint64_t choice, std::uint32_t) {
    const __m256i missing = _mm256_or_si256(_mm256_andnot_si256(load256(block), first_mask(choice)),
                                            _mm256_andnot_si256(load256(block + 32), last_mask(choice)));
    return _mm256_testz_si256(missing, missing) != 0;
  }
};

template <class Layout>
using addresses_ops = addresses<Layout>;

struct ops : plain_ops {
  using split_block = split_block_ops;
  using split_block512 = split_block512_ops;
  using blocked = plain_blocked;

  BLOOMERY_TARGET static void stream(std::uint64_t* to, const std::uint64_t* buffer) {
    for (std::size_t word = 0; word < scatter_buffer; word += 4) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + word),
                          _mm256_load_si256(reinterpret_cast<const __m256i*>(buffer + word)));
    }
  }
  static void fence() { _mm_sfence(); }
};

#include "kernels/batch.inc.hpp"

// Counts bits by looking up both nibbles of every byte in a table of 16.
struct fill_ops : plain_fill {
  BLOOMERY_TARGET static __m256i ones_of_bytes(__m256i bytes) {
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                                           0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i half = _mm256_set1_epi8(15);
    const __m256i low = _mm256_and_si256(bytes, half);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), half);
    return _mm256_add_epi8(_mm256_shuffle_epi8(table, low), _mm256_shuffle_epi8(table, high));
  }

  BLOOMERY_TARGET static __m256i ones_of_words(__m256i words) {
    return _mm256_sad_epu8(ones_of_bytes(words), _mm256_setzero_si256());
  }

  BLOOMERY_TARGET static std::uint64_t sum_of(__m256i words) {
    const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two))));
  }

  // The product of four words below 2^16; the product of two of them fits into 32 bits.
  BLOOMERY_TARGET static std::uint64_t product_of(__m256i words) {
    const __m128i two = _mm_mul_epu32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_mul_epu32(two, _mm_unpackhi_epi64(two, two))));
  }

  BLOOMERY_TARGET static std::uint64_t ones(const std::uint8_t* bytes, std::size_t count) {
    __m256i sum = _mm256_setzero_si256();
    std::size_t i = 0;
    for (; i + 32 <= count; i += 32) sum = _mm256_add_epi64(sum, ones_of_words(load256(bytes + i)));
    return sum_of(sum) + plain_fill::ones(bytes + i, count - i);
  }

  BLOOMERY_TARGET static std::uint64_t common_ones(const std::uint8_t* a, const std::uint8_t* b, std::size_t count) {
    __m256i sum = _mm256_setzero_si256();
    std::size_t i = 0;
    for (; i + 32 <= count; i += 32) {
      sum = _mm256_add_epi64(sum, ones_of_words(_mm256_and_si256(load256(a + i), load256(b + i))));
    }
    return sum_of(sum) + plain_fill::common_ones(a + i, b + i, count - i);
  }

  BLOOMERY_TARGET static std::uint64_t split_block(const std::uint8_t* bytes, std::size_t count, std::uint64_t* out) {
    __m256i sum = _mm256_setzero_si256();
    for (std::size_t block = 0; block < count; ++block) {
      const __m256i of_bytes = ones_of_bytes(load256(bytes + 32 * block));
      sum = _mm256_add_epi64(sum, _mm256_sad_epu8(of_bytes, _mm256_setzero_si256()));
      const __m256i of_pairs = _mm256_maddubs_epi16(of_bytes, _mm256_set1_epi8(1));
      const __m256i of_words = _mm256_madd_epi16(of_pairs, _mm256_set1_epi16(1));
      out[block] = product_of(_mm256_mul_epu32(of_words, _mm256_srli_epi64(of_words, 32)));
    }
    return sum_of(sum);
  }

  BLOOMERY_TARGET static std::uint64_t split_block512(const std::uint8_t* bytes, std::size_t count,
                                                      std::uint64_t* out) {
    __m256i sum = _mm256_setzero_si256();
    for (std::size_t block = 0; block < count; ++block) {
      const __m256i first = ones_of_words(load256(bytes + 64 * block));
      const __m256i last = ones_of_words(load256(bytes + 64 * block + 32));
      sum = _mm256_add_epi64(sum, _mm256_add_epi64(first, last));
      out[block] = product_of(_mm256_mul_epu32(first, last));
    }
    return sum_of(sum);
  }

  BLOOMERY_TARGET static std::uint64_t blocked(const std::uint8_t* bytes, std::size_t count, std::uint64_t* out) {
    std::uint64_t sum = 0;
    for (std::size_t block = 0; block < count; ++block) {
      const __m256i of_bytes =
          _mm256_add_epi8(ones_of_bytes(load256(bytes + 64 * block)), ones_of_bytes(load256(bytes + 64 * block + 32)));
      out[block] = sum_of(_mm256_sad_epu8(of_bytes, _mm256_setzero_si256()));
      sum += out[block];
    }
    return sum;
  }
};

constexpr const char* name_of_set = "avx2";
constexpr const char* needs_of_set = "avx2 bmi1 bmi2 popcnt";
bool supported() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("popcnt");
}

}  // namespace

#define BLOOMERY_SET avx2
#define BLOOMERY_NAMESPACE on_avx2
#include "kernels/set.inc.hpp"

}  // namespace bloomery::kernels

#endif
