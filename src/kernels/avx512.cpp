// Kernels for AVX-512 (F, CD, DQ, BW, VL): one register of 512 bits is a block of split_block512 or two blocks of
// split_block.
//
//   stage            eight keys at a time: hash, choice and block number in vectors
//   split_block512   choice --copy x8--> >> 16 + 6 j --> 1 rotated by that (modulo 64) --> mask; one test
//   split_block      two keys at a time
//   blocked          eight probes at a time: choice * powers of step, words selected from the block by permutation
//
// A test produces a byte that is 0 iff the key is present; one comparison converts 64 such bytes into a bitmap word.
#include "kernels/avx512_common.hpp"

#if defined(__x86_64__)

namespace bloomery::kernels {
namespace {

#include "kernels/plain.inc.hpp"

BLOOMERY_TARGET inline __m512i load512(const void* at) { return _mm512_loadu_si512(at); }

struct split_block_ops : plain_split_block {
  BLOOMERY_TARGET static __m512i choices8(__m512i hash64s) { return hash64s; }

  // ((hash64 >> 32) * blocks) >> 32, times 32, for fewer than 2^32 blocks.
  BLOOMERY_TARGET static __m512i offsets8(__m512i hash64s, std::uint64_t blocks) {
    const __m512i product = _mm512_mul_epu32(_mm512_srli_epi64(hash64s, 32), copies(blocks));
    return _mm512_slli_epi64(_mm512_srli_epi64(product, 32), 5);
  }

  BLOOMERY_TARGET static __m256i mask_of(std::uint64_t choice) {
    const __m256i salt = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(split_block_salt));
    const __m256i bit = _mm256_srli_epi32(_mm256_mullo_epi32(_mm256_set1_epi32(static_cast<int>(choice)), salt), 27);
    return _mm256_sllv_epi32(_mm256_set1_epi32(1), bit);
  }

  // Bit j: the key's bit in word j is clear.
  BLOOMERY_TARGET static __mmask8 missing(const std::uint8_t* block, std::uint64_t choice, std::uint32_t) {
    return _mm256_testn_epi32_mask(mask_of(choice), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block)));
  }

  BLOOMERY_TARGET static __mmask8 insert_missing(std::uint8_t* block, std::uint64_t choice, std::uint32_t) {
    auto* const at = reinterpret_cast<__m256i*>(block);
    const __m256i words = _mm256_loadu_si256(at);
    const __m256i mask = mask_of(choice);
    _mm256_storeu_si256(at, _mm256_or_si256(words, mask));
    return _mm256_testn_epi32_mask(mask, words);
  }

  // The same for two keys with adjacent choices: bits 0 .. 7 and 8 .. 15.
  BLOOMERY_TARGET static __mmask16 missing2(const std::uint8_t* first, const std::uint8_t* second,
                                            const std::uint64_t* choices) {
    const __m512i pick = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2);
    const __m512i salt = _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(split_block_salt)));
    const __m512i pair = _mm512_castsi128_si512(_mm_loadu_si128(reinterpret_cast<const __m128i*>(choices)));
    const __m512i copied = _mm512_permutexvar_epi32(pick, pair);
    const __m512i bit = _mm512_srli_epi32(_mm512_mullo_epi32(copied, salt), 27);
    const __m512i words =
        _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(first))),
                           _mm256_loadu_si256(reinterpret_cast<const __m256i*>(second)), 1);
    return _mm512_testn_epi32_mask(_mm512_sllv_epi32(_mm512_set1_epi32(1), bit), words);
  }

  BLOOMERY_TARGET static bool one_has(const std::uint8_t* block, std::uint64_t choice, std::uint32_t probes) {
    return missing(block, choice, probes) == 0;
  }
  BLOOMERY_TARGET static bool one_insert(std::uint8_t* block, std::uint64_t choice, std::uint32_t probes) {
    return insert_missing(block, choice, probes) != 0;
  }
};

