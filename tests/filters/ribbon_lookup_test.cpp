// The slots of groups of keys in ribbon filters, combined by each kernel, against ribbon::combined.
#include <bloomery/detail/ribbon.hpp>

#include "kernels/kernels.hpp"
#include "layouts/ribbon_lookup.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;

std::vector<kernels::ribbon_combine> combine_functions() {
  std::vector<kernels::ribbon_combine> all{kernels::ribbon_combine_plain};
#if defined(__x86_64__)
  if (kernels::avx512.supported()) all.push_back(kernels::ribbon_combine_avx512);
#endif
  return all;
}

// The last block ends where the words end, so a read beyond it is noticed by AddressSanitizer.
TEST(RibbonLookup, CombinesTheSlotsOfAGroupAsThoseOfAKey) {
  constexpr std::uint64_t blocks = 5;
  std::mt19937_64 random(1);
  for (unsigned width = 1; width <= 32; ++width) {
    std::vector<std::uint64_t> words(blocks * width);
    for (std::uint64_t& word : words) word = random();
    const auto* const payload = reinterpret_cast<const std::uint8_t*>(words.data());
    for (std::uint64_t shift = 0; shift < 64; ++shift) {
      kernels::ribbon_slots slots;
      std::vector<std::uint32_t> expected;
      for (std::size_t key = 0; key < kernels::ribbon_group; ++key) {
        slots.word[key] = key % (blocks - 1) * width;
        slots.shift[key] = (shift + key) % 64;
        slots.coefficients[key] = key == 0 ? ~std::uint64_t{0} : random();
        const ribbon::place at{slots.word[key], static_cast<unsigned>(slots.shift[key]), slots.coefficients[key], 0};
        expected.push_back(ribbon::combined(payload, at, width));
      }
      for (const kernels::ribbon_combine combine : combine_functions()) {
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, kernels::ribbon_group}) {
          std::vector<std::uint32_t> values(kernels::ribbon_group, 0x12345678);

          combine(payload, width, slots, count, values.data());

          for (std::size_t key = 0; key < kernels::ribbon_group; ++key)
            ASSERT_EQ(values[key], key < count ? expected[key] : 0x12345678) << width << " bits, shift " << shift;
        }
      }
    }
  }
}

// Two partitions, of which the first has no keys.
TEST(RibbonLookup, FindsNothingInAPartitionWithoutKeys) {
  std::vector<std::uint64_t> hash64s(1'500'000);
  for (std::uint64_t i = 0; i < hash64s.size(); ++i) hash64s[i] = mix64(i + 1) | std::uint64_t{1} << 63;
  const std::vector<std::uint64_t> present(hash64s.begin(), hash64s.begin() + 2000);
  const static_bytes built = ribbon_build(hash64s, 7, 2);
  const std::uint8_t* const payload = built.payload.data();
  ASSERT_EQ(sealed::partitions_in(payload), 2u);
  ASSERT_EQ(ribbon::partition_in(payload, 0).keys, 0u);
  std::vector<std::uint64_t> asked;
  for (const std::uint64_t hash64 : present) {
    asked.push_back(hash64);
    asked.push_back(hash64 << 1 >> 1);  // in the first partition
  }
  std::vector<std::uint64_t> bitmap((asked.size() + 63) / 64);

  ribbon::has_batch(payload, hash_span::hash64s(asked), bitmap.data());

  for (std::size_t i = 0; i < asked.size(); ++i) ASSERT_EQ(bitmap[i / 64] >> i % 64 & 1, 1 - i % 2) << i;
}

}  // namespace
}  // namespace bloomery
