// Filter cascades: each key of both lists is answered right, the FPR of other keys is exact, and invalid bytes are
// refused.
#include <bloomery/any_filter.hpp>
#include <bloomery/cascade_builder.hpp>
#include <bloomery/detail/cascade.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/measure.hpp>

#include "support/fenced.hpp"
#include "support/long_tests.hpp"
#include "support/test.hpp"

#include <stdexcept>

namespace {

using namespace bloomery;
using namespace bloomery_tests;

using bytes = std::vector<std::uint8_t>;

const params of_integers{.hash = "mix", .keys = key_kind::u64le};

std::vector<std::uint64_t> hash64_series(std::uint64_t count, std::uint64_t series) {
  std::vector<std::uint64_t> hash64s(count);
  for (std::uint64_t i = 0; i < count; ++i) hash64s[i] = mix64(mix64(series + 1) + i);
  return hash64s;
}

cascade_builder built(const std::vector<std::uint64_t>& present, const std::vector<std::uint64_t>& absent,
                      unsigned width, unsigned threads = 1) {
  cascade_builder builder(present, width, threads);
  builder.append_absent(absent);
  EXPECT_EQ(builder.build(of_integers).layout, "cascade" + std::to_string(width));
  return builder;
}

std::uint64_t hits(const std::uint8_t* payload, std::uint64_t queries) {
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < queries; ++i) count += cascade::has(payload, mix64(~i)) ? 1 : 0;
  return count;
}

double current_fpr_of(const params& p, std::span<const std::uint8_t> payload) {
  return measure_fill(p, payload).current_fpr;
}

// ---- both lists -----------------------------------------------------------------------------------------------------

