// Tests of the policies against LevelDB's own: equal bytes, and block reads in a database.
#include "database.hpp"
#include "filter_policies.hpp"

#include <bloomery/hash.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace leveldb_policy {
namespace {

using keys = std::vector<std::string>;

// Random keys of 0 to 40 bytes.
keys random_keys(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  keys all(count);
  for (std::string& key : all) {
    key.resize(random() % 41);
    for (char& c : key) c = static_cast<char>(random());
  }
  return all;
}

std::string filter_of(const leveldb::FilterPolicy& policy, const keys& all) {
  const std::vector<leveldb::Slice> slices(all.begin(), all.end());
  std::string filter;
  policy.CreateFilter(slices.data(), static_cast<int>(slices.size()), &filter);
  return filter;
}

// Looks up exact-size copies, so that AddressSanitizer detects reads beyond the end.
bool asks(const leveldb::FilterPolicy& policy, const std::string& key, const std::string& filter) {
  const std::vector<char> exact_key(key.begin(), key.end());
  const std::vector<char> exact_filter(filter.begin(), filter.end());
  return policy.KeyMayMatch({exact_key.data(), exact_key.size()}, {exact_filter.data(), exact_filter.size()});
}

std::unique_ptr<const leveldb::FilterPolicy> leveldbs_own(int bits_per_key) {
  return std::unique_ptr<const leveldb::FilterPolicy>(leveldb::NewBloomFilterPolicy(bits_per_key));
}

// ---- builtin_policy -------------------------------------------------------------------------------------------------

TEST(BuiltinPolicy, WritesTheBytesThatLevelDbWrites) {
  for (int bits_per_key = 1; bits_per_key <= 50; ++bits_per_key) {
    const auto own = leveldbs_own(bits_per_key);
    const builtin_policy ours(bits_per_key);
    for (const std::size_t count : {0u, 1u, 2u, 5u, 6u, 7u, 8u, 10u, 33u, 100u, 1000u}) {
      SCOPED_TRACE(testing::Message() << count << " keys, " << bits_per_key << " bits each");
      const keys all = random_keys(count, /*seed=*/count);

      ASSERT_EQ(filter_of(ours, all), filter_of(*own, all));
    }
  }
}

TEST(BuiltinPolicy, WritesTheKnownBytesOfHello) {
  const unsigned char expected[] = {0x01, 0x40, 0x00, 0x01, 0x04, 0x10, 0x40, 0x00, 0x06};

  EXPECT_EQ(filter_of(builtin_policy(10), {"hello"}), std::string(std::begin(expected), std::end(expected)));
}

TEST(BuiltinPolicy, HashesKeysOfEveryLengthAsLevelDbDoes) {
  const auto own = leveldbs_own(10);
  for (std::size_t length = 0; length < 70; ++length) {
    for (const char fill : {'\0', 'x', '\x7F', '\x80', '\xFF'}) {  // LevelDB hashes unsigned bytes
      const keys all = {std::string(length, fill)};

      EXPECT_EQ(filter_of(builtin_policy(10), all), filter_of(*own, all)) << length;
    }
  }
}

TEST(BuiltinPolicy, AnswersAsLevelDbDoes) {
  const keys absent = random_keys(2000, /*seed=*/1);
  for (int bits_per_key = 1; bits_per_key <= 30; ++bits_per_key) {
    const auto own = leveldbs_own(bits_per_key);
    const builtin_policy ours(bits_per_key);
    const keys present = random_keys(100, /*seed=*/100 + static_cast<std::uint64_t>(bits_per_key));
    const std::string filter = filter_of(*own, present);

    for (const std::string& key : present) ASSERT_TRUE(asks(ours, key, filter));
    for (const std::string& key : absent) ASSERT_EQ(asks(ours, key, filter), own->KeyMayMatch(key, filter));
  }
}

TEST(BuiltinPolicy, AnswersAsLevelDbDoesToBytesThatAreNoFilter) {
  const auto own = leveldbs_own(10);
  const builtin_policy ours(10);
  std::mt19937_64 random(7);
  for (std::size_t length = 0; length < 40; ++length) {
    for (int k = 0; k < 256; ++k) {
      std::string filter(length, '\0');
      for (char& c : filter) {
        const std::uint64_t word = random();
        c = static_cast<char>(word | word >> 8);  // three quarters of the bits set
      }
      if (length > 0) filter.back() = static_cast<char>(k);
      const std::string key = std::to_string(k);

      ASSERT_EQ(asks(ours, key, filter), own->KeyMayMatch(key, filter)) << length << " bytes, k " << k;
    }
  }
}

TEST(Policies, AppendToWhatIsThere) {
  const leveldb::Slice key("hello");
  for (const leveldb::FilterPolicy* policy :
       std::initializer_list<const leveldb::FilterPolicy*>{new split_block512_policy(10), new builtin_policy(10)}) {
    const std::unique_ptr<const leveldb::FilterPolicy> owned(policy);
    std::string several = "before";
    policy->CreateFilter(&key, 1, &several);

    EXPECT_EQ(several, "before" + filter_of(*policy, {"hello"}));
  }
}

// ---- split_block512_policy ------------------------------------------------------------------------------------------

// The definition of the layout, as in split_block512.hpp.
std::string filter_by_definition(const keys& all, std::size_t lines) {
  __extension__ using wide = unsigned __int128;
  std::string filter(64 * lines, '\0');
  for (const std::string& key : all) {
    const std::uint64_t hash64 = bloomery::xxh3{}(key).hash64;
    const auto line = static_cast<std::size_t>((static_cast<wide>(hash64) * lines) >> 64);
    const std::uint64_t p = hash64 * 0x9E3779B97F4A7C15;
    for (std::size_t j = 0; j < 8; ++j) {
      const std::uint64_t bit = p >> (16 + 6 * j) & 63;
      char& byte = filter[64 * line + 8 * j + bit / 8];
      byte = static_cast<char>(static_cast<unsigned char>(byte) | 1u << (bit % 8));
    }
  }
  return filter;
}

TEST(LinePolicy, WritesTheLinesOfTheDefinitionAndNothingElse) {
  struct sample {
    std::size_t keys;
    int bits_per_key;
    std::size_t lines;
  };
  const sample samples[] = {{0, 10, 1},   {1, 10, 1},  {51, 10, 1},   {52, 10, 2},
                            {100, 10, 2}, {512, 1, 1}, {1000, 30, 59}};
  for (const auto& [count, bits_per_key, lines] : samples) {
    SCOPED_TRACE(count);
    const keys all = random_keys(count, /*seed=*/count);

    EXPECT_EQ(filter_of(split_block512_policy(bits_per_key), all), filter_by_definition(all, lines));
  }
}

TEST(LinePolicy, HasNoFalseNegativesAndTheFprOfTheFormula) {
  const split_block512_policy policy(10);
  for (const std::size_t count : {10u, 33u, 51u, 95u, 1000u}) {
    SCOPED_TRACE(count);
    const int filters = 200;
    const int lookups = 1000;
    double expected = 0;
    int wrong = 0;
    for (int i = 0; i < filters; ++i) {
      keys present;
      for (std::size_t k = 0; k < count; ++k) present.push_back(std::to_string(i) + "+" + std::to_string(k));
      const std::string filter = filter_of(policy, present);

      for (const std::string& key : present) ASSERT_TRUE(policy.KeyMayMatch(key, filter));
      for (int k = 0; k < lookups; ++k) {
        wrong += policy.KeyMayMatch(std::to_string(i) + "-" + std::to_string(k), filter) ? 1 : 0;
      }
      expected += lookups * bloomery::layouts::split_block512::expected_fpr({8 * filter.size(), 8}, count);
    }

    // Five standard deviations of a binomial, times 1.5, because lookups in the same filter are correlated.
    EXPECT_NEAR(wrong, expected, 1.5 * 5 * std::sqrt(expected) + 5);
  }
}

TEST(LinePolicy, SaysMaybeToBytesThatAreNoneOfItsFilters) {
  const split_block512_policy policy(10);
  for (std::size_t length = 0; length < 300; ++length) {
    const bool whole_lines = length > 0 && length % 64 == 0;

    EXPECT_EQ(asks(policy, "hello", std::string(length, '\0')), !whole_lines) << length;
    EXPECT_TRUE(asks(policy, "hello", std::string(length, '\xFF'))) << length;
  }
}

TEST(LinePolicy, ReadsLinesAtAnyAddress) {
  const split_block512_policy policy(10);
  const keys all = random_keys(200, /*seed=*/3);
  const std::string filter = filter_of(policy, all);
  for (std::size_t offset = 0; offset < 64; ++offset) {
    const std::string moved = std::string(offset, 'x') + filter;

    for (const std::string& key : all) {
      ASSERT_TRUE(policy.KeyMayMatch(key, {moved.data() + offset, filter.size()})) << offset;
    }
  }
}

// ---- in a database --------------------------------------------------------------------------------------------------

const workload small = {.keys = 20'000, .value_bytes = 100, .absent_lookups = 20'000, .present_lookups = 20'000};

rate_of_filter no_rate() {
  return [](std::uint64_t, std::uint64_t) { return 0.0; };
}

TEST(Database, WithoutAFilterReadsABlockForEveryKey) {
  const temporary_folder folder;

  const filters_made made = fill(folder.path(), small, nullptr, no_rate());
  const lookups_done done = look_up(folder.path(), small, nullptr);

  EXPECT_EQ(made.filters, 0u);
  EXPECT_EQ(done.lost, 0u);
  EXPECT_EQ(done.blocks_for_present, small.present_lookups);
  EXPECT_NEAR(static_cast<double>(done.blocks_for_absent), 20'000, 100);  // no read for keys after the last one
}

TEST(Database, WithLinesReadsAsManyBlocksAsTheFormulaSays) {
  const temporary_folder folder;
  const split_block512_policy policy(10);

  const filters_made made = fill(folder.path(), small, &policy, [](std::uint64_t bytes, std::uint64_t count) {
    return bloomery::layouts::split_block512::expected_fpr({8 * bytes, 8}, count);
  });
  const lookups_done done = look_up(folder.path(), small, &policy);

  EXPECT_GE(8 * made.bytes, 10 * small.keys);
  EXPECT_EQ(made.bytes % 64, 0u);
  EXPECT_EQ(done.lost, 0u);
  EXPECT_EQ(done.blocks_for_present, small.present_lookups);
  const double expected = made.rate * static_cast<double>(small.absent_lookups);
  EXPECT_NEAR(static_cast<double>(done.blocks_for_absent), expected, 5 * std::sqrt(expected));
  EXPECT_LT(done.blocks_for_absent, small.absent_lookups / 100);
}

TEST(Database, OfLevelDbsOwnFiltersIsReadAlikeByBothAndWrittenAlikeByBoth) {
  const auto own = leveldbs_own(10);
  const builtin_policy ours(10);
  const temporary_folder theirs_folder, ours_folder;

  fill(theirs_folder.path(), small, own.get(), no_rate());
  fill(ours_folder.path(), small, &ours, no_rate());
  const lookups_done expected = look_up(theirs_folder.path(), small, own.get());

  EXPECT_GT(expected.blocks_for_absent, 0u);
  EXPECT_LT(expected.blocks_for_absent, small.absent_lookups / 50);
  for (const std::string& folder : {theirs_folder.path(), ours_folder.path()}) {
    for (const leveldb::FilterPolicy* reader : std::initializer_list<const leveldb::FilterPolicy*>{own.get(), &ours}) {
      const lookups_done done = look_up(folder, small, reader);

      EXPECT_EQ(done.lost, 0u);
      EXPECT_EQ(done.blocks_for_absent, expected.blocks_for_absent);
      EXPECT_EQ(done.blocks_for_present, small.present_lookups);
    }
  }
}

}  // namespace
}  // namespace leveldb_policy
