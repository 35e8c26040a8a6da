// Schemes rocksdb and rocksdb_4: their sizes, and their FPRs, compared with counted false positives.
// tests/formats/rocksdb_test.cpp compares their bits with those of RocksDB.
#include <bloomery/measure.hpp>
#include <bloomery/scheme.hpp>

#include "schemes/scheme_filter.hpp"
#include "support/random_keys.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;

// The sizes of RocksDB for 100,000 keys at 10 bits per key.
TEST(Rocksdb, ChoosesTheFewestBitsPerKeyThatMeetTheTarget) {
  EXPECT_EQ(find_scheme("rocksdb")->geometry_for(100'000, 0.01), (geometry{1954 * 512, 6}));
  EXPECT_EQ(find_scheme("rocksdb_4")->geometry_for(100'000, 0.012), (geometry{1955 * 512, 6}));  // an odd number
  EXPECT_EQ(find_scheme("rocksdb")->geometry_for(1, 0.01), (geometry{512, 1}));
  for (const char* const name : {"rocksdb", "rocksdb_4"}) {
    const scheme& row = *find_scheme(name);
    for (const double target : {0.3, 0.02, 0.005})
      EXPECT_LE(row.expected_fpr(row.geometry_for(5000, target), 5000), target);
  }
}

// At most 100 bits per key. The FPR of rocksdb_4 does not fall below 0.1%, so lower targets have no effect on it.
TEST(Rocksdb, HasASizeForTargetsThatItMisses) {
  EXPECT_EQ(find_scheme("rocksdb")->geometry_for(1000, 1e-12), (geometry{196 * 512, 24}));
  const geometry legacy = find_scheme("rocksdb_4")->geometry_for(1000, 1e-4);
  EXPECT_NEAR(find_scheme("rocksdb_4")->expected_fpr(legacy, 1000), 2.5e-3, 5e-4);
  EXPECT_LT(legacy.bits, 25'000u);
}

// The bound that excludes sizes without computing their rate excludes none that meets the target.
TEST(Rocksdb, ChoosesTheFirstSizeThatMeetsATargetNearTheFloor) {
  const scheme& row = *find_scheme("rocksdb_4");
  constexpr std::uint64_t keys = 5000;
  for (const double target : {0.003, 0.0035, 0.005}) {
    geometry first;
    for (std::uint64_t bits_per_key = 8; first.bits == 0 && bits_per_key <= 20; ++bits_per_key) {
      const auto probes = static_cast<std::uint32_t>(0.69 * static_cast<double>(bits_per_key));
      const geometry g{((keys * bits_per_key + 511) / 512 | 1) * 512, probes};
      if (row.expected_fpr(g, keys) <= target) first = g;
    }
    EXPECT_EQ(row.geometry_for(keys, target), first) << target;
  }
}

TEST(Rocksdb, RefusesSizesThatRocksdbDoesNotMake) {
  const scheme& row = *find_scheme("rocksdb");
  EXPECT_EQ(code_of([&] { row.check({512 + 64, 6}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { row.check({512, 31}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { row.check({std::uint64_t{1} << 35, 6}); }), errc::too_large);
  EXPECT_NO_THROW(row.check({(std::uint64_t{1} << 35) - 512, 6}));
  EXPECT_EQ(code_of([&] { row.geometry_for(std::uint64_t{1} << 36, 0.5); }), errc::too_large);
  EXPECT_ERROR(row.geometry_for(10'000'000'000, 0.01), errc::too_large, "at most 4 GiB");
  const scheme& legacy = *find_scheme("rocksdb_4");
  EXPECT_EQ(code_of([&] { legacy.check({1024, 6}); }), errc::invalid_argument);  // an even number of lines
  EXPECT_EQ(code_of([&] { legacy.check({(std::uint64_t{1} << 32) + 512, 6}); }), errc::too_large);
  EXPECT_ERROR(legacy.geometry_for(1'000'000'000, 0.01), errc::too_large, "at most 512 MiB");
}

TEST(RocksdbRates, AreWhatIsMeasured) {
  const struct {
    const char* name;
    geometry size;
    int keys;
    double bound;  // relative
  } cases[] = {{"rocksdb", {512, 6}, 50, 0.03},
               {"rocksdb", {5 * 512, 12}, 250, 0.03},
               {"rocksdb", {64 * 512, 1}, 15'000, 0.03},
               {"rocksdb", {99 * 512, 20}, 4000, 0.03},
               {"rocksdb", {64 * 512, 8}, 5000, 0.03},
               {"rocksdb", {7 * 512, 30}, 220, 0.03},
               {"rocksdb_4", {512, 6}, 50, 0.05},
               {"rocksdb_4", {5 * 512, 9}, 160, 0.05},
               {"rocksdb_4", {65 * 512, 1}, 15'000, 0.05},
               {"rocksdb_4", {99 * 512, 20}, 2000, 0.05},
               {"rocksdb_4", {257 * 512, 6}, 13'000, 0.05},
               {"rocksdb_4", {7 * 512, 30}, 70, 0.05}};
  for (const auto& [name, size, keys, bound] : cases) {
    const double expected = find_scheme(name)->expected_fpr(size, static_cast<std::uint64_t>(keys));
    random_keys key;
    double reported = 0;
    double current = 0;
    constexpr int most_filters = 40;
    const int filters = std::clamp(200'000 / keys, 4, most_filters * 10);
    const int queries = 2'000'000 / filters;
    for (int round = 0; round < filters; ++round) {
      scheme_filter filter(name, size);
      for (int i = 0; i < keys; ++i) filter.insert(key());
      for (int i = 0; i < queries; ++i) reported += filter.may_contain(key()) ? 1 : 0;
      current += measure_fill({.scheme = name, .geometry = size}, filter.bytes).current_fpr / filters;
    }
    const double measured = reported / (1.0 * filters * queries);
    SCOPED_TRACE(testing::Message() << name << ", " << size.bits << " bits, " << size.probes << " probes: expected "
                                    << expected << ", current " << current << ", measured " << measured);

    const double chance = 5 / std::sqrt(reported);
    EXPECT_NEAR(expected / measured, 1, bound + chance);
    EXPECT_NEAR(current / measured, 1, 0.02 + chance);
  }
}

// With many bits per key, a few full lines determine the FPR. Here they are at the end of a filter of 32 MiB.
TEST(RocksdbRates, AreThoseOfAllLines) {
  const params p{.scheme = "rocksdb", .geometry = {std::uint64_t{1} << 28, 24}};
  std::vector<std::uint8_t> bytes(bytes_for(p.geometry.bits));
  std::fill_n(bytes.end() - 64 * 100, 64 * 100, std::uint8_t{0xFF});
  std::fill_n(bytes.end() - 64 * 200, 64 * 100, std::uint8_t{0x55});
  const double lines = static_cast<double>(p.geometry.bits) / 512;
  const double expected = (100 + 100 * std::pow(0.5, 24)) / lines;

  fill_scan scan(p);
  scan.add(std::span(bytes).first(3 * fill_scan::slice_unit));
  scan.add(std::span(bytes).subspan(3 * fill_scan::slice_unit));
  EXPECT_NEAR(scan.result().current_fpr, expected, 1e-12 * expected);
  EXPECT_EQ(scan.result(), measure_fill(p, bytes));
}

}  // namespace
}  // namespace bloomery