// Common to split_block512 and blocked.
struct split_block512_numbers {
  // hi64(hash64 * blocks) * 64 by two products of 32 bits, for fewer than 2^32 lines.
  BLOOMERY_TARGET static __m512i offsets8(__m512i hash64s, std::uint64_t blocks) {
    const __m512i n = copies(blocks);
    const __m512i low = _mm512_srli_epi64(_mm512_mul_epu32(hash64s, n), 32);
    const __m512i high = _mm512_add_epi64(_mm512_mul_epu32(_mm512_srli_epi64(hash64s, 32), n), low);
    return _mm512_slli_epi64(_mm512_srli_epi64(high, 32), 6);
  }
};

struct split_block512_ops : plain_split_block512, split_block512_numbers {
  BLOOMERY_TARGET static __m512i choices8(__m512i hash64s) {
    return _mm512_mullo_epi64(hash64s, copies(golden_multiplier));
  }

  BLOOMERY_TARGET static __m512i mask_of(std::uint64_t choice) {
    const __m512i shifts = _mm512_setr_epi64(16, 22, 28, 34, 40, 46, 52, 58);
    return _mm512_rolv_epi64(_mm512_set1_epi64(1), _mm512_srlv_epi64(copies(choice), shifts));
  }

  BLOOMERY_TARGET static __mmask8 missing(const std::uint8_t* block, std::uint64_t choice, std::uint32_t) {
    return _mm512_testn_epi64_mask(mask_of(choice), load512(block));
  }

  BLOOMERY_TARGET static __mmask8 insert_missing(std::uint8_t* block, std::uint64_t choice, std::uint32_t) {
    const __m512i words = load512(block);
    const __m512i mask = mask_of(choice);
    _mm512_storeu_si512(block, _mm512_or_si512(words, mask));
    return _mm512_testn_epi64_mask(mask, words);
  }

  BLOOMERY_TARGET static bool one_has(const std::uint8_t* block, std::uint64_t choice, std::uint32_t probes) {
    return missing(block, choice, probes) == 0;
  }
  BLOOMERY_TARGET static bool one_insert(std::uint8_t* block, std::uint64_t choice, std::uint32_t probes) {
    return insert_missing(block, choice, probes) != 0;
  }
};

constexpr std::uint64_t power_of_step(unsigned exponent) {
  std::uint64_t power = 1;
  for (unsigned i = 0; i < exponent; ++i) power *= blocked_step;
  return power;
}

struct blocked_ops : plain_blocked, split_block512_numbers {
  // (2 hash64 + 1) * multiplier, with an addition instead of a shift and an OR.
  BLOOMERY_TARGET static __m512i choices8(__m512i hash64s) {
    return _mm512_add_epi64(_mm512_mullo_epi64(hash64s, copies(2 * golden_multiplier)), copies(golden_multiplier));
  }

  // x of the first eight probes; next_eight() computes the next eight.
  BLOOMERY_TARGET static __m512i first_eight(std::uint64_t choice) {
    alignas(64) static constexpr std::uint64_t powers[8] = {power_of_step(0), power_of_step(1), power_of_step(2),
                                                            power_of_step(3), power_of_step(4), power_of_step(5),
                                                            power_of_step(6), power_of_step(7)};
    return _mm512_mullo_epi64(copies(choice), _mm512_load_si512(powers));
  }
  BLOOMERY_TARGET static __m512i next_eight(__m512i x) { return _mm512_mullo_epi64(x, copies(power_of_step(8))); }

  BLOOMERY_TARGET static __m512i words_of(__m512i x) { return _mm512_srli_epi64(x, 61); }
  BLOOMERY_TARGET static __m512i bits_of(__m512i x) {
    return _mm512_rolv_epi64(_mm512_set1_epi64(1), _mm512_srli_epi64(x, 55));  // rotated by x >> 55 modulo 64
  }

