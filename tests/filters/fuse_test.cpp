// Payloads of fuse filters: every key is found, the FPR is exact, the bytes depend on the set alone, and invalid bytes
// are refused.
#include <bloomery/detail/fuse.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/sizing.hpp>
#include <bloomery/static_filter.hpp>

#include "support/fenced.hpp"
#include "support/long_tests.hpp"
#include "support/test.hpp"

#include <stdexcept>

namespace {

using namespace bloomery;
using namespace bloomery_tests;

std::vector<std::uint64_t> hash64_series(std::uint64_t count, std::uint64_t series) {
  std::vector<std::uint64_t> hash64s(count);
  for (std::uint64_t i = 0; i < count; ++i) hash64s[i] = mix64(mix64(series + 1) + i);
  return hash64s;
}

std::vector<std::uint8_t> bytes_of(const static_bytes& made) {
  return {made.payload.data(), made.payload.data() + made.payload.size()};
}

std::vector<std::uint8_t> built(std::vector<std::uint64_t> hash64s, unsigned width, unsigned threads = 1) {
  return bytes_of(fuse_build(hash64s, width, threads));
}

bool has(unsigned width, const std::uint8_t* payload, std::uint64_t hash64) {
  return width == 8    ? fuse::has<8>(payload, hash64)
         : width == 16 ? fuse::has<16>(payload, hash64)
         : width == 32 ? fuse::has<32>(payload, hash64)
                       : fuse::has<fuse::packed>(payload, hash64);
}

void has_batch(std::span<const std::uint8_t> payload, std::span<const std::uint64_t> hash64s, std::uint64_t* bitmap) {
  fuse::has_batch(payload.data(), 8 * payload.size(), hash_span::hash64s(hash64s), bitmap);
}

// Read as integers: 8, 16, 32. Packed, for each type of cells while building: the shortest, the longest, and odd ones.
constexpr unsigned some_widths[] = {1, 3, 7, 8, 9, 11, 15, 16, 17, 24, 31, 32};

// The cell with this number, bit by bit.
std::uint32_t cell_by_bits(unsigned width, std::span<const std::uint8_t> payload, std::uint64_t cell) {
  std::uint32_t value = 0;
  for (unsigned bit = 0; bit < width; ++bit) {
    const std::uint64_t at = cell * width + bit;
    value |= (std::uint32_t{payload[at / 8]} >> at % 8 & 1) << bit;
  }
  return value;
}

// Hits among hashes that were not inserted.
std::uint64_t hits(unsigned width, std::span<const std::uint8_t> payload, std::uint64_t queries) {
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < queries; ++i) count += has(width, payload.data(), mix64(~i)) ? 1 : 0;
  return count;
}

void expect_sound(unsigned width, const std::vector<std::uint64_t>& hash64s, std::span<const std::uint8_t> payload) {
  check_fuse(width, payload, "test");
  for (const std::uint64_t hash64 : hash64s) ASSERT_TRUE(has(width, payload.data(), hash64)) << hash64;
}

// ---- every key is found ---------------------------------------------------------------------------------------------

TEST(Fuse, FindsEveryKeyOfAllSmallSets) {
  for (std::uint64_t series = 0; series < std::size(some_widths); ++series) {
    const unsigned width = some_widths[series];
    for (std::uint64_t n = 1; n <= 2000; n += width == 8 ? 1 : width > 8 && fuse::is_whole(width) ? 3 : 7) {
      SCOPED_TRACE(n);
      const auto hash64s = hash64_series(n, 100 * n + series);

      expect_sound(width, hash64s, built(hash64s, width));
    }
  }
}

// Sizes at which some implementations fail for 20% to 40% of all sets.
TEST(Fuse, FindsEveryKeyOfSetsNear11500) {
  for (std::uint64_t series = 0; series < (is_long() ? 10 : 2); ++series) {
    for (std::uint64_t n = 11'000; n <= 12'000; n += is_long() || (series == 0 && !under_sanitizer) ? 1 : 10) {
      SCOPED_TRACE(n);
      const auto hash64s = hash64_series(n, 1000 * n + series);

      expect_sound(8, hash64s, built(hash64s, 8));
    }
  }
}

