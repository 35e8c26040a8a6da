// Scheme valkey_bloom: hashes, compared with those of Rust's standard library, sizes and salts.
// tests/formats/module_dumps_test.cpp has the bits, and redisbloom_test.cpp compares its rates.
#include <bloomery/any_filter.hpp>
#include <bloomery/scheme.hpp>

#include "hash/siphash.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

// <[u8] as Hash>::hash() with DefaultHasher of Rust 1.95: SipHash-1-3 with a key of zeros.
TEST(ValkeyBloomScheme, HashesSlicesAsRust) {
  const struct {
    std::string_view key;
    std::uint64_t hash;
  } vectors[] = {{"", 0xBD60ACB658C79E45},
                 {"a", 0xBEB9A6BBF61B58B4},
                 {"hello", 0x875D2E6A522E4E9C},
                 {"12345678", 0x000582B7C2CBC5DF},
                 {"a key with spaces, which is longer than two blocks of sixteen bytes", 0x7BBE5632605053F7}};
  for (const auto& [key, hash] : vectors) EXPECT_EQ(hashes::siphash_of_rust_slice(key, {0, 0}), hash) << key;
}

// Of filters that BF.RESERVE made.
TEST(ValkeyBloomScheme, SizesAsTheServer) {
  const scheme& rule = *find_scheme("valkey_bloom");

  EXPECT_EQ(rule.geometry_for(400, 0.01), (geometry{3840, 7}));
  EXPECT_EQ(rule.geometry_for(10'000, 0.001), (geometry{143'776, 10}));
  EXPECT_EQ(rule.geometry_for(100'000, 0.01), (geometry{958'512, 7}));
  EXPECT_EQ(rule.geometry_for(500, 0.001), (geometry{7192, 10}));
  EXPECT_EQ(rule.geometry_for(100, 0.02), (geometry{816, 6}));
  EXPECT_EQ(rule.geometry_for(10, 0.05), (geometry{64, 4}));
}

TEST(ValkeyBloomScheme, RefusesOtherSizesAndSalts) {
  const scheme& rule = *find_scheme("valkey_bloom");
  const auto with = [](std::vector<std::string> salts) {
    return params{.scheme = "valkey_bloom", .geometry = {1000, 7}, .extra = salt_list{std::move(salts)}};
  };

  EXPECT_ERROR(rule.check({100, 7}), errc::invalid_argument, "a multiple of 8");
  EXPECT_ERROR(rule.geometry_for(std::uint64_t{1} << 60, 0.01), errc::too_large, "too many bits");
  EXPECT_NO_THROW(complete(with({std::string(32, 's')})));
  EXPECT_ERROR(complete(with({std::string(31, 's')})), errc::invalid_argument, "expected 32 bytes, found 31");
  EXPECT_ERROR(complete(with({std::string(32, 's'), std::string(32, 't')})), errc::invalid_argument,
               "expected 1, found 2");
}

TEST(ValkeyBloomScheme, SeedsAndSaltsSelectTheBits) {
  const scheme& rule = *find_scheme("valkey_bloom");
  const auto cells = [&](const params& p) { return any_filter(complete(p)).cells("Madrid"); };
  params p{.scheme = "valkey_bloom", .geometry = {1000, 7}};
  const auto fixed = cells(p);
  p.extra = salt_list{{rule.salt_for(0, 0)}};
  EXPECT_EQ(cells(p), fixed);

  p.extra = salt_list{{rule.salt_for(5, 0)}};
  const auto of_5 = cells(p);
  EXPECT_NE(of_5, fixed);
  EXPECT_EQ(cells({.scheme = "valkey_bloom", .seed = 5, .geometry = {1000, 7}}), of_5);
}

}  // namespace
}  // namespace bloomery
