// Scheme redisbloom, compared with figures of RedisBloom, and its expected FPR, compared with counted false positives.
// tests/formats/module_dumps_test.cpp has the bits.
#include <bloomery/any_filter.hpp>
#include <bloomery/scheme.hpp>

#include "hash/murmur2.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

// MurmurHash64A of RedisBloom's source: with its first seed, and with the result as the seed.
TEST(RedisBloomScheme, HashesByMurmur64A) {
  const struct {
    std::string_view key;
    std::uint64_t first, second;
  } vectors[] = {
      {"", 0x1AB11EA5A7B2C56E, 0xBBDDCB5AB56DD547},
      {"a", 0x4292CEE227B9150A, 0x7E9B527031F50C11},
      {"hello", 0x5BA5B8A59803E699, 0xA7D451D588A0C2A4},
      {"12345678", 0x700BEA34339441C4, 0x94CCCE0994C5C064},
      {"a key with spaces, which is longer than two blocks of sixteen bytes", 0xE65FD307188E9ECD, 0x6F7548BB2ACCD557}};
  for (const auto& [key, first, second] : vectors) {
    EXPECT_EQ(hashes::murmur64a(key, 0xC6A4A7935BD1E995), first) << key;
    EXPECT_EQ(hashes::murmur64a(key, first), second) << key;
  }
}

// BF.DEBUG of filters made by BF.RESERVE.
TEST(RedisBloomScheme, SizesAsTheServer) {
  const scheme& rule = *find_scheme("redisbloom");

  EXPECT_EQ(rule.geometry_for(400, 0.01), (geometry{4416, 8}));
  EXPECT_EQ(rule.geometry_for(100, 0.01), (geometry{1152, 8}));
  EXPECT_EQ(rule.geometry_for(10'000, 0.001), (geometry{158'208, 11}));
  EXPECT_EQ(rule.geometry_for(1, 0.25), (geometry{64, 4}));  // rounding makes ceil(3) 4
  EXPECT_EQ(rule.geometry_for(77, 0.03125), (geometry{704, 7}));
  EXPECT_EQ(rule.geometry_for(1000, 0.9), (geometry{4352, 4}));
  EXPECT_EQ(rule.geometry_for(1000, 0.9), rule.geometry_for(1000, 0.25));
  EXPECT_ERROR(rule.geometry_for(std::uint64_t{1} << 60, 0.01), errc::too_large, "too many bits");
  EXPECT_ERROR(rule.check({100, 7}), errc::invalid_argument, "a multiple of 64");
}

// The measured FPR of many small filters, each of which has its own keys.
double measured_rate(const scheme& rule, const geometry& size, int keys) {
  constexpr int filters = 400;
  constexpr int queries = 5000;
  int reported = 0;
  for (int round = 0; round < filters; ++round) {
    any_filter filter(params{.scheme = std::string(rule.name), .geometry = size});
    const std::string prefix = std::to_string(round) + '-';
    for (int i = 0; i < keys; ++i) filter.insert("in-" + prefix + std::to_string(i));
    for (int i = 0; i < queries; ++i) reported += filter.may_contain("out-" + prefix + std::to_string(i)) ? 1 : 0;
  }
  return reported / (1.0 * filters * queries);
}

// Powers of two, modulo which every position is in a progression, and other sizes. Independent probes would have
// {0.0051, 0.00005, 0.0052, 0.00006, 0.0049, 0.000046}.
TEST(SchemesOfRedisModules, RatesCountProgressions) {
  const struct {
    geometry size;
    int keys;
    double bound;  // relative
  } cases[] = {{{1024, 8}, 93, 0.05},  {{1024, 14}, 50, 0.2},  {{1088, 8}, 99, 0.05},
               {{1088, 14}, 54, 0.25}, {{3328, 8}, 300, 0.05}, {{3328, 14}, 160, 0.25}};
  for (const char* const name : {"redisbloom", "valkey_bloom"}) {
    const scheme& rule = *find_scheme(name);
    for (const auto& [size, keys, bound] : cases) {
      const double in_theory = rule.expected_fpr(size, static_cast<std::uint64_t>(keys));

      const double measured = measured_rate(rule, size, keys);

      EXPECT_NEAR(measured / in_theory, 1, bound) << name << ", " << size.bits << " bits, " << size.probes << " probes";
    }
  }
}

}  // namespace
}  // namespace bloomery