  BLOOMERY_TARGET static __mmask8 missing(const std::uint8_t* block, std::uint64_t choice, std::uint32_t probes) {
    const __m512i words = load512(block);
    __m512i x = first_eight(choice);
    unsigned clear = 0;
    for (std::uint32_t left = probes;; left -= 8) {
      const unsigned here = _mm512_testn_epi64_mask(bits_of(x), _mm512_permutexvar_epi64(words_of(x), words));
      if (left <= 8) return static_cast<__mmask8>(clear | (here & ((1u << left) - 1)));
      clear |= here;
      x = next_eight(x);
    }
  }

  // Adds the bit of probe lane + Turn (modulo 8) to each lane of the mask, if that probe selects the word of the lane.
  template <int Turn>
  BLOOMERY_TARGET static __m512i gathered(__m512i mask, __m512i words, __m512i bits) {
    const __m512i lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    const __mmask8 mine = _mm512_cmpeq_epi64_mask(_mm512_alignr_epi64(words, words, Turn), lanes);
    return _mm512_mask_or_epi64(mask, mine, mask, _mm512_alignr_epi64(bits, bits, Turn));
  }

  // Several probes may select the same word, so each lane is combined with all eight probes in turn.
  BLOOMERY_TARGET static __m512i mask_of(std::uint64_t choice, std::uint32_t probes) {
    __m512i odd = _mm512_setzero_si512();
    __m512i even = _mm512_setzero_si512();
    __m512i x = first_eight(choice);
    for (std::uint32_t left = probes;; left -= 8) {
      const auto asked = static_cast<__mmask8>(left < 8 ? (1u << left) - 1 : 0xFFu);
      const __m512i words = words_of(x);
      const __m512i bits = _mm512_maskz_mov_epi64(asked, bits_of(x));
      even = gathered<0>(even, words, bits);
      odd = gathered<1>(odd, words, bits);
      even = gathered<2>(even, words, bits);
      odd = gathered<3>(odd, words, bits);
      even = gathered<4>(even, words, bits);
      odd = gathered<5>(odd, words, bits);
      even = gathered<6>(even, words, bits);
      odd = gathered<7>(odd, words, bits);
      if (left <= 8) return _mm512_or_si512(odd, even);
      x = next_eight(x);
    }
  }

  BLOOMERY_TARGET static __mmask8 insert_missing(std::uint8_t* block, std::uint64_t choice, std::uint32_t probes) {
    const __m512i words = load512(block);
    const __m512i mask = mask_of(choice, probes);
    _mm512_storeu_si512(block, _mm512_or_si512(words, mask));
    const __m512i missing_bits = _mm512_andnot_si512(words, mask);
    return _mm512_test_epi64_mask(missing_bits, missing_bits);
  }

  BLOOMERY_TARGET static bool one_has(const std::uint8_t* block, std::uint64_t choice, std::uint32_t probes) {
    return missing(block, choice, probes) == 0;
  }
  BLOOMERY_TARGET static bool one_insert(std::uint8_t* block, std::uint64_t choice, std::uint32_t probes) {
    return insert_missing(block, choice, probes) != 0;
  }
};

// For uses that need only the addresses of a layout.
template <class Layout>
struct addresses_ops : addresses<Layout> {
  BLOOMERY_TARGET static __m512i choices8(__m512i hash64s) { return hash64s; }
};

struct ops {
  using split_block = split_block_ops;
  using split_block512 = split_block512_ops;
  using blocked = blocked_ops;

