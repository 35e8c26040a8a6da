// The inline code for single keys writes and reads the bits that the layouts' cells define, with every instruction set
// that this processor has.
#include <bloomery/kernel.hpp>
#include <bloomery/layouts/single_key.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include "support/test.hpp"

namespace {

using namespace bloomery;

[[maybe_unused]] bool supported(std::string_view name) {
  for (const kernel_description& kernel : kernel_list()) {
    if (kernel.name == name) return kernel.supported;
  }
  return false;
}

template <class L>
class SingleKey : public testing::Test {
 public:
  static constexpr std::size_t size = L::block_bits / 8;

  // has(block, hash64) and insert(block, hash64) against the cells, one bit at a time. Blocks of all alignments,
  // between bytes that must not change.
  template <class Has, class Insert>
  static void compare(Has has, Insert insert) {
    std::mt19937_64 random(1);
    const geometry one_block{L::block_bits, 8};
    std::array<std::uint8_t, size + 128> bytes;
    for (int round = 0; round < 4000; ++round) {
      const key_hash hash{random(), 0};
      const std::size_t start = random() % 64;
      for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random() & random());
      auto twin = bytes;
      std::uint8_t* const block = bytes.data() + start;
      EXPECT_EQ(has(block, hash.hash64), has_cells<L>(twin.data() + start, one_block, hash));
      EXPECT_EQ(bytes, twin);
      EXPECT_EQ(insert(block, hash.hash64), insert_cells<L>(twin.data() + start, one_block, hash));
      EXPECT_EQ(bytes, twin);
      EXPECT_TRUE(has(block, hash.hash64));
      EXPECT_FALSE(insert(block, hash.hash64));
      // Each bit of the key matters.
      typename L::cells cells(one_block, hash);
      for (std::uint32_t i = 0; i < cells.count(); ++i) {
        const std::uint64_t cell = cells.next();
        auto& byte = block[cell / 8];
        const auto before = byte;
        byte = static_cast<std::uint8_t>(byte & ~(1u << cell % 8));
        EXPECT_FALSE(has(block, hash.hash64));
        EXPECT_TRUE(insert(block, hash.hash64));
        EXPECT_EQ(byte, before);
      }
      EXPECT_EQ(bytes, twin);
      if (testing::Test::HasFailure()) return;
    }
  }
};

using inlined_layouts = testing::Types<layouts::split_block, layouts::split_block512>;
TYPED_TEST_SUITE(SingleKey, inlined_layouts);

TYPED_TEST(SingleKey, OfAvx2SetsAndReadsTheCellsOfTheLayout) {
  if constexpr (detail::with_x86_code<TypeParam>) {
    if (!supported("avx2")) GTEST_SKIP() << "this processor has no AVX2";
    using code = detail::single_key<TypeParam>;
    TestFixture::compare([](const std::uint8_t* block, std::uint64_t hash) { return code::has_avx2(block, hash); },
                         [](std::uint8_t* block, std::uint64_t hash) { return code::insert_avx2(block, hash); });
  } else {
    GTEST_SKIP() << "this build has no inline code";
  }
}

TYPED_TEST(SingleKey, OfAvx512SetsAndReadsTheCellsOfTheLayout) {
  if constexpr (detail::with_x86_code<TypeParam>) {
    if (!supported("avx512")) GTEST_SKIP() << "this processor has no AVX-512";
    using code = detail::single_key<TypeParam>;
    TestFixture::compare([](const std::uint8_t* block, std::uint64_t hash) { return code::has_avx512(block, hash); },
                         [](std::uint8_t* block, std::uint64_t hash) { return code::insert_avx512(block, hash); });
  } else {
    GTEST_SKIP() << "this build has no inline code";
  }
}

TYPED_TEST(SingleKey, OfNeonSetsAndReadsTheCellsOfTheLayout) {
#if defined(__aarch64__)
  static_assert(detail::with_neon_code<TypeParam>);
#endif
  if constexpr (detail::with_neon_code<TypeParam>) {
    using code = detail::single_key<TypeParam>;
    TestFixture::compare([](const std::uint8_t* block, std::uint64_t hash) { return code::has_neon(block, hash); },
                         [](std::uint8_t* block, std::uint64_t hash) { return code::insert_neon(block, hash); });
  } else {
    GTEST_SKIP() << "this processor has no NEON";
  }
}

// Upper halves of registers that a program for older processors does not know of must be clear after AVX2 code, and
// values that a program keeps in registers must survive.
TYPED_TEST(SingleKey, LeavesTheValuesInRegistersOfItsCallerAlone) {
  if constexpr (detail::with_x86_code<TypeParam>) {
    using code = detail::single_key<TypeParam>;
    std::array<std::uint8_t, 64> block{};
    std::array<double, 24> sums{};
    std::array<double, 24> alone{};
    for (std::uint64_t i = 0; i < 1000; ++i) {
      for (std::size_t j = 0; j < sums.size(); ++j) {
        sums[j] = sums[j] * 0.5 + static_cast<double>(i + j);
        if (j % 4 == 0 && supported("avx2")) code::insert_avx2(block.data(), i);
        if (j % 4 == 1 && supported("avx512")) code::insert_avx512(block.data(), i);
      }
      for (std::size_t j = 0; j < alone.size(); ++j) alone[j] = alone[j] * 0.5 + static_cast<double>(i + j);
    }
    EXPECT_EQ(sums, alone);
  }
}

// The inline code for x86-64 belongs to the chosen kernels: BLOOMERY_KERNEL=scalar selects neither.
TEST(SingleKeyChoice, FollowsTheChosenKernels) {
  const std::string name = kernel_name();
  const detail::inline_set expected = name == "avx512" ? detail::inline_set::avx512
                                      : name == "avx2" ? detail::inline_set::avx2
                                                       : detail::inline_set::none;
  EXPECT_EQ(detail::chosen_inline_set, expected);
}

}  // namespace
