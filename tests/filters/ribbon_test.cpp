// Ribbon filters: every key is found, the FPR is exact, the bytes depend on the set alone, and invalid bytes are
// refused.
#include <bloomery/any_filter.hpp>
#include <bloomery/detail/ribbon.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/static_filter.hpp>

#include "support/fenced.hpp"
#include "support/long_tests.hpp"
#include "support/test.hpp"

#include <stdexcept>

namespace {

using namespace bloomery;
using namespace bloomery_tests;

using bytes = std::vector<std::uint8_t>;

constexpr unsigned some_widths[] = {1, 2, 7, 8, 9, 16, 21, 32};

std::vector<std::uint64_t> hash64_series(std::uint64_t count, std::uint64_t series) {
  std::vector<std::uint64_t> hash64s(count);
  for (std::uint64_t i = 0; i < count; ++i) hash64s[i] = mix64(mix64(series + 1) + i);
  return hash64s;
}

bytes built(std::vector<std::uint64_t> hash64s, unsigned width, unsigned threads = 1) {
  const static_bytes made = ribbon_build(hash64s, width, threads);
  return {made.payload.data(), made.payload.data() + made.payload.size()};
}

std::uint64_t number_at(std::span<const std::uint8_t> payload, std::uint64_t at, int size) {
  std::uint64_t value = 0;
  for (int i = size; i-- > 0;) value = value << 8 | payload[at + static_cast<std::uint64_t>(i)];
  return value;
}

bool bit_at(std::span<const std::uint8_t> payload, std::uint64_t bit) { return (payload[bit / 8] >> bit % 8 & 1) != 0; }

// The rule of docs/format.md, bit by bit.
bool has_by_bits(std::span<const std::uint8_t> payload, std::uint64_t hash64) {
  const std::uint64_t partitions = number_at(payload, 8, 4);
  const std::uint64_t width = number_at(payload, 12, 4);
  const auto scaled = [](std::uint64_t x, std::uint64_t factor) {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(x) * factor >> 64);
  };
  const std::uint64_t table = 64 + 64 * scaled(hash64, partitions);
  if (number_at(payload, table + 16, 8) == 0) return false;
  std::uint64_t h = mix64(hash64 ^ number_at(payload, table, 8));
  std::uint64_t first_bit = 64 * number_at(payload, table + 8, 8);
  for (std::uint64_t layer = 0;; ++layer) {
    const std::uint64_t blocks = number_at(payload, table + 24 + 4 * layer, 4);
    const std::uint64_t start = scaled(h, 64 * (blocks - 1));
    const bool is_last = layer == 7 || number_at(payload, table + 24 + 4 * (layer + 1), 4) == 0;
    if (!is_last) {
      const std::uint64_t at = first_bit + 64 * blocks * width + start / 128 * 2;
      const int threshold = (bit_at(payload, at) ? 1 : 0) + (bit_at(payload, at + 1) ? 2 : 0);
      if (start % 128 < (threshold == 0 ? 0u : threshold == 1 ? 8u : threshold == 2 ? 32u : 128u)) {
        const std::uint64_t buckets = (64 * (blocks - 1) + 127) / 128;
        first_bit += 64 * (blocks * width + (buckets + 31) / 32);
        h = mix64(h + 0x9E3779B97F4A7C15);
        continue;
      }
    }
    const std::uint64_t coefficients = h * 0xD6E8FEB86659FD93 | 1;
    const std::uint64_t fingerprint = ((h ^ h >> 29) * 0x9E3779B97F4A7C15) >> (64 - width);
    std::uint64_t sum = 0;
    for (std::uint64_t j = 0; j < 64; ++j) {
      const std::uint64_t slot = start + j;
      for (std::uint64_t i = 0; i < width && (coefficients >> j & 1) != 0; ++i)
        sum ^= std::uint64_t{bit_at(payload, first_bit + 64 * (slot / 64 * width + i) + slot % 64)} << i;
    }
    return sum == fingerprint;
  }
}

