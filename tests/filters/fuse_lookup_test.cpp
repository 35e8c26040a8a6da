// Lookups in fuse filters by groups and with a directory, against fuse::has, which reads the payload for each key.
#include <bloomery/detail/fuse.hpp>

#include "kernels/kernels.hpp"
#include "layouts/fuse_lookup.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

using bytes = std::vector<std::uint8_t>;

std::vector<std::uint64_t> hash64_series(std::uint64_t count, std::uint64_t series) {
  std::vector<std::uint64_t> hash64s(count);
  for (std::uint64_t i = 0; i < count; ++i) hash64s[i] = mix64(mix64(series + 1) + i);
  return hash64s;
}

bytes built(std::vector<std::uint64_t> hash64s, unsigned width) {
  const static_bytes made = fuse_build(hash64s, width, 2);
  return {made.payload.data(), made.payload.data() + made.payload.size()};
}

bool has(unsigned width, const bytes& payload, std::uint64_t hash64) {
  return width == 8    ? fuse::has<8>(payload.data(), hash64)
         : width == 16 ? fuse::has<16>(payload.data(), hash64)
         : width == 32 ? fuse::has<32>(payload.data(), hash64)
                       : fuse::has<fuse::packed>(payload.data(), hash64);
}

// Two partitions, of which the first may have no keys; `groups` words of answers per function.
TEST(FuseLookup, LooksUpInGroupsAsItLooksUpOneByOne) {
  constexpr std::size_t groups = 20;
  std::vector<kernels::fuse_lookup> lookups{kernels::fuse_lookup_plain};
#if defined(__x86_64__)
  if (kernels::avx512.supported()) lookups.push_back(kernels::fuse_lookup_avx512);
#endif
  for (const std::uint64_t first_has_keys : {0u, 1u}) {
    std::vector<std::uint64_t> hash64s = hash64_series(1'500'000, first_has_keys);
    if (first_has_keys == 0) {
      for (std::uint64_t& hash64 : hash64s) hash64 |= std::uint64_t{1} << 63;
    }
    for (const unsigned width : {1u, 7u, 8u, 10u, 16u, 27u, 32u}) {
      const bytes payload = built(hash64s, width);
      const auto partitions = static_cast<std::uint32_t>(fuse::partitions_in(payload.data()));
      ASSERT_EQ(partitions, 2u);
      ASSERT_EQ(fuse::partition_in(payload.data(), 0).keys > 0, first_has_keys == 1);
      std::vector<std::uint64_t> asked, expected(groups);
      for (std::uint64_t i = 0; i < groups * 64; ++i) {
        asked.push_back(i % 3 == 0 ? hash64s[i] : mix64(~i));
        expected[i / 64] |= std::uint64_t{has(width, payload, asked[i])} << (i % 64);
      }
      for (const kernels::fuse_lookup look_up : lookups) {
        for (const bool fetch : {false, true}) {
          std::vector<std::uint64_t> actual(groups);

          look_up({payload.data(), partitions, width, fetch}, asked.data(), groups, actual.data());

          EXPECT_EQ(actual, expected) << "width " << width << ", prefetching " << fetch;
        }
      }
    }
  }
}

TEST(FuseLookup, LooksUpOneByOneWithItsDirectoryAsWithout) {
  for (const std::uint64_t n : {0u, 1u, 5000u, 1'500'000u}) {  // none, one and two partitions with keys
    const auto hash64s = hash64_series(n, n);
    const bytes payload = built(hash64s, 16);
    const bytes packed = built(hash64s, 13);
    const fuse::directory directory(payload.data());
    const fuse::directory directory_of_packed(packed.data());

    for (std::uint64_t i = 0; i < 20'000; ++i) {
      const std::uint64_t hash64 = i < n && i % 2 == 0 ? hash64s[i] : mix64(~i);
      ASSERT_EQ(directory.has<16>(payload.data(), hash64), has(16, payload, hash64)) << n << " " << i;
      ASSERT_EQ(directory_of_packed.has<13>(packed.data(), hash64), has(13, packed, hash64)) << n << " " << i;
    }
  }
}

}  // namespace
}  // namespace bloomery
