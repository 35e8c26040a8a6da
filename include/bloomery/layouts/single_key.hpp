// single_key: tests and sets the bits of one key in its block, inlined into the caller.
//
// x86-64: a program that is compiled for every processor cannot inline the intrinsics of AVX2 or AVX-512, and a
// function call per key costs more than the work. So the instructions are written in assembly, behind a test of the
// instruction set that kernel.hpp has selected. They are the same in every translation unit, whatever processor it is
// compiled for.
//
// AArch64: every processor has NEON, so its intrinsics are inlined without a test (single_key_neon.hpp).
//
// On other processors every key is a function call. On x86-64 this also applies under AddressSanitizer, ThreadSanitizer
// and MemorySanitizer, which do not see the memory accesses of assembly, and with -DBLOOMERY_NO_INLINE_ASSEMBLY, which
// -masm=intel requires.
#pragma once

#include <bloomery/detail/export.hpp>

#include <cstddef>
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

/// The instruction set whose inline code may be used; `none` until the library is initialized, and if the chosen
/// kernels have no such code.
enum class inline_set : int { none, avx2, avx512 };
extern const inline_set chosen_inline_set;

/// The constants of the layouts in the form that the instructions read.
struct single_key_constants {
  alignas(64) std::uint64_t ones64[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  alignas(64) std::uint64_t shifts64[8] = {16, 22, 28, 34, 40, 46, 52, 58};
  alignas(64) std::int64_t negative_shifts64[8] = {-16, -22, -28, -34, -40, -46, -52, -58};
  alignas(32) std::uint64_t low_six_bits[4] = {63, 63, 63, 63};
  alignas(32) std::uint32_t ones32[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  alignas(32) std::uint32_t salts[8] = {0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D,
                                        0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31};
  std::uint64_t multiplier = 0x9E3779B97F4A7C15;
};
[[gnu::visibility("hidden")]] inline constexpr single_key_constants for_single_keys{};

/// For layouts with inline code, functions for a block of the layout and the hash64 of a key:
///   has_avx512, has_avx2, has_neon           whether all bits of the key are set
///   insert_avx512, insert_avx2, insert_neon  sets them; returns whether one was clear
template <class L>
struct single_key;

#if defined(__x86_64__) && defined(__GNUC__) && !defined(BLOOMERY_NO_INLINE_ASSEMBLY)

// AVX-512 code uses registers from 16 on, which need no vzeroupper. A compiler for processors without AVX-512 uses none
// of them, and rejects their names.
#if defined(__AVX512F__)
#define BLOOMERY_CHANGED_avx512 "k1", "xmm16", "xmm17"
#else
#define BLOOMERY_CHANGED_avx512 "cc"
#endif
// A compiler for processors without AVX leaves the upper halves of registers alone. Values there make its own
// instructions slow.
#if defined(__AVX__)
#define BLOOMERY_END_AVX2 ""
#else
#define BLOOMERY_END_AVX2 "\n\tvzeroupper"
#endif

// The bytes of a block, or of half a block, as the operand of an assembly constraint.
template <std::size_t count>
[[gnu::always_inline]] inline auto& bytes_at(std::uint8_t* place) noexcept {
  return *reinterpret_cast<std::uint8_t(*)[count]>(place);
}
template <std::size_t count>
[[gnu::always_inline]] inline auto& bytes_at(const std::uint8_t* place) noexcept {
  return *reinterpret_cast<const std::uint8_t(*)[count]>(place);
}

// The functions of a layout for one set of instructions. A layout defines:
//   BLOOMERY_BLOCK_set(access)   the operands for the memory of `block`, which are read ("m") or changed ("+m")
//   BLOOMERY_INPUT               the other operands
//   BLOOMERY_HAS_set             instructions that set a flag if all bits of the key are set
//   BLOOMERY_INSERT_set          the same, and they set the bits
//   BLOOMERY_CHANGED_set         the registers that they change
#define BLOOMERY_FUNCTIONS(set, flag)                                                                      \
  [[gnu::always_inline]] static bool has_##set(const std::uint8_t* block, std::uint64_t hash64) noexcept { \
    bool all;                                                                                              \
    __asm__(BLOOMERY_HAS_##set                                                                             \
            : "=@cc" flag(all)                                                                             \
            : BLOOMERY_BLOCK_##set("m"), BLOOMERY_INPUT                                                    \
            : BLOOMERY_CHANGED_##set);                                                                     \
    return all;                                                                                            \
  }                                                                                                        \
  [[gnu::always_inline]] static bool insert_##set(std::uint8_t* block, std::uint64_t hash64) noexcept {    \
    bool all;                                                                                              \
    __asm__(BLOOMERY_INSERT_##set                                                                          \
            : "=@cc" flag(all), BLOOMERY_BLOCK_##set("+m")                                                 \
            : BLOOMERY_INPUT                                                                               \
            : BLOOMERY_CHANGED_##set);                                                                     \
    return !all;                                                                                           \
  }

// AVX-512 holds a block in one register: `reg` of words of `bits` bits, which instructions call `type`. The mask of the
// key is in register 16.
// clang-format off
#define BLOOMERY_TEST_AVX512(reg, type)                    \
  "vptestnm" type " %[at], %%" reg "16, %%k1\n\t"          \
  "kortestb %%k1, %%k1"
#define BLOOMERY_SET_AVX512(reg, type, bits)               \
  "vmovdqu" bits " %[at], %%" reg "17\n\t"                 \
  "vptestnm" type " %%" reg "17, %%" reg "16, %%k1\n\t"    \
  "vpor" type " %%" reg "17, %%" reg "16, %%" reg "16\n\t" \
  "vmovdqu" bits " %%" reg "16, %[at]\n\t"                 \
  "kortestb %%k1, %%k1"
// clang-format on

template <>
struct single_key<layouts::split_block> {
#define BLOOMERY_INPUT \
  [x] "r"(static_cast<std::uint32_t>(hash64)), [salts] "m"(for_single_keys.salts), [ones] "m"(for_single_keys.ones32)
#define BLOOMERY_MASK_AVX512               \
  "vpbroadcastd %[x], %%ymm16\n\t"         \
  "vmovdqa32 %[ones], %%ymm17\n\t"         \
  "vpmulld %[salts], %%ymm16, %%ymm16\n\t" \
  "vpsrld $27, %%ymm16, %%ymm16\n\t"       \
  "vpsllvd %%ymm16, %%ymm17, %%ymm16\n\t"
#define BLOOMERY_BLOCK_avx512(access) [at] access(bytes_at<32>(block))
#define BLOOMERY_HAS_avx512 BLOOMERY_MASK_AVX512 BLOOMERY_TEST_AVX512("ymm", "d")
#define BLOOMERY_INSERT_avx512 BLOOMERY_MASK_AVX512 BLOOMERY_SET_AVX512("ymm", "d", "32")
  BLOOMERY_FUNCTIONS(avx512, "z")

#define BLOOMERY_MASK_AVX2               \
  "vmovd %[x], %%xmm0\n\t"               \
  "vpbroadcastd %%xmm0, %%ymm0\n\t"      \
  "vmovdqa %[ones], %%ymm1\n\t"          \
  "vpmulld %[salts], %%ymm0, %%ymm0\n\t" \
  "vpsrld $27, %%ymm0, %%ymm0\n\t"       \
  "vpsllvd %%ymm0, %%ymm1, %%ymm0\n\t"
#define BLOOMERY_BLOCK_avx2(access) BLOOMERY_BLOCK_avx512(access)
#define BLOOMERY_HAS_avx2     \
  BLOOMERY_MASK_AVX2          \
  "vmovdqu %[at], %%ymm1\n\t" \
  "vptest %%ymm0, %%ymm1" BLOOMERY_END_AVX2
#define BLOOMERY_INSERT_avx2        \
  BLOOMERY_MASK_AVX2                \
  "vmovdqu %[at], %%ymm1\n\t"       \
  "vptest %%ymm0, %%ymm1\n\t"       \
  "vpor %%ymm0, %%ymm1, %%ymm0\n\t" \
  "vmovdqu %%ymm0, %[at]" BLOOMERY_END_AVX2
#define BLOOMERY_CHANGED_avx2 "xmm0", "xmm1"
  BLOOMERY_FUNCTIONS(avx2, "c")

#undef BLOOMERY_INPUT
#undef BLOOMERY_BLOCK_avx512
#undef BLOOMERY_BLOCK_avx2
#undef BLOOMERY_MASK_AVX512
#undef BLOOMERY_HAS_avx512
#undef BLOOMERY_INSERT_avx512
#undef BLOOMERY_MASK_AVX2
#undef BLOOMERY_HAS_avx2
#undef BLOOMERY_INSERT_avx2
#undef BLOOMERY_CHANGED_avx2
};

template <>
struct single_key<layouts::split_block512> {
#define BLOOMERY_INPUT                                                                         \
  [x] "r"(hash64 * for_single_keys.multiplier), [shifts] "m"(for_single_keys.shifts64),        \
      [ones] "m"(for_single_keys.ones64),                                                      \
      [upper] "m"(*reinterpret_cast<const std::uint64_t(*)[4]>(for_single_keys.shifts64 + 4)), \
      [six] "m"(for_single_keys.low_six_bits)
#define BLOOMERY_MASK_AVX512                \
  "vpbroadcastq %[x], %%zmm16\n\t"          \
  "vmovdqa64 %[ones], %%zmm17\n\t"          \
  "vpsrlvq %[shifts], %%zmm16, %%zmm16\n\t" \
  "vprolvq %%zmm16, %%zmm17, %%zmm16\n\t"
#define BLOOMERY_BLOCK_avx512(access) [at] access(bytes_at<64>(block))
#define BLOOMERY_HAS_avx512 BLOOMERY_MASK_AVX512 BLOOMERY_TEST_AVX512("zmm", "q")
#define BLOOMERY_INSERT_avx512 BLOOMERY_MASK_AVX512 BLOOMERY_SET_AVX512("zmm", "q", "64")
  BLOOMERY_FUNCTIONS(avx512, "z")

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
// The clear bits of both halves' masks, in ymm0 and ymm1.
#define BLOOMERY_END_TEST_AVX2      \
  "vpor %%ymm0, %%ymm1, %%ymm0\n\t" \
  "vptest %%ymm0, %%ymm0" BLOOMERY_END_AVX2
#define BLOOMERY_BLOCK_avx2(access) [low] access(bytes_at<32>(block)), [high] access(bytes_at<32>(block + 32))
#define BLOOMERY_HAS_avx2             \
  BLOOMERY_MASKS_AVX2                 \
  "vmovdqu %[low], %%ymm2\n\t"        \
  "vpandn %%ymm0, %%ymm2, %%ymm0\n\t" \
  "vmovdqu %[high], %%ymm2\n\t"       \
  "vpandn %%ymm1, %%ymm2, %%ymm1\n\t" BLOOMERY_END_TEST_AVX2
#define BLOOMERY_INSERT_avx2          \
  BLOOMERY_MASKS_AVX2                 \
  "vmovdqu %[low], %%ymm2\n\t"        \
  "vpor %%ymm0, %%ymm2, %%ymm3\n\t"   \
  "vpandn %%ymm0, %%ymm2, %%ymm0\n\t" \
  "vmovdqu %%ymm3, %[low]\n\t"        \
  "vmovdqu %[high], %%ymm2\n\t"       \
  "vpor %%ymm1, %%ymm2, %%ymm3\n\t"   \
  "vpandn %%ymm1, %%ymm2, %%ymm1\n\t" \
  "vmovdqu %%ymm3, %[high]\n\t" BLOOMERY_END_TEST_AVX2
#define BLOOMERY_CHANGED_avx2 "xmm0", "xmm1", "xmm2", "xmm3"
  BLOOMERY_FUNCTIONS(avx2, "z")

#undef BLOOMERY_INPUT
#undef BLOOMERY_BLOCK_avx512
#undef BLOOMERY_BLOCK_avx2
#undef BLOOMERY_MASK_AVX512
#undef BLOOMERY_HAS_avx512
#undef BLOOMERY_INSERT_avx512
#undef BLOOMERY_MASKS_AVX2
#undef BLOOMERY_END_TEST_AVX2
#undef BLOOMERY_HAS_avx2
#undef BLOOMERY_INSERT_avx2
#undef BLOOMERY_CHANGED_avx2
};

#undef BLOOMERY_FUNCTIONS
#undef BLOOMERY_TEST_AVX512
#undef BLOOMERY_SET_AVX512
#undef BLOOMERY_CHANGED_avx512
#undef BLOOMERY_END_AVX2

#endif

/// Whether layout L has inline code for x86-64 in this translation unit.
template <class L>
concept with_x86_code = requires(const std::uint8_t* block) {
  single_key<L>::has_avx2(block, std::uint64_t{});
};

/// Whether layout L has inline code for AArch64.
template <class L>
concept with_neon_code = requires(const std::uint8_t* block) {
  single_key<L>::has_neon(block, std::uint64_t{});
};

}  // namespace detail
}  // namespace bloomery

#if defined(__aarch64__)
#include <bloomery/layouts/single_key_neon.hpp>
#endif