  // Stages up to eight keys, selected by `mask`.
  template <class Layout, form Form>
  BLOOMERY_TARGET static void stage8(const std::uint64_t* words, __mmask8 mask, std::uint64_t whitening,
                                     std::uint64_t blocks, std::uint64_t* choices, std::uint64_t* offsets) {
    __m512i hash64s;
    if constexpr (Form == form::hashes) {
      const unsigned pairs = _pdep_u32(mask, 0x5555);  // hash64 of each pair
      const __m512i first = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(pairs), words);
      const __m512i last = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(pairs >> 8), words + 8);
      hash64s = _mm512_permutex2var_epi64(first, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), last);
    } else {
      hash64s = _mm512_maskz_loadu_epi64(mask, words);
      if constexpr (Form == form::mixed) hash64s = mix8(_mm512_xor_si512(hash64s, copies(whitening)));
    }
    _mm512_mask_storeu_epi64(choices, mask, Layout::choices8(hash64s));
    _mm512_mask_storeu_epi64(offsets, mask, Layout::offsets8(hash64s, blocks));
  }

  template <class Layout, form Form>
  BLOOMERY_TARGET static void stage(const std::uint64_t* words, std::size_t count, std::uint64_t whitening,
                                    std::uint64_t blocks, std::uint64_t* choices, std::uint64_t* offsets) {
    if (blocks >> 32 != 0) return plain_stage<Layout, Form>(words, count, whitening, blocks, choices, offsets);
    constexpr std::size_t step = Form == form::hashes ? 2 : 1;
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) {
      stage8<Layout, Form>(words + step * i, 0xFF, whitening, blocks, choices + i, offsets + i);
    }
    if (i < count) {
      const auto rest = static_cast<__mmask8>((1u << (count - i)) - 1);
      stage8<Layout, Form>(words + step * i, rest, whitening, blocks, choices + i, offsets + i);
    }
  }

  // Bit i: byte i is 0, for the first `count` of 64.
  BLOOMERY_TARGET static std::uint64_t zeros(const std::uint8_t* bytes, std::size_t count) {
    return _mm512_cmpeq_epi8_mask(load512(bytes), _mm512_setzero_si512()) & (~std::uint64_t{0} >> (64 - count));
  }

  template <class Layout, fetch Fetch>
  BLOOMERY_TARGET static std::uint64_t group_has(const std::uint8_t* bytes, const staged& g, const staged& ahead,
                                                 std::size_t count, std::uint32_t probes) {
    alignas(64) std::uint8_t missing[64];
    std::size_t i = 0;
    if constexpr (Layout::block_bytes == 32) {
      for (; i + 2 <= count; i += 2) {
        ask_for<Fetch>(bytes + ahead.offsets[i]);
        ask_for<Fetch>(bytes + ahead.offsets[i + 1]);
        const __mmask16 two = Layout::missing2(bytes + g.offsets[i], bytes + g.offsets[i + 1], g.choices + i);
        _store_mask16(reinterpret_cast<__mmask16*>(missing + i), two);
      }
    }
    for (; i < count; ++i) {
      ask_for<Fetch>(bytes + ahead.offsets[i]);
      missing[i] = Layout::missing(bytes + g.offsets[i], g.choices[i], probes);
    }
    return zeros(missing, count);
  }

  template <class Layout, fetch Fetch>
  BLOOMERY_TARGET static std::uint64_t group_insert(std::uint8_t* bytes, const staged& g, const staged& ahead,
                                                    std::size_t count, std::uint32_t probes) {
    alignas(64) std::uint8_t missing[64];
    for (std::size_t i = 0; i < count; ++i) {
      ask_for<Fetch>(bytes + ahead.offsets[i]);
      missing[i] = Layout::insert_missing(bytes + g.offsets[i], g.choices[i], probes);
    }
    return ~zeros(missing, count) & (~std::uint64_t{0} >> (64 - count));
  }

  // Compressed in registers, because compressed stores are slow on some processors.
  BLOOMERY_TARGET static std::size_t split(const std::uint64_t* hash64s, std::size_t count, std::uint64_t last_lower,
                                           std::uint64_t* lower, std::uint64_t* upper) {
    std::size_t in_lower = 0;
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) {
      const __m512i some = load512(hash64s + i);
      const __mmask8 below = _mm512_cmple_epu64_mask(some, copies(last_lower));
      _mm512_storeu_si512(lower + in_lower, _mm512_maskz_compress_epi64(below, some));
      _mm512_storeu_si512(upper + i - in_lower, _mm512_maskz_compress_epi64(_knot_mask8(below), some));
      // The conversion looks redundant. Without it, GCC 12 with -O1 -fsanitize=thread spills the mask as one byte and
      // counts four.
      in_lower += static_cast<std::size_t>(__builtin_popcount(_cvtmask8_u32(below)));
    }
    return in_lower + plain_ops::split(hash64s + i, count - i, last_lower, lower + in_lower, upper + i - in_lower);
  }

  BLOOMERY_TARGET static void stream(std::uint64_t* to, const std::uint64_t* buffer) {
    for (std::size_t word = 0; word < scatter_buffer; word += 8) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to + word), _mm512_load_si512(buffer + word));
    }
  }
  static void fence() { _mm_sfence(); }
};

