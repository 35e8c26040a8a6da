// Rebuilding filters: growth by a rebuild from the key log, the false-positive rate at each step, rebuilds with other
// parameters, and rebuilds in a thread.
#include <bloomery/hash.hpp>
#include <bloomery/rebuilding_filter.hpp>

#include "filters/rebuilding_filters.hpp"
#include "support/long_tests.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;
using bloomery_tests::file_bytes;

// ---- growing --------------------------------------------------------------------------------------------------------

TEST(RebuildingFilter, KeepsItsTargetAndItsSizeAtEachStepOfGrowth) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
  const std::uint64_t last = is_long() ? 10'000'000 : 400'000;
  std::uint64_t rebuilds = 0;
  double most_bits = 0;

  for (std::uint64_t keys = 0; keys < last;) {
    const std::uint64_t more = std::max<std::uint64_t>(keys / 50, 500);
    add(filter, keys, more);
    keys += more;
    filter.settle();
    if (keys > 4096) {
      const double bits = 8 * static_cast<double>(filter.view().byte_size()) / static_cast<double>(keys);
      most_bits = std::max(most_bits, bits);
    }
    if (filter.rebuilds() == rebuilds) continue;
    rebuilds = filter.rebuilds();
    ASSERT_LE(keys, filter.capacity());
    expect_rate_kept(filter.view(), 0.01, 50'000);
  }

  EXPECT_GT(rebuilds, 20u);
  EXPECT_LE(most_bits, 13);
  EXPECT_EQ(count_found(filter.view(), numbers(0, last)), last);
  const double all = static_cast<double>(filter.insert_count());
  EXPECT_LE(8 * static_cast<double>(file_bytes(folder / "f")) / all, 13);
  EXPECT_LE(static_cast<double>(filter.log().bytes()) / all, 8.5);
}

// A batch may go past several sizes at which the filter grows.
TEST(RebuildingFilter, HasItsTargetRateAfterBatchesOfAnySize) {
  for (const std::uint64_t batch : {700u, 32'768u, 250'000u}) {
    const scratch_folder folder;
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
    for (std::uint64_t keys = 0; keys < 500'000; keys += batch) {
      add(filter, keys, batch, batch);
      ASSERT_LE(filter.expected_fpr(), 0.01) << keys + batch << " keys in batches of " << batch;
      ASSERT_LE(filter.insert_count(), filter.capacity());
    }
    expect_rate_kept(filter.view(), 0.01);
  }
}

// Filled to its capacity, the filter has the target FPR.
TEST(RebuildingFilter, IsAtItsTargetWhenFull) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
  add(filter, 0, 120'000);
  filter.settle();

  while (filter.insert_count() < filter.capacity() * 96 / 100) add(filter, absent / 2 + filter.log().keys(), 500);

  EXPECT_GT(filter.expected_fpr(), 0.008);
  EXPECT_LE(filter.expected_fpr(), 0.01);
  expect_rate_kept(filter.view(), 0.01);
}