TEST(Cascade, AnswersRightForEachKeyOfBothLists) {
  for (const std::uint64_t n : {0u, 1u, 2u, 50u, 3000u, 40'000u}) {
    for (const std::uint64_t absent_keys : {std::uint64_t{0}, std::uint64_t{1}, n / 3, 30 * n + 7}) {
      for (const unsigned width : {1u, 5u, 8u, 32u}) {
        SCOPED_TRACE(std::to_string(n) + " and " + std::to_string(absent_keys) + " keys, " + std::to_string(width));
        std::vector<std::uint64_t> present = hash64_series(n, n);
        std::vector<std::uint64_t> absent = hash64_series(absent_keys, n + 1);
        const std::uint64_t repeated = n / 7;
        present.insert(present.end(), present.begin(), present.begin() + static_cast<std::ptrdiff_t>(repeated));
        absent.insert(absent.end(), absent.begin(), absent.begin() + static_cast<std::ptrdiff_t>(absent_keys / 5));

        const cascade_builder builder = built(present, absent, width);

        check_cascade(width, builder.bytes(), "test");
        EXPECT_EQ(builder.keys(), n);
        for (const std::uint64_t hash64 : present) ASSERT_TRUE(cascade::has(builder.bytes().data(), hash64));
        for (const std::uint64_t hash64 : absent) ASSERT_FALSE(cascade::has(builder.bytes().data(), hash64));
      }
    }
  }
}

TEST(Cascade, AnswersRightInSeveralPartitionsForAnyOrderAndThreads) {
  std::vector<std::uint64_t> present = hash64_series(1'500'000, 1);
  std::vector<std::uint64_t> absent = hash64_series(3'000'000, 2);
  const cascade_builder first = built(present, absent, 2, 2);
  std::mt19937_64 random(1);
  std::shuffle(present.begin(), present.end(), random);
  std::shuffle(absent.begin(), absent.end(), random);

  const cascade_builder second = built(present, absent, 2, 1);

  EXPECT_TRUE(std::equal(first.bytes().begin(), first.bytes().end(), second.bytes().begin(), second.bytes().end()));
  for (const std::uint64_t hash64 : present) ASSERT_TRUE(cascade::has(first.bytes().data(), hash64));
  for (const std::uint64_t hash64 : absent) ASSERT_FALSE(cascade::has(first.bytes().data(), hash64));
}

TEST(Cascade, FindsAKeyInBothLists) {
  const std::vector<std::uint64_t> present = hash64_series(1000, 1);
  cascade_builder builder(present, 4);
  builder.append_absent(hash64_series(500, 2));
  EXPECT_EQ(builder.conflict(), std::nullopt);
  const std::uint64_t shared[] = {present[7]};
  builder.append_absent(shared);

  EXPECT_EQ(builder.conflict(), present[7]);
  EXPECT_EQ(code_of([&] { builder.build(of_integers); }), errc::invalid_argument);
}

// The second level would have the same place for both. The first level reports one in 16 of these hashes.
TEST(Cascade, FindsAHashThatDiffersInTheLowestBitOnly) {
  const std::vector<std::uint64_t> present = hash64_series(1000, 1);
  std::uint64_t reported = 0;
  for (const std::uint64_t hash64 : present) {
    cascade_builder builder({present.begin(), present.begin() + 300}, 4);
    const std::uint64_t other[] = {hash64 ^ 1};
    builder.append_absent(other);
    if (builder.false_positives() == 0) continue;
    const bool is_near = std::find(present.begin(), present.begin() + 300, hash64) != present.begin() + 300;

    EXPECT_EQ(builder.conflict().has_value(), is_near);
    reported += is_near ? 1 : 0;
  }
  EXPECT_GT(reported, 3u);
}

// The size by the formula, for each width.
TEST(Cascade, ChoosesTheWidthOfTheSmallestFilter) {
  for (const auto& [n, absent] :
       {std::pair{1000.0, 0.0}, {1000.0, 900.0}, {1000.0, 112'000.0}, {8e6, 9e8}, {1.0, 9e18}}) {
    const unsigned chosen = cascade_builder::width_for(n, absent);
    const auto bits = [&, keys = n, others = absent](unsigned w) {
      return w * keys + keys + others * std::pow(2.0, -double(w));
    };
    for (unsigned width = 1; width <= 32; ++width) EXPECT_LE(bits(chosen), bits(width)) << n << " " << absent;
  }
  EXPECT_EQ(cascade_builder::width_for(8e6, 892e6), 6u);
}

TEST(Cascade, RefusesOtherWidthsAndEndsWhenTheWatchThrows) {
  const std::vector<std::uint64_t> present = hash64_series(100, 1);

  for (const unsigned width : {0u, 33u})
    EXPECT_EQ(code_of([&] { cascade_builder(present, width); }), errc::invalid_argument);
  const std::vector<std::uint64_t> many = hash64_series(1'500'000, 1);
  EXPECT_THROW(cascade_builder(many, 3, 2, [](std::uint64_t) { throw std::runtime_error("enough"); }),
               std::runtime_error);
}

TEST(Cascade, IsSavedAfterItIsBuilt) {
  cascade_builder builder(hash64_series(100, 1), 3);

  EXPECT_TRUE(builder.bytes().empty());
  EXPECT_EQ(code_of([&] { builder.save("f"); }), errc::invalid_argument);
  builder.build(of_integers);
  EXPECT_EQ(code_of([&] { builder.append_absent(hash64_series(1, 2)); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { builder.build(of_integers); }), errc::invalid_argument);
}

// ---- other keys -----------------------------------------------------------------------------------------------------

TEST(Cascade, ReportsOtherKeysAtItsCurrentRate) {
  const std::uint64_t queries = under_sanitizer ? 200'000 : 4'000'000;
  for (const std::uint64_t n : {1u, 3u, 40u, 1000u, 60'000u}) {
    for (const std::uint64_t absent : {std::uint64_t{0}, 20 * n}) {
      for (const unsigned width : {1u, 4u, 7u}) {
        cascade_builder builder(hash64_series(n, 5), width);
        builder.append_absent(hash64_series(absent, 6));
        const params p = builder.build(of_integers);
        const std::uint64_t found = hits(builder.bytes().data(), queries);
        const double stated = current_fpr_of(p, builder.bytes());

        EXPECT_GT(chance_of(found, queries, stated), 1e-6) << n << " keys, " << width << ": " << found;
        EXPECT_NEAR(stated, cascade_rate(width, n), 1e-12);
      }
    }
  }
}

// Whatever the slots of the second level are.
TEST(Cascade, ComputesTheRateOfAnySlots) {
  const std::uint64_t queries = under_sanitizer ? 200'000 : 2'000'000;
  const cascade_builder sound = built(hash64_series(3000, 1), hash64_series(9000, 2), 1);
  const params p = [&] {
    params described = of_integers;
    described.layout = "cascade1";
    described.geometry = {8 * sound.bytes().size(), 1};
    described.capacity = 3000;
    return described;
  }();
  std::mt19937_64 random(1);
  for (const unsigned zeros_per_one : {0u, 1u, 20u, 100u, 1000u, 1'000'000u}) {
    bytes payload(sound.bytes().begin(), sound.bytes().end());
    for (std::size_t at = cascade::second_in(payload.data()) + 128; at < payload.size(); ++at) {
      payload[at] = 0;
      for (int bit = 0; bit < 8; ++bit)
        payload[at] = static_cast<std::uint8_t>(payload[at] | (random() % (zeros_per_one + 1) == 0 ? 1 << bit : 0));
    }
    check_cascade(1, payload, "test");
    const std::uint64_t found = hits(payload.data(), queries);

    EXPECT_GT(chance_of(found, queries, current_fpr_of(p, payload)), 1e-6) << zeros_per_one << ": " << found;
  }
}

// Both levels have two partitions, of which the first has no keys.
TEST(Cascade, ComputesTheRateOfPartitionsWithoutKeys) {
  const std::uint64_t queries = under_sanitizer ? 200'000 : 2'000'000;
  std::vector<std::uint64_t> present = hash64_series(1'500'000, 1);
  for (std::uint64_t& hash64 : present) hash64 |= std::uint64_t{1} << 63;
  cascade_builder builder(present, 2, 2);
  const params p = builder.build(of_integers);
  ASSERT_EQ(ribbon::partition_in(builder.bytes().data(), 0).keys, 0u);
  const std::uint64_t found = hits(builder.bytes().data(), queries);

  EXPECT_GT(chance_of(found, queries, current_fpr_of(p, builder.bytes())), 1e-6) << found;
  EXPECT_NEAR(current_fpr_of(p, builder.bytes()), 0.0625, 1e-9);
}

// ---- the filter -----------------------------------------------------------------------------------------------------

TEST(Cascade, IsAFilterInAFile) {
  const scratch_folder folder;
  std::vector<std::uint64_t> keys(30'000);
  std::iota(keys.begin(), keys.end(), std::uint64_t{0});
  std::vector<std::uint64_t> hash64s;
  for (const std::uint64_t key : keys) hash64s.push_back(mix{}(key).hash64);
  const std::span<const std::uint64_t> all(hash64s);
  cascade_builder builder({hash64s.begin(), hash64s.begin() + 3000}, 4, 2);
  builder.append_absent(all.subspan(3000, 17'000));
  const params p = builder.build(of_integers);
  builder.save(folder / "f", {.metadata = "a note"});

  const any_filter file = any_filter::open(folder / "f", {.check = file_check::payload});

  EXPECT_EQ(file.parameters(), p);
  EXPECT_EQ(file.insert_count(), 3000u);
  EXPECT_EQ(file.opened_from()->metadata, "a note");
  EXPECT_FALSE(file.is_writable());
  EXPECT_DOUBLE_EQ(file.expected_fpr(), cascade_rate(4, 3000));
  EXPECT_DOUBLE_EQ(file.current_fpr(), current_fpr_of(p, builder.bytes()));
  const auto handle = open_filter(folder / "f");
  std::vector<std::uint64_t> bitmap((keys.size() + 63) / 64);
  file.may_contain(keys, bitmap);
  std::uint64_t others = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool found = file.may_contain(keys[i]);
    ASSERT_EQ(found, (bitmap[i / 64] >> i % 64 & 1) != 0);
    ASSERT_TRUE(i >= 20'000 || found == (i < 3000)) << i;
    others += found && i >= 20'000 ? 1 : 0;
    const key_explanation why = handle->explain(std::span(keys).subspan(i, 1));
    ASSERT_EQ(why.maybe_present, found);
    ASSERT_EQ(why.fingerprint->exclusive_or == why.fingerprint->expected, found);
  }
  EXPECT_GT(chance_of(others, 10'000, file.current_fpr()), 1e-6) << others;
}

// ---- invalid bytes --------------------------------------------------------------------------------------------------

// Whether the check refuses these bytes. Otherwise, lookups stay within them.
bool refused_or_harmless(unsigned width, std::span<const std::uint8_t> payload) {
  try {
    check_cascade(width, payload, "test");
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::damaged);
    return true;
  }
  std::vector<std::uint64_t> hash64s{0, ~std::uint64_t{0}}, bitmap(4);
  for (std::uint64_t i = 0; hash64s.size() < 200; ++i) hash64s.push_back(mix64(i));
  cascade::has_batch(payload.data(), hash_span::hash64s(hash64s), bitmap.data());
  for (std::size_t i = 0; i < hash64s.size(); ++i)
    EXPECT_EQ(cascade::has(payload.data(), hash64s[i]), (bitmap[i / 64] >> (i % 64) & 1) != 0);
  EXPECT_LE(cascade::share_of_hits(payload.data()), 1);
  return false;
}

TEST(Cascade, RefusesOrSurvivesEveryChangedByteOfTheTables) {
  const cascade_builder sound = built(hash64_series(300, 1), hash64_series(3000, 2), 3);
  const std::uint64_t second = cascade::second_in(sound.bytes().data());
  for (const fence side : {fence::before, fence::behind}) {
    fenced<std::uint8_t> payload(sound.bytes().size(), side);
    std::copy(sound.bytes().begin(), sound.bytes().end(), payload.data());
    ASSERT_FALSE(refused_or_harmless(3, payload.all()));
    for (const std::uint64_t level : {std::uint64_t{0}, second}) {
      for (std::uint64_t at = level; at < level + 128; ++at) {
        const std::uint8_t old = payload.data()[at];
        for (const int changed : {0, 1, 2, 0x40, 0x80, 0xFF, old ^ 1, old ^ 0x80}) {
          if (changed == old) continue;
          payload.data()[at] = static_cast<std::uint8_t>(changed);
          refused_or_harmless(3, payload.all());
        }
        payload.data()[at] = old;
      }
    }
  }
}

TEST(Cascade, RefusesAnotherOffset) {
  const cascade_builder sound = built(hash64_series(300, 1), hash64_series(3000, 2), 3);
  bytes payload(sound.bytes().begin(), sound.bytes().end());
  const std::uint64_t right = cascade::second_in(payload.data());
  for (const std::uint64_t offset :
       {std::uint64_t{0}, std::uint64_t{64}, right - 64, right + 1, right + 64, std::uint64_t{payload.size()},
        payload.size() - 64, std::uint64_t{payload.size() + 64}, ~std::uint64_t{63}}) {
    std::memcpy(payload.data() + cascade::offset_at, &offset, sizeof offset);

    EXPECT_EQ(code_of([&] { check_cascade(3, payload, "test"); }), errc::damaged) << offset;
  }
  for (std::size_t size = 0; size < payload.size(); size += 64)
    EXPECT_EQ(code_of([&] { check_cascade(3, std::span(payload).first(size), "test"); }), errc::damaged) << size;
}

}  // namespace