std::uint64_t hits(std::span<const std::uint8_t> payload, std::uint64_t queries) {
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < queries; ++i) count += ribbon::has(payload.data(), mix64(~i)) ? 1 : 0;
  return count;
}

void expect_sound(unsigned width, const std::vector<std::uint64_t>& hash64s, std::span<const std::uint8_t> payload) {
  check_ribbon(width, payload, "test");
  for (const std::uint64_t hash64 : hash64s) ASSERT_TRUE(ribbon::has(payload.data(), hash64)) << hash64;
}

// ---- every key is found ---------------------------------------------------------------------------------------------

TEST(Ribbon, FindsEveryKeyOfSmallSets) {
  for (const unsigned width : some_widths) {
    for (std::uint64_t n = 1; n <= 3000; n += width == 8 && !under_sanitizer ? 7 : 97) {
      SCOPED_TRACE(n);
      const auto hash64s = hash64_series(n, 100 * n + width);

      expect_sound(width, hash64s, built(hash64s, width));
    }
  }
}

TEST(Ribbon, FindsEveryKeyOfSeveralLayersAndPartitions) {
  for (const unsigned width : {3u, 8u}) {
    for (const std::uint64_t n : {20'000u, 200'000u, 1'500'000u}) {
      const auto hash64s = hash64_series(n, width);

      const auto payload = built(hash64s, width, 2);

      expect_sound(width, hash64s, payload);
      EXPECT_EQ(sealed::partitions_in(payload.data()), n > 1'300'000 ? 2u : 1u);
      EXPECT_EQ(sealed::keys_in(payload.data()), n);
      EXPECT_GE(ribbon::layers_of(ribbon::partition_in(payload.data(), 0)), 2u);
    }
  }
}