// The log contains keys that a filter with many false positives reported as present.
TEST(RebuildingFilter, RebuiltAtALowerRateItHasTheKeysThatOnceSeemedToBeThere) {
  const scratch_folder folder;
  params p = of_integers;
  p.target_fpr = 0.1;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", p);
  add(filter, 0, 1'000'000, 50'000);
  EXPECT_LT(filter.insert_count(), 990'000u);  // so some were false positives

  filter.rebuild({.rate = 0.01});

  EXPECT_EQ(count_found(filter.view(), numbers(0, 1'000'000)), 1'000'000u);
  EXPECT_GT(filter.insert_count(), 990'000u);
  expect_rate_kept(filter.view(), 0.01);
}

TEST(RebuildingFilter, RebuildsAtOtherRatesLayoutsAndCapacities) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
  add(filter, 0, 20'000);

  for (const char* layout : {"split_block", "split_block512", "blocked", "blocked_page"}) {
    filter.rebuild({.rate = 0.001, .capacity = 30'000, .layout = layout});
    EXPECT_EQ(filter.parameters().layout, layout);
    EXPECT_EQ(filter.parameters().target_fpr, 0.001);
    EXPECT_EQ(filter.capacity(), 30'000u);
    EXPECT_EQ(count_found(filter.view(), numbers(0, 20'000)), 20'000u);
    expect_rate_kept(filter.view(), 0.001);
  }

  EXPECT_EQ(code_of([&] { filter.rebuild({.layout = "classic"}); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { filter.rebuild({.capacity = 10'000}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { filter.rebuild({.rate = 1.0}); }), errc::invalid_argument);
  EXPECT_EQ(filter.parameters().layout, "blocked_page");
  EXPECT_EQ(count_found(filter.view(), numbers(0, 20'000)), 20'000u);
}

TEST(RebuildingFilter, RefusesWhatNeedsMoreThanALogHas) {
  const scratch_folder folder;

  EXPECT_EQ(code_of([&] { rebuilding_filter::create(folder / "f", {.layout = "classic"}); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { rebuilding_filter::create(folder / "f", {.scheme = "guava"}); }), errc::incompatible);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(RebuildingFilter, RewritesItsLogIfMostOfItIsRepetition) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);

  for (int i = 0; i < 60; ++i) add(filter, 0, 10'000);
  filter.settle();

  EXPECT_GT(filter.log().generation(), 1u);
  EXPECT_LT(filter.log().bytes(), (std::uint64_t{1} << 20) + 100'000);
  EXPECT_EQ(count_found(filter.view(), numbers(0, 10'000)), 10'000u);
  filter.close();
  EXPECT_EQ(count_found(open_verified(folder / "f").view(), numbers(0, 10'000)), 10'000u);
}

TEST(RebuildingFilter, TakesRecordedKeysAtTheNextRebuildOrAtClosing) {
  const scratch_folder folder;
  const any_filter hasher(
      complete({.layout = "split_block512", .keys = key_kind::u64le, .capacity = 1, .target_fpr = 0.5}));
  std::vector<key_hash> hashes(30'000);
  hasher.hash(std::span<const std::uint64_t>(numbers(0, 30'000)), hashes);
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);

  filter.record(hashes);
  EXPECT_EQ(filter.insert_count(), 0u);
  filter.close();

  filter = open_to_write(folder / "f");
  EXPECT_EQ(count_found(filter.view(), numbers(0, 30'000)), 30'000u);
  EXPECT_EQ(filter.capacity(), 37'200u);
}

TEST(RebuildingFilter, KeepsKeysOfBytesWithASecret) {
  const scratch_folder folder;
  const secret_key key = random_secret();
  std::vector<std::string> texts;
  for (int i = 0; i < 3000; ++i) texts.push_back("user " + std::to_string(i));
  const std::vector<std::string_view> keys(texts.begin(), texts.end());
  {
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", {.secret = key});
    filter.insert(std::span<const std::string_view>(keys));
    filter.close();
  }

  EXPECT_EQ(code_of([&] { open_to_write(folder / "f"); }), errc::incompatible);
  EXPECT_EQ(
      code_of([&] { rebuilding_filter::open(folder / "f", {.mode = access::read_write, .secret = random_secret()}); }),
      errc::incompatible);
  rebuilding_filter filter =
      rebuilding_filter::open(folder / "f", {.mode = access::read_write, .check = file_check::payload, .secret = key});
  filter.rebuild({.rate = 0.001});

  for (const std::string_view text : keys) EXPECT_TRUE(filter.may_contain(text));
  EXPECT_EQ(filter.parameters().hash, "siphash");
}

// A thread builds the next filter while keys are inserted.
TEST(RebuildingFilter, GrowsByAThreadWhileKeysComeIn) {
  const scratch_folder folder;
  params p = of_integers;
  p.capacity = 100'000;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", p);

  add(filter, 0, 300'000, 100);

  EXPECT_GE(filter.rebuilds(), 4u);
  EXPECT_EQ(count_found(filter.view(), numbers(0, 300'000)), 300'000u);
  EXPECT_LE(filter.insert_count(), filter.capacity());
}

TEST(RebuildingFilter, AThreadThatIsNotWaitedForEndsWithTheFilter) {
  const scratch_folder folder;
  params p = of_integers;
  p.capacity = 100'000;
  {
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", p);
    add(filter, 0, 98'000);
    filter.abandon();
  }

  rebuilding_filter filter = open_verified(folder / "f");

  EXPECT_EQ(count_found(filter.view(), numbers(0, 98'000)), 98'000u);
  EXPECT_FALSE(std::filesystem::exists(folder / "f.rebuild"));
}

}  // namespace
}  // namespace bloomery