#include "kernels/batch.inc.hpp"

// Counts bits as in avx2.cpp, 64 bytes at a time. (VPOPCNTDQ would do it in one step, but memory is the bottleneck.)
struct fill_ops : plain_fill {
  BLOOMERY_TARGET static __m512i ones_of_bytes(__m512i bytes) {
    const __m512i table = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    const __m512i half = _mm512_set1_epi8(15);
    const __m512i low = _mm512_and_si512(bytes, half);
    const __m512i high = _mm512_and_si512(_mm512_srli_epi16(bytes, 4), half);
    return _mm512_add_epi8(_mm512_shuffle_epi8(table, low), _mm512_shuffle_epi8(table, high));
  }

  BLOOMERY_TARGET static __m512i ones_of_words(__m512i words) {
    return _mm512_sad_epu8(ones_of_bytes(words), _mm512_setzero_si512());
  }

  BLOOMERY_TARGET static std::uint64_t sum_of(__m512i words) {
    return static_cast<std::uint64_t>(_mm512_reduce_add_epi64(words));
  }

  // The product of the four words of each half, in words 0 and 4. Words are below 2^16, so the product of two fits into
  // 32 bits.
  BLOOMERY_TARGET static __m512i products_of_halves(__m512i words) {
    const __m512i two = _mm512_mul_epu32(words, _mm512_permutex_epi64(words, 0b01'00'11'10));
    return _mm512_mul_epu32(two, _mm512_permutex_epi64(two, 0b10'11'00'01));
  }

  BLOOMERY_TARGET static std::uint64_t ones(const std::uint8_t* bytes, std::size_t count) {
    __m512i sum = _mm512_setzero_si512();
    std::size_t i = 0;
    for (; i + 64 <= count; i += 64) sum = _mm512_add_epi64(sum, ones_of_words(load512(bytes + i)));
    return sum_of(sum) + plain_fill::ones(bytes + i, count - i);
  }

  BLOOMERY_TARGET static std::uint64_t common_ones(const std::uint8_t* a, const std::uint8_t* b, std::size_t count) {
    __m512i sum = _mm512_setzero_si512();
    std::size_t i = 0;
    for (; i + 64 <= count; i += 64) {
      sum = _mm512_add_epi64(sum, ones_of_words(_mm512_and_si512(load512(a + i), load512(b + i))));
    }
    return sum_of(sum) + plain_fill::common_ones(a + i, b + i, count - i);
  }

  // For two blocks: returns the products of the ones of adjacent words, and adds all ones to `sum`.
  BLOOMERY_TARGET static __m512i products_of_pairs(const std::uint8_t* two_blocks, __m512i& sum) {
    const __m512i of_bytes = ones_of_bytes(load512(two_blocks));
    sum = _mm512_add_epi64(sum, _mm512_sad_epu8(of_bytes, _mm512_setzero_si512()));
    const __m512i of_pairs = _mm512_maddubs_epi16(of_bytes, _mm512_set1_epi8(1));
    const __m512i of_words = _mm512_madd_epi16(of_pairs, _mm512_set1_epi16(1));
    return _mm512_mul_epu32(of_words, _mm512_srli_epi64(of_words, 32));
  }

  // Four blocks at a time: a has the pairs of blocks 0 and 1, b those of 2 and 3.
  BLOOMERY_TARGET static std::uint64_t split_block(const std::uint8_t* bytes, std::size_t count, std::uint64_t* out) {
    const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 0, 0, 0, 0);
    __m512i sum = _mm512_setzero_si512();
    std::size_t block = 0;
    for (; block + 4 <= count; block += 4) {
      const __m512i a = products_of_pairs(bytes + 32 * block, sum);
      const __m512i b = products_of_pairs(bytes + 32 * block + 64, sum);
      const __m512i fours = _mm512_mul_epu32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
      // Words 0, 1, 4, 5: the products of blocks 0, 2, 1, 3.
      const __m512i eights = _mm512_mul_epu32(fours, _mm512_permutex_epi64(fours, 0b01'00'11'10));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + block),
                          _mm512_castsi512_si256(_mm512_permutexvar_epi64(order, eights)));
    }
    return sum_of(sum) + plain_fill::split_block(bytes + 32 * block, count - block, out + block);
  }

  BLOOMERY_TARGET static std::uint64_t split_block512(const std::uint8_t* bytes, std::size_t count,
                                                      std::uint64_t* out) {
    __m512i sum = _mm512_setzero_si512();
    for (std::size_t block = 0; block < count; ++block) {
      const __m512i words = ones_of_words(load512(bytes + 64 * block));
      sum = _mm512_add_epi64(sum, words);
      const __m512i four = _mm512_mul_epu32(words, _mm512_shuffle_i64x2(words, words, 0b01'00'11'10));
      const __m512i product = products_of_halves(four);
      out[block] = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm512_castsi512_si128(product)));
    }
    return sum_of(sum);
  }

  // The sums of pairs of adjacent words of a and of b.
  BLOOMERY_TARGET static __m512i sums_of_pairs(__m512i a, __m512i b) {
    return _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
  }

  // Eight blocks at a time: three rounds, each of which combines pairs of vectors into one.
  BLOOMERY_TARGET static std::uint64_t blocked(const std::uint8_t* bytes, std::size_t count, std::uint64_t* out) {
    __m512i sum = _mm512_setzero_si512();
    std::size_t block = 0;
    for (; block + 8 <= count; block += 8) {
      __m512i v[8];
      for (std::size_t i = 0; i < 8; ++i) v[i] = ones_of_words(load512(bytes + 64 * (block + i)));
      for (std::size_t i = 0; i < 4; ++i) v[i] = sums_of_pairs(v[2 * i], v[2 * i + 1]);
      // Each quarter of v[i] now has a partial sum of blocks 2i and 2i + 1.
      for (std::size_t i = 0; i < 2; ++i) {
        v[i] = _mm512_add_epi64(_mm512_shuffle_i64x2(v[2 * i], v[2 * i + 1], 0b10'00'10'00),
                                _mm512_shuffle_i64x2(v[2 * i], v[2 * i + 1], 0b11'01'11'01));
      }
      const __m512i all = _mm512_add_epi64(_mm512_shuffle_i64x2(v[0], v[1], 0b10'00'10'00),
                                           _mm512_shuffle_i64x2(v[0], v[1], 0b11'01'11'01));
      _mm512_storeu_si512(out + block, all);
      sum = _mm512_add_epi64(sum, all);
    }
    return sum_of(sum) + plain_fill::blocked(bytes + 64 * block, count - block, out + block);
  }
};

constexpr const char* name_of_set = "avx512";
constexpr const char* needs_of_set = "avx512f avx512cd avx512dq avx512bw avx512vl avx2 bmi1 bmi2 popcnt";
bool supported() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

}  // namespace

#define BLOOMERY_SET avx512
#define BLOOMERY_NAMESPACE on_avx512
#include "kernels/set.inc.hpp"

}  // namespace bloomery::kernels

#endif
