// Split-block kernels for AVX2: one 256-bit register is exactly one block of 8 words.
//
//   low half of hash --copy x8--> * salt --> >> 27 --> 1 << --> mask: one bit in each word
//
// Same contract and same bits as split_block_scalar.cpp; read that one first.
#include "kernels/split_block.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

// The target stands on each function: nothing that others could link to is compiled for AVX2.
#define BLOOMERY_AVX2 [[gnu::target("avx2")]]

namespace bloomery::kernels {
namespace {

bool supported() { return __builtin_cpu_supports("avx2") != 0; }

BLOOMERY_AVX2 inline __m256i mask_of(std::uint64_t lo) {
  const __m256i salt = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(split_block_salt));
  const __m256i low = _mm256_set1_epi32(static_cast<int>(lo));
  const __m256i bit = _mm256_srli_epi32(_mm256_mullo_epi32(low, salt), 27);  // 0 .. 31
  return _mm256_sllv_epi32(_mm256_set1_epi32(1), bit);
}

BLOOMERY_AVX2 inline bool insert_one(std::uint8_t* block, std::uint64_t lo) {
  auto* const at = reinterpret_cast<__m256i*>(block);
  const __m256i words = _mm256_loadu_si256(at);
  const __m256i mask = mask_of(lo);
  _mm256_storeu_si256(at, _mm256_or_si256(words, mask));
  return _mm256_testc_si256(words, mask) == 0;  // testc: 1 iff (~words & mask) == 0
}

BLOOMERY_AVX2 inline bool has_one(const std::uint8_t* block, std::uint64_t lo) {
  const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block));
  return _mm256_testc_si256(words, mask_of(lo)) != 0;
}

BLOOMERY_AVX2 void insert(std::uint8_t* bytes, std::uint64_t blocks, const std::uint64_t* hashes, std::size_t count,
                          std::uint8_t* is_new) {
  for (std::size_t i = 0; i < split_block_in_flight && i < count; ++i) {
    __builtin_prefetch(bytes + split_block_offset(hashes[2 * i], blocks), 1, 2);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t ahead = i + split_block_in_flight;
    if (ahead < count) __builtin_prefetch(bytes + split_block_offset(hashes[2 * ahead], blocks), 1, 2);
    const bool fresh = insert_one(bytes + split_block_offset(hashes[2 * i], blocks), hashes[2 * i]);
    if (is_new != nullptr) is_new[i] = fresh ? 1 : 0;
  }
}

BLOOMERY_AVX2 void has(const std::uint8_t* bytes, std::uint64_t blocks, const std::uint64_t* hashes, std::size_t count,
                       std::uint64_t* bitmap) {
  for (std::size_t i = 0; i < split_block_in_flight && i < count; ++i) {
    __builtin_prefetch(bytes + split_block_offset(hashes[2 * i], blocks), 0, 2);
  }
  std::uint64_t answers = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t ahead = i + split_block_in_flight;
    if (ahead < count) __builtin_prefetch(bytes + split_block_offset(hashes[2 * ahead], blocks), 0, 2);
    const bool hit = has_one(bytes + split_block_offset(hashes[2 * i], blocks), hashes[2 * i]);
    answers |= std::uint64_t{hit} << (i % 64);
    if (i % 64 == 63 || i + 1 == count) {
      bitmap[i / 64] = answers;
      answers = 0;
    }
  }
}

}  // namespace

const split_block_kernel split_block_avx2 = {"avx2", supported, insert, has};

}  // namespace bloomery::kernels

#endif