TEST(Ribbon, ReportsEveryKeyAsAbsentIfEmpty) {
  for (const unsigned width : some_widths) {
    const auto payload = built({}, width);

    check_ribbon(width, payload, "test");
    EXPECT_EQ(payload.size(), 128u);
    EXPECT_EQ(hits(payload, 10'000), 0u);
  }
}

TEST(Ribbon, TakesAtMostThreePerCentOverTheLowerBound) {
  for (const unsigned width : {7u, 8u, 16u}) {
    const auto payload = built(hash64_series(1'300'000, 1), width, 2);

    EXPECT_LT(8.0 * static_cast<double>(payload.size()) / 1.3e6, 1.03 * width) << width;
  }
}

TEST(Ribbon, HasThePlannedSize) {
  for (const std::uint64_t n : {0u, 1u, 100u, 1999u, 2001u, 50'000u, 1'300'000u}) {
    for (const unsigned width : some_widths) {
      if (n > 100'000 && width != 8) continue;
      EXPECT_EQ(ribbon_geometry(width, n).bits, 8 * built(hash64_series(n, 3), width).size()) << n << ", " << width;
    }
  }
}

// ---- lookups --------------------------------------------------------------------------------------------------------

TEST(Ribbon, AnswersAsTheDocumentedRule) {
  for (const unsigned width : some_widths) {
    for (const std::uint64_t n : {1u, 50u, 3000u, 60'000u}) {
      const auto hash64s = hash64_series(n, width + n);
      const auto payload = built(hash64s, width);
      for (std::uint64_t i = 0; i < 2000; ++i) {
        const std::uint64_t hash64 = i % 2 == 0 ? hash64s[i / 2 % n] : mix64(~i);
        ASSERT_EQ(ribbon::has(payload.data(), hash64), has_by_bits(payload, hash64)) << width << " " << n << " " << i;
        ASSERT_TRUE(i % 2 != 0 || has_by_bits(payload, hash64));
      }
    }
  }
}

TEST(Ribbon, AnswersBatchesAsItAnswersOneByOne) {
  for (const unsigned width : some_widths) {
    for (const std::uint64_t n : {1u, 10u, 5000u, 1'400'000u}) {
      if (n > 5000 && width != 9) continue;
      const auto hash64s = hash64_series(n, n);
      const auto payload = built(hash64s, width, 2);
      for (const std::size_t count : {0u, 1u, 31u, 32u, 33u, 64u, 1023u, 1024u, 1025u, 3000u}) {
        std::vector<std::uint64_t> asked, expected((count + 63) / 64);
        for (std::size_t i = 0; i < count; ++i) asked.push_back(i % 3 == 0 ? hash64s[i % n] : mix64(~i));
        for (std::size_t i = 0; i < count; ++i)
          expected[i / 64] |= std::uint64_t{ribbon::has(payload.data(), asked[i])} << (i % 64);
        expected.push_back(0x5555);  // behind the answers nothing is written
        std::vector<std::uint64_t> actual(expected.size(), 0x5555);

        ribbon::has_batch(payload.data(), hash_span::hash64s(asked), actual.data());

        ASSERT_EQ(actual, expected) << width << " " << n << " " << count;
      }
    }
  }
}

TEST(Ribbon, ReportsAbsentKeysAtItsExactRate) {
  for (const std::uint64_t n : {1u, 2u, 3u, 10u, 100u, 2500u, 11'500u, 300'000u}) {
    const std::uint64_t queries = under_sanitizer ? 200'000 : 2'000'000;
    for (const unsigned width : {1u, 7u, 8u, 12u}) {
      const std::uint64_t found = hits(built(hash64_series(n, 7), width), queries);

      EXPECT_GT(chance_of(found, queries, static_rate(width, n)), 1e-6) << n << " keys, " << width << ": " << found;
    }
  }
}

// ---- sets, not lists ------------------------------------------------------------------------------------------------

TEST(Ribbon, HasTheSameBytesForAnyOrderNumberOfThreadsAndCopies) {
  std::mt19937_64 random(1);
  for (const std::uint64_t n : {1u, 2u, 1000u, 700'000u, 1'500'000u}) {
    auto hash64s = hash64_series(n, 11);
    const auto expected = built(hash64s, 7, 1);
    for (const unsigned threads : {1u, 3u}) {
      std::shuffle(hash64s.begin(), hash64s.end(), random);
      auto copies = hash64s;
      for (std::uint64_t i = 0; i < n; i += 3) copies.push_back(hash64s[i]);

      EXPECT_TRUE(built(hash64s, 7, threads) == expected) << n << " by " << threads;
      EXPECT_TRUE(built(copies, 7, threads) == expected) << n << " by " << threads;
    }
  }
}

TEST(Ribbon, BuildsOfHashesThatAreMuchAlike) {
  std::vector<std::uint64_t> hash64s(1'400'000);  // all in the first of two partitions, but the last
  std::iota(hash64s.begin(), hash64s.end(), std::uint64_t{0});
  hash64s.push_back(~std::uint64_t{0});

  expect_sound(8, hash64s, built(hash64s, 8, 2));
}

TEST(Ribbon, EndsTheBuildingWhenTheWatchThrows) {
  auto hash64s = hash64_series(1'500'000, 1);

  EXPECT_THROW(ribbon_build(hash64s, 8, 2, [](std::uint64_t) { throw std::runtime_error("enough"); }),
               std::runtime_error);
}

TEST(Ribbon, RefusesOtherWidths) {
  std::vector<std::uint64_t> hash64s{1};

  for (const unsigned width : {0u, 33u, 64u})
    EXPECT_EQ(code_of([&] { ribbon_build(hash64s, width); }), errc::invalid_argument);
}

// ---- the filter -----------------------------------------------------------------------------------------------------

TEST(Ribbon, IsAFilterInMemoryAndInAFile) {
  const scratch_folder folder;
  std::vector<std::string> keys;
  for (int i = 0; i < 20'000; ++i) keys.push_back("key " + std::to_string(i));
  const std::vector<std::string_view> views(keys.begin(), keys.end());

  const any_filter made = any_filter::build_static({}, std::span(views).first(10'000), 10, 2, static_structure::ribbon);
  made.save(folder / "f");

  const any_filter file = any_filter::open(folder / "f");
  EXPECT_EQ(file.parameters().layout, "ribbon10");
  EXPECT_EQ(file.parameters(), made.parameters());
  EXPECT_EQ(file.insert_count(), 10'000u);
  EXPECT_DOUBLE_EQ(file.current_fpr(), static_rate(10, 10'000));
  EXPECT_DOUBLE_EQ(file.expected_fpr(), static_rate(10, 10'000));
  EXPECT_FALSE(file.is_writable());
  const auto handle = open_filter(folder / "f");
  std::uint64_t false_positives = 0;
  for (std::size_t i = 0; i < views.size(); ++i) {
    const bool found = file.may_contain(views[i]);
    ASSERT_TRUE(found || i >= 10'000);
    ASSERT_EQ(made.may_contain(views[i]), found);
    const key_explanation why = handle->explain(std::span(views).subspan(i, 1));
    ASSERT_EQ(why.maybe_present, found);
    ASSERT_EQ(why.fingerprint->width, 10u);
    ASSERT_EQ(why.fingerprint->exclusive_or == why.fingerprint->expected, found);
    false_positives += found && i >= 10'000 ? 1 : 0;
  }
  EXPECT_GT(chance_of(false_positives, 10'000, static_rate(10, 10'000)), 1e-6) << false_positives;
  const filter_facts facts = handle->info(info_depth::bits);
  EXPECT_EQ(facts.static_keys->fingerprint_bits, 10u);
  EXPECT_EQ(facts.static_keys->keys, 10'000u);
}

// ---- invalid bytes --------------------------------------------------------------------------------------------------

// Whether the check refuses these bytes. Otherwise, lookups stay within them.
bool refused_or_harmless(unsigned width, std::span<const std::uint8_t> payload) {
  try {
    check_ribbon(width, payload, "test");
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::damaged);
    return true;
  }
  std::vector<std::uint64_t> hash64s{0, ~std::uint64_t{0}}, bitmap(4);
  for (std::uint64_t i = 0; hash64s.size() < 200; ++i) hash64s.push_back(mix64(i));
  ribbon::has_batch(payload.data(), hash_span::hash64s(hash64s), bitmap.data());
  for (std::size_t i = 0; i < hash64s.size(); ++i) {
    const bool found = ribbon::has(payload.data(), hash64s[i]);
    EXPECT_EQ(found, (bitmap[i / 64] >> (i % 64) & 1) != 0);
    EXPECT_EQ(found, has_by_bits(payload, hash64s[i]));
  }
  return false;
}

TEST(Ribbon, RefusesOrSurvivesEveryChangedByteOfTheTable) {
  for (const unsigned width : {5u, 8u}) {
    for (const std::uint64_t n : {0u, 3u, 5000u}) {
      const auto sound = built(hash64_series(n, 1), width);
      for (const fence side : {fence::before, fence::behind}) {
        fenced<std::uint8_t> payload(sound.size(), side);
        std::copy(sound.begin(), sound.end(), payload.data());
        ASSERT_FALSE(refused_or_harmless(width, payload.all()));
        for (std::size_t at = 0; at < 128; ++at) {
          for (const int value : {0, 1, 2, 127, 255}) {
            const std::uint8_t old = std::exchange(payload[at], static_cast<std::uint8_t>(value));
            refused_or_harmless(width, payload.all());
            payload[at] = old;
          }
        }
      }
      EXPECT_EQ(code_of([&] { check_ribbon(width, std::span(sound).first(64), "test"); }), errc::damaged);
      EXPECT_EQ(code_of([&] { check_ribbon(width, {}, "test"); }), errc::damaged);
      EXPECT_EQ(code_of([&] { check_ribbon(width + 1, sound, "test"); }), errc::damaged);
    }
  }
}

}  // namespace
