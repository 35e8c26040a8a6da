// single_key: tests and sets the bits of one key in its block, inlined into the caller.
//
// A program that is compiled for every x86-64 processor cannot use the intrinsics of AVX2 or AVX-512 inline, and a call
// per key costs more than the work. So the instructions are written in assembly, behind a test of the instruction set
// that kernel.hpp has chosen. They are the same in every translation unit, whatever processor it is compiled for.
//
// Every key is a call on other processors, under AddressSanitizer, ThreadSanitizer and MemorySanitizer (which do not see
// the accesses of assembly), and with -DBLOOMERY_NO_INLINE_ASSEMBLY, which -masm=intel needs.
#pragma once

#include <bloomery/detail/export.hpp>

#include <cstdint>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define BLOOMERY_NO_INLINE_ASSEMBLY
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BLOOMERY_NO_INLINE_ASSEMBLY
#endif

namespace BLOOMERY_EXPORT bloomery {

namespace layouts {
class split_block;
class split_block512;
}  // namespace layouts

namespace detail {

/// The instruction set whose inline code may be used; `none` until the library is initialised, and if the chosen
/// kernels have no such code.
enum class inline_set : int { none, avx2, avx512 };
extern const inline_set chosen_inline_set;

/// The constants of the layouts in the form that the instructions read.
struct single_key_constants {
  alignas(64) std::uint64_t ones64[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  alignas(64) std::uint64_t shifts64[8] = {16, 22, 28, 34, 40, 46, 52, 58};
  alignas(32) std::uint64_t low_six_bits[4] = {63, 63, 63, 63};
  alignas(32) std::uint32_t ones32[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  alignas(32) std::uint32_t salts[8] = {0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D,
                                        0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31};
  std::uint64_t multiplier = 0x9E3779B97F4A7C15;
};
[[gnu::visibility("hidden")]] inline constexpr single_key_constants for_single_keys{};

/// For layouts with inline code, functions for a block of the layout and the hash64 of a key:
///   has_avx512, has_avx2        whether all bits of the key are set
///   insert_avx512, insert_avx2  sets them; returns whether one was clear
template <class L>
struct single_key;

#if defined(__x86_64__) && defined(__GNUC__) && !defined(BLOOMERY_NO_INLINE_ASSEMBLY)

// AVX-512 code uses registers from 16 on, which need no vzeroupper. A compiler for processors without AVX-512 uses none
// of them, and rejects their names.
#if defined(__AVX512F__)
#define BLOOMERY_CHANGED_AVX512 "k1", "xmm16", "xmm17"
#else
#define BLOOMERY_CHANGED_AVX512 "cc"
#endif
// A compiler for processors without AVX leaves the upper halves of registers alone. Values there make its own
// instructions slow.
#if defined(__AVX__)
#define BLOOMERY_END_AVX2 ""
#else
#define BLOOMERY_END_AVX2 "\n\tvzeroupper"
#endif

template <>
struct single_key<layouts::split_block> {
  using block_bytes = std::uint8_t[32];

#define BLOOMERY_MASK_AVX512               \
  "vpbroadcastd %[x], %%ymm16\n\t"         \
  "vmovdqa32 %[ones], %%ymm17\n\t"         \
  "vpmulld %[salts], %%ymm16, %%ymm16\n\t" \
  "vpsrld $27, %%ymm16, %%ymm16\n\t"       \
  "vpsllvd %%ymm16, %%ymm17, %%ymm16\n\t"
#define BLOOMERY_MASK_AVX2               \
  "vmovd %[x], %%xmm0\n\t"               \
  "vpbroadcastd %%xmm0, %%ymm0\n\t"      \
  "vmovdqa %[ones], %%ymm1\n\t"          \
  "vpmulld %[salts], %%ymm0, %%ymm0\n\t" \
  "vpsrld $27, %%ymm0, %%ymm0\n\t"       \
  "vpsllvd %%ymm0, %%ymm1, %%ymm0\n\t"
#define BLOOMERY_INPUT \
  [x] "r"(static_cast<std::uint32_t>(hash64)), [salts] "m"(for_single_keys.salts), [ones] "m"(for_single_keys.ones32)

  [[gnu::always_inline]] static bool has_avx512(const std::uint8_t* block, std::uint64_t hash64) noexcept {
    bool all;
    const auto& at = *reinterpret_cast<const block_bytes*>(block);
    __asm__(BLOOMERY_MASK_AVX512
            "vptestnmd %[at], %%ymm16, %%k1\n\t"
            "kortestb %%k1, %%k1"
            : "=@ccz"(all)
            : [at] "m"(at), BLOOMERY_INPUT
            : BLOOMERY_CHANGED_AVX512);
    return all;
  }

  [[gnu::always_inline]] static bool insert_avx512(std::uint8_t* block, std::uint64_t hash64) noexcept {
    bool all;
    auto& at = *reinterpret_cast<block_bytes*>(block);
    __asm__(BLOOMERY_MASK_AVX512
            "vmovdqu32 %[at], %%ymm17\n\t"
            "vptestnmd %%ymm17, %%ymm16, %%k1\n\t"
            "vpord %%ymm17, %%ymm16, %%ymm16\n\t"
            "vmovdqu32 %%ymm16, %[at]\n\t"
            "kortestb %%k1, %%k1"
            : "=@ccz"(all), [at] "+m"(at)
            : BLOOMERY_INPUT
            : BLOOMERY_CHANGED_AVX512);
    return !all;
  }

  [[gnu::always_inline]] static bool has_avx2(const std::uint8_t* block, std::uint64_t hash64) noexcept {
    bool all;
    const auto& at = *reinterpret_cast<const block_bytes*>(block);
    __asm__(BLOOMERY_MASK_AVX2
            "vmovdqu %[at], %%ymm1\n\t"
            "vptest %%ymm0, %%ymm1" BLOOMERY_END_AVX2
            : "=@ccc"(all)
            : [at] "m"(at), BLOOMERY_INPUT
            : "xmm0", "xmm1");
    return all;
  }

  [[gnu::always_inline]] static bool insert_avx2(std::uint8_t* block, std::uint64_t hash64) noexcept {
    bool all;
    auto& at = *reinterpret_cast<block_bytes*>(block);
    __asm__(BLOOMERY_MASK_AVX2
            "vmovdqu %[at], %%ymm1\n\t"
            "vptest %%ymm0, %%ymm1\n\t"
            "vpor %%ymm0, %%ymm1, %%ymm1\n\t"
            "vmovdqu %%ymm1, %[at]" BLOOMERY_END_AVX2
            : "=@ccc"(all), [at] "+m"(at)
            : BLOOMERY_INPUT
            : "xmm0", "xmm1");
    return !all;
  }

#undef BLOOMERY_MASK_AVX512
#undef BLOOMERY_MASK_AVX2
#undef BLOOMERY_INPUT
};

template <>
struct single_key<layouts::split_block512> {
  using block_bytes = std::uint8_t[64];
  using half_bytes = std::uint8_t[32];

#define BLOOMERY_MASK_AVX512                \
  "vpbroadcastq %[x], %%zmm16\n\t"          \
  "vmovdqa64 %[ones], %%zmm17\n\t"          \
  "vpsrlvq %[shifts], %%zmm16, %%zmm16\n\t" \
  "vprolvq %%zmm16, %%zmm17, %%zmm16\n\t"
#define BLOOMERY_INPUT                                                                  \
  [x] "r"(hash64 * for_single_keys.multiplier), [shifts] "m"(for_single_keys.shifts64), \
      [ones] "m"(for_single_keys.ones64)
// The masks of the lower and the upper half, in ymm0 and ymm1.
#define BLOOMERY_MASKS_AVX2               \
  "vmovq %[x], %%xmm0\n\t"                \
  "vpbroadcastq %%xmm0, %%ymm0\n\t"       \
  "vmovdqa %[ones], %%ymm2\n\t"           \
  "vpsrlvq %[upper], %%ymm0, %%ymm1\n\t"  \
  "vpsrlvq %[shifts], %%ymm0, %%ymm0\n\t" \
  "vpand %[six], %%ymm0, %%ymm0\n\t"      \
  "vpand %[six], %%ymm1, %%ymm1\n\t"      \
  "vpsllvq %%ymm0, %%ymm2, %%ymm0\n\t"    \
  "vpsllvq %%ymm1, %%ymm2, %%ymm1\n\t"
#define BLOOMERY_INPUT_AVX2                                                                                \
  BLOOMERY_INPUT, [upper] "m"(*reinterpret_cast<const std::uint64_t(*)[4]>(for_single_keys.shifts64 + 4)), \
      [six] "m"(for_single_keys.low_six_bits)

  [[gnu::always_inline]] static bool has_avx512(const std::uint8_t* block, std::uint64_t hash64) noexcept {
    bool all;
    const auto& at = *reinterpret_cast<const block_bytes*>(block);
    __asm__(BLOOMERY_MASK_AVX512
            "vptestnmq %[at], %%zmm16, %%k1\n\t"
            "kortestb %%k1, %%k1"
            : "=@ccz"(all)
            : [at] "m"(at), BLOOMERY_INPUT
            : BLOOMERY_CHANGED_AVX512);
    return all;
  }

  [[gnu::always_inline]] static bool insert_avx512(std::uint8_t* block, std::uint64_t hash64) noexcept {
    bool all;
    auto& at = *reinterpret_cast<block_bytes*>(block);
    __asm__(BLOOMERY_MASK_AVX512
            "vmovdqu64 %[at], %%zmm17\n\t"
            "vptestnmq %%zmm17, %%zmm16, %%k1\n\t"
            "vporq %%zmm17, %%zmm16, %%zmm16\n\t"
            "vmovdqu64 %%zmm16, %[at]\n\t"
            "kortestb %%k1, %%k1"
            : "=@ccz"(all), [at] "+m"(at)
            : BLOOMERY_INPUT
            : BLOOMERY_CHANGED_AVX512);
    return !all;
  }

  [[gnu::always_inline]] static bool has_avx2(const std::uint8_t* block, std::uint64_t hash64) noexcept {
    bool all;
    const auto& low = *reinterpret_cast<const half_bytes*>(block);
    const auto& high = *reinterpret_cast<const half_bytes*>(block + sizeof(half_bytes));
    __asm__(BLOOMERY_MASKS_AVX2
            "vmovdqu %[low], %%ymm2\n\t"
            "vpandn %%ymm0, %%ymm2, %%ymm0\n\t"
            "vmovdqu %[high], %%ymm2\n\t"
            "vpandn %%ymm1, %%ymm2, %%ymm1\n\t"
            "vpor %%ymm0, %%ymm1, %%ymm0\n\t"
            "vptest %%ymm0, %%ymm0" BLOOMERY_END_AVX2
            : "=@ccz"(all)
            : [low] "m"(low), [high] "m"(high), BLOOMERY_INPUT_AVX2
            : "xmm0", "xmm1", "xmm2");
    return all;
  }

  [[gnu::always_inline]] static bool insert_avx2(std::uint8_t* block, std::uint64_t hash64) noexcept {
    bool all;
    auto& low = *reinterpret_cast<half_bytes*>(block);
    auto& high = *reinterpret_cast<half_bytes*>(block + sizeof(half_bytes));
    __asm__(BLOOMERY_MASKS_AVX2
            "vmovdqu %[low], %%ymm2\n\t"
            "vpor %%ymm0, %%ymm2, %%ymm3\n\t"
            "vpandn %%ymm0, %%ymm2, %%ymm0\n\t"
            "vmovdqu %%ymm3, %[low]\n\t"
            "vmovdqu %[high], %%ymm2\n\t"
            "vpor %%ymm1, %%ymm2, %%ymm3\n\t"
            "vpandn %%ymm1, %%ymm2, %%ymm1\n\t"
            "vmovdqu %%ymm3, %[high]\n\t"
            "vpor %%ymm0, %%ymm1, %%ymm0\n\t"
            "vptest %%ymm0, %%ymm0" BLOOMERY_END_AVX2
            : "=@ccz"(all), [low] "+m"(low), [high] "+m"(high)
            : BLOOMERY_INPUT_AVX2
            : "xmm0", "xmm1", "xmm2", "xmm3");
    return !all;
  }

#undef BLOOMERY_MASK_AVX512
#undef BLOOMERY_INPUT
#undef BLOOMERY_MASKS_AVX2
#undef BLOOMERY_INPUT_AVX2
};

#undef BLOOMERY_CHANGED_AVX512
#undef BLOOMERY_END_AVX2

#endif

/// Whether layout L has inline code in this translation unit.
template <class L>
concept with_inline_code = requires {
  sizeof(single_key<L>);
};

}  // namespace detail
}  // namespace bloomery