TEST(Fuse, FindsEveryKeyOfSeveralPartitions) {
  for (const unsigned width : {5u, 8u, 13u, 16u, 19u, 32u}) {
    const auto hash64s = hash64_series(1'500'000, width);

    const auto payload = built(hash64s, width, 2);

    expect_sound(width, hash64s, payload);
    EXPECT_EQ(fuse::partitions_in(payload.data()), 2u);
    EXPECT_EQ(sealed::keys_in(payload.data()), hash64s.size());
  }
}

TEST(Fuse, ReportsEveryKeyAsAbsentIfEmpty) {
  for (const unsigned width : some_widths) {
    const auto payload = built({}, width);

    check_fuse(width, payload, "test");
    EXPECT_EQ(payload.size(), fuse::is_whole(width) ? 128u : 192u);
    EXPECT_EQ(hits(width, payload, 10'000), 0u);
    const auto hash64s = hash64_series(100, 0);
    std::uint64_t bitmap[2] = {~0u, ~0u};
    has_batch(payload, hash64s, bitmap);
    EXPECT_EQ(bitmap[0] | bitmap[1], 0u);
  }
}

TEST(Fuse, TakesAboutNineBitsAKey) {
  const auto payload = built(hash64_series(2'600'000, 1), 8, 2);

  EXPECT_LT(8.0 * static_cast<double>(payload.size()) / 2.6e6, 9.05);
}

TEST(Fuse, TakesLittleMoreThanAnEighthOfOverhead) {
  for (const unsigned width : {1u, 7u, 10u, 14u, 20u}) {
    const auto payload = built(hash64_series(2'600'000, 1), width, 2);

    EXPECT_LT(8.0 * static_cast<double>(payload.size()) / 2.6e6, 1.131 * width) << width;
  }
}

TEST(Fuse, PacksTheCellsWithoutGaps) {
  for (unsigned width = 1; width <= 32; ++width) {
    const auto hash64s = hash64_series(777, width);
    const auto payload = built(hash64s, width);
    for (std::uint64_t i = 0; i < 1000; ++i) {
      const std::uint64_t hash64 = i < hash64s.size() ? hash64s[i] : mix64(~i);
      const fuse_place at = fuse_place_of(width, payload, hash64);
      std::uint32_t combined = 0;
      for (const std::uint64_t cell : at.cells) {
        combined ^= cell_by_bits(width, payload, cell);
        ASSERT_EQ(fuse_cell(width, payload, cell), cell_by_bits(width, payload, cell)) << width;
      }
      ASSERT_EQ(combined == at.fingerprint, has(width, payload.data(), hash64)) << width;
      ASSERT_LE(at.fingerprint, 0xFFFFFFFFu >> (32 - width)) << width;
      ASSERT_TRUE(i >= hash64s.size() || combined == at.fingerprint) << width;
    }
  }
}

// ---- batches --------------------------------------------------------------------------------------------------------

TEST(Fuse, AnswersBatchesAsItAnswersOneByOne) {
  for (const unsigned width : some_widths) {
    for (const std::uint64_t n :
         {1u, 10u, 5000u, 600'000u}) {  // with 32 bits the last is larger than the cache of a core
      if (n > 5000 && width != 32 && width != 31) continue;
      const auto hash64s = hash64_series(n, n);
      const auto payload = built(hash64s, width);
      for (const std::size_t count : {0u, 1u, 31u, 32u, 33u, 64u, 255u, 256u, 257u, 3000u}) {
        std::vector<std::uint64_t> asked;
        for (std::size_t i = 0; i < count; ++i) asked.push_back(i % 3 == 0 ? hash64s[i % n] : mix64(~i));
        std::vector<std::uint64_t> expected((count + 63) / 64), actual(expected.size() + 1, 0x5555);
        for (std::size_t i = 0; i < count; ++i) {
          expected[i / 64] |= std::uint64_t{has(width, payload.data(), asked[i])} << (i % 64);
        }
        expected.push_back(0x5555);  // behind the answers nothing is written

        has_batch(payload, asked, actual.data());

        ASSERT_EQ(actual, expected) << width << " " << n << " " << count;
      }
    }
  }
}

// ---- the rate -------------------------------------------------------------------------------------------------------

TEST(Fuse, ReportsAbsentKeysAtItsExactRate) {
  for (const std::uint64_t n : {1u, 2u, 3u, 10u, 100u, 11'500u, 300'000u}) {
    SCOPED_TRACE(n);
    const std::uint64_t queries = 2'000'000;

    for (const unsigned width : {1u, 5u, 8u, 11u, 16u, 18u}) {
      const std::uint64_t found = hits(width, built(hash64_series(n, 7), width), queries);

      // The FPR is 2^-w for each set, not only on average, because the fingerprint of a looked-up key is random.
      EXPECT_GT(chance_of(found, queries, static_rate(width, n)), 1e-6) << width << " bits: " << found;
    }
  }
}

TEST(Fuse, HasVeryFewFalsePositivesWith32Bits) {
  for (const std::uint64_t n : {10u, 11'500u, 300'000u})
    EXPECT_EQ(hits(32, built(hash64_series(n, 9), 32), 1'000'000), 0u);
}

// Absent keys with the cells of a present key are not more often false positives, because the cells do not determine
// the fingerprint.
TEST(Fuse, HasFingerprintsIndependentOfTheCells) {
  const auto hash64s =
      hash64_series(3, 5);  // three segments of 8 cells: one absent key in 171 has the cells of a present one
  const auto payload = built(hash64s, 8);
  const std::uint64_t queries = 4'000'000;
  std::uint64_t same_cells = 0, reported = 0;
  for (std::uint64_t i = 0; i < queries; ++i) {
    const std::uint64_t hash64 = mix64(~i);
    const auto at = fuse_place_of(8, payload, hash64).cells;
    const bool same = std::any_of(hash64s.begin(), hash64s.end(),
                                  [&](std::uint64_t key) { return fuse_place_of(8, payload, key).cells == at; });
    same_cells += same ? 1 : 0;
    reported += same && has(8, payload.data(), hash64) ? 1 : 0;
  }

  EXPECT_GT(same_cells, queries / 200);
  EXPECT_GT(chance_of(reported, same_cells, static_rate(8, 3)), 1e-6) << reported << " of " << same_cells;
}

TEST(Fuse, HasTheSameExpectedAndCurrentRate) {
  EXPECT_EQ(static_rate(8, 0), 0);
  EXPECT_NEAR(static_rate(8, 1000), 1 / 256.0 + 1000 * 0x1p-64, 1e-17);
  EXPECT_NEAR(static_rate(16, 1000), 1 / 65536.0 + 1000 * 0x1p-64, 1e-19);
  EXPECT_NEAR(static_rate(32, 1'000'000'000), 0x1p-32 + 1e9 * 0x1p-64, 1e-18);
  for (const std::uint64_t n : {0u, 1u, 1000u, 1001u, 1002u}) {
    const unsigned width = n > 1000 ? static_cast<unsigned>(10 * (n - 1000)) : 8;
    std::vector<std::uint64_t> hash64s = hash64_series(n, 3);
    const static_bytes made = fuse_build(hash64s, width);
    const params p = static_params({.hash = "mix", .keys = key_kind::u64le}, width, made);

    const fill_statistics now = measure_fill(p, bytes_of(made));

    EXPECT_DOUBLE_EQ(now.current_fpr, expected_fpr(p, n));
    EXPECT_EQ(now.ones, count_ones(bytes_of(made)));
    EXPECT_EQ(estimated_keys(p, now.ones).value, static_cast<double>(n));
    EXPECT_FALSE(check_fill(p, n, now.ones).is_inconsistent());
  }
}

// ---- sets, not lists ------------------------------------------------------------------------------------------------

TEST(Fuse, HasTheSameBytesForAnyOrderAndNumberOfThreads) {
  auto hash64s = hash64_series(2'700'000, 11);  // three partitions
  const auto expected = built(hash64s, 8, 1);
  const auto packed = built(hash64s, 11, 1);
  std::mt19937_64 random(1);
  for (const unsigned threads : {2u, 3u, 7u}) {
    std::shuffle(hash64s.begin(), hash64s.end(), random);

    EXPECT_TRUE(built(hash64s, 8, threads) == expected) << threads;
    EXPECT_TRUE(built(hash64s, 11, threads) == packed) << threads;
  }
}

TEST(Fuse, TakesCopiesAsOneKey) {
  std::mt19937_64 random(1);
  for (const std::uint64_t n : {1u, 2u, 10u, 1000u, 700'000u}) {
    const auto once = hash64_series(n, 13);
    auto copies = once;
    for (std::uint64_t i = 0; i < n; ++i) copies.insert(copies.end(), i % 3, once[i]);  // 700,000: 2 partitions, then 1
    std::shuffle(copies.begin(), copies.end(), random);

    for (const unsigned threads : {1u, 3u}) {
      EXPECT_TRUE(built(copies, 16, threads) == built(once, 16)) << n << " by " << threads;
    }
  }
}

TEST(Fuse, TakesTenMillionCopiesOfOneKeyAsOne) {
  std::vector<std::uint64_t> copies(10'000'000, 0x123456789ABCDEF);

  const auto payload = built(copies, 8, 2);

  EXPECT_EQ(payload, built({0x123456789ABCDEF}, 8));
  EXPECT_EQ(sealed::keys_in(payload.data()), 1u);
}

// A cell that counts its keys in 8 bits takes these for one, with a number that is none: read behind the array, as the
// sanitizers see.
TEST(Fuse, TakesEnoughCopiesToOverflowACount) {
  std::mt19937_64 random(1);
  const auto once = hash64_series(3000, 5);
  for (const std::uint64_t count : {257u, 513u}) {
    for (int order = 0; order < 10; ++order) {
      auto copies = once;
      copies.insert(copies.end(), count - 1, once[1000]);
      std::shuffle(copies.begin(), copies.end(), random);

      EXPECT_TRUE(built(copies, 8) == built(once, 8)) << count;
      EXPECT_TRUE(built(copies, 32, 3) == built(once, 32)) << count;
    }
  }
}

TEST(Fuse, BuildsOfHashesThatAreMuchAlike) {
  // All in the first of several partitions; and the largest of all hashes.
  std::vector<std::uint64_t> hash64s(is_long() ? 18'000'000 : 1'400'000);
  std::iota(hash64s.begin(), hash64s.end(), std::uint64_t{0});
  hash64s.push_back(~std::uint64_t{0});

  const auto payload = built(hash64s, 8, 2);

  expect_sound(8, hash64s, payload);
  EXPECT_EQ(sealed::keys_in(payload.data()), hash64s.size());
  const std::uint64_t queries = 1'000'000;
  std::uint64_t reported = 0;
  for (std::uint64_t i = 0; i < queries; ++i) reported += has(8, payload.data(), hash64s.size() + i) ? 1 : 0;
  EXPECT_GT(chance_of(reported, queries, static_rate(8, hash64s.size())), 1e-6);
}

TEST(Fuse, EndsTheBuildingWhenTheWatchThrows) {
  for (const unsigned threads : {1u, 3u}) {
    auto hash64s = hash64_series(3'000'000, 1);
    std::uint64_t calls = 0;

    EXPECT_THROW(fuse_build(hash64s, 8, threads,
                            [&](std::uint64_t) {
                              if (++calls == 2) throw std::runtime_error("enough");
                            }),
                 std::runtime_error);
    EXPECT_EQ(calls, 2u);
  }
}

TEST(Fuse, RefusesOtherWidths) {
  std::vector<std::uint64_t> hash64s{1};

  for (const unsigned width : {0u, 33u, 64u})
    EXPECT_EQ(code_of([&] { fuse_build(hash64s, width); }), errc::invalid_argument);
}

TEST(Fuse, HasTheSizeThatIsPlannedForItsNumberOfKeys) {
  for (const std::uint64_t keys : {0u, 1u, 2u, 50u, 1000u, 300'000u, 2'000'000u}) {
    for (const unsigned width : some_widths) {
      if (keys > 1'000'000 && width != 8 && width != 11) continue;
      const double planned = static_cast<double>(fuse_geometry(width, keys).bits);
      const double made = 8 * static_cast<double>(built(hash64_series(keys, 3), width).size());

      // Several partitions have unequal numbers of keys.
      EXPECT_NEAR(made / planned, 1, keys > 1'000'000 ? 0.005 : 0) << keys << " keys, " << width << " bits";
    }
  }
}

// ---- invalid bytes --------------------------------------------------------------------------------------------------

// Looks up many keys, in memory between fences. Returns true if the bytes were refused.
bool refused_or_harmless(unsigned width, std::span<const std::uint8_t> payload) {
  try {
    check_fuse(width, payload, "test");
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::damaged);
    return true;
  }
  const auto hash64s = hash64_series(300, 1);
  std::vector<std::uint64_t> bitmap(5);
  has_batch(payload, hash64s, bitmap.data());
  for (std::size_t i = 0; i < hash64s.size(); ++i) {
    EXPECT_EQ(has(width, payload.data(), hash64s[i]), (bitmap[i / 64] >> (i % 64) & 1) != 0);
    for (const std::uint64_t cell : fuse_place_of(width, payload, hash64s[i]).cells) {
      EXPECT_LE((cell + 1) * width / 8, payload.size());
    }
  }
  return false;
}

TEST(Fuse, RefusesBytesThatContradictEachOther) {
  for (const unsigned width : {5u, 8u, 11u, 16u, 25u, 32u}) {
    for (const std::uint64_t n : {0u, 1u, 100u, 1'400'000u}) {
      if (n > 1000 && width != 8) continue;
      const auto sound = built(hash64_series(n, 1), width);
      const std::uint64_t table_end = fuse::cells_at(fuse::partitions_in(sound.data()));
      for (const fence side : {fence::before, fence::behind}) {
        fenced<std::uint8_t> payload(sound.size(), side);
        std::copy(sound.begin(), sound.end(), payload.data());
        EXPECT_FALSE(refused_or_harmless(width, payload.all()));
        std::uint64_t accepted = 0;
        for (std::uint64_t at = 0; at < table_end; ++at) {
          for (const unsigned value : {0u, 1u, 2u, 4u, 0x7Fu, 0x80u, 0xFFu}) {
            if (payload[at] == value) continue;
            const std::uint8_t old = std::exchange(payload[at], static_cast<std::uint8_t>(value));
            accepted += refused_or_harmless(width, payload.all()) ? 0 : 1;
            payload[at] = old;
          }
        }
        // Any seed is valid, and bytes after the table are not read. All other bytes follow from the rest.
        EXPECT_LE(accepted, (8 * fuse::partitions_in(sound.data()) + 32) * 7);
      }
      EXPECT_EQ(code_of([&] { check_fuse(width, std::span(sound).first(sound.size() - 64), "test"); }), errc::damaged);
      EXPECT_EQ(code_of([&] { check_fuse(width, std::span(sound).first(64), "test"); }), errc::damaged);
      EXPECT_EQ(code_of([&] { check_fuse(width, {}, "test"); }), errc::damaged);
    }
  }
}

TEST(Fuse, RefusesRandomTables) {
  std::mt19937_64 random(5);
  fenced<std::uint8_t> payload(4096);
  const std::uint64_t values[] = {0, 1, 2, 3, 4, 8, 64, 127, 128, 4000, 0xFFFFFFFF, 0x80000000, 0xFFFFFFFFFFFFFFFF, 96};
  std::uint64_t accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    const unsigned width = some_widths[random() % std::size(some_widths)];
    const auto partitions = static_cast<std::uint32_t>(1 + random() % 3 * (random() % 2));
    std::memset(payload.data(), 0, 512);
    std::memcpy(payload.data() + 8, &partitions, 4);
    std::memcpy(payload.data() + 12, &width, 4);
    std::uint64_t keys = 0;
    const std::uint64_t most_cells = 8 * (4096 - (fuse::is_whole(width) ? 0 : 7)) / width;
    std::uint64_t first = fuse::first_cell(partitions, width);
    for (std::uint32_t i = 0; i < partitions; ++i) {
      fuse_partition p{random(), first, values[random() % 14], static_cast<std::uint32_t>(values[random() % 14]),
                       std::uint32_t{1} << random() % 20};
      if (random() % 2 == 0) {  // half of them as they should be, up to the end
        p.segment = 4u << random() % 5;
        p.starts = p.segment * (1 + static_cast<std::uint32_t>(random() % 8));
        if (i + 1 == partitions)
          p.starts = static_cast<std::uint32_t>((most_cells - first) / p.segment * p.segment) - 2 * p.segment;
        p.keys = 1;
      }
      keys += p.keys;
      first = fuse::aligned_cell(first + p.cells(), width);
      std::memcpy(payload.data() + fuse::header_bytes + i * fuse::partition_bytes, &p, sizeof p);
    }
    std::memcpy(payload.data(), &keys, 8);
    accepted += refused_or_harmless(width, payload.all()) ? 0 : 1;
  }
  EXPECT_GT(accepted, 100u);
  EXPECT_LT(accepted, 15'000u);
}

}  // namespace
