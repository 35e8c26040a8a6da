// Single keys of any_filter, which take a shorter path in memory than in files, windows and schemes: the same bits,
// counts, answers and errors on both paths.
#include <bloomery/any_filter.hpp>

#include "support/errors.hpp"
#include "support/files.hpp"
#include "support/test.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace bloomery {
namespace {

using bloomery_tests::code_of;
using bloomery_tests::scratch_folder;

std::vector<std::string> some_texts() {
  std::vector<std::string> texts;
  for (int i = 0; i < 500; ++i) texts.push_back(std::to_string(i % 400));  // some are inserted twice
  return texts;
}

void expect_the_same_as_a_batch(any_filter& single, any_filter& batch) {
  const std::vector<std::string> texts = some_texts();
  std::vector<std::uint8_t> is_new(texts.size());
  batch.insert(texts, is_new);
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(single.insert(texts[i]), is_new[i] != 0) << i;

  EXPECT_TRUE(std::ranges::equal(single.bytes(), batch.bytes()));
  EXPECT_EQ(single.insert_count(), batch.insert_count());
  for (int i = 0; i < 1000; ++i) {
    const std::vector<std::string> text{std::to_string(i)};
    std::uint64_t answer = 0;
    batch.may_contain(text, {&answer, 1});
    EXPECT_EQ(single.may_contain(text[0]), answer != 0) << i;
  }
}

params described(const char* layout) {
  if (std::string(layout) == "sliding")
    return complete({.layout = layout, .target_fpr = 0.01, .extra = window_of_keys(7000)});
  return complete({.layout = layout, .capacity = 500, .target_fpr = 0.01});
}

TEST(SingleKeysOfAnyFilter, EqualABatchInMemoryAndInAFile) {
  const scratch_folder folder;
  for (const char* layout :
       {"split_block", "split_block512", "blocked", "blocked_page", "classic", "counting", "sliding"}) {
    SCOPED_TRACE(layout);
    any_filter batch(described(layout)), in_memory(described(layout)), for_file(described(layout));
    any_filter in_file = any_filter::create(folder / layout, described(layout));

    expect_the_same_as_a_batch(in_memory, batch);
    expect_the_same_as_a_batch(in_file, for_file);
    in_file.close();
    const any_filter verified = any_filter::open(folder / layout, {.check = file_check::on_use});
    for (const std::string& text : some_texts()) EXPECT_TRUE(verified.may_contain(text));
    EXPECT_EQ(verified.insert_count(), in_memory.insert_count());
  }
}

TEST(SingleKeysOfAnyFilter, EqualABatchInAQuotientFilter) {
  any_filter single(described("quotient")), batch(described("quotient"));
  expect_the_same_as_a_batch(single, batch);

  std::vector<std::string> texts = some_texts();
  texts.emplace_back("absent");
  std::vector<removal> results(texts.size());
  EXPECT_EQ(batch.remove(texts, results), 500);
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(single.remove(texts[i]), results[i]) << i;
  EXPECT_EQ(single.to_bytes(), batch.to_bytes());  // with the number of refused removals
  EXPECT_EQ(single.insert_count(), 0);
  EXPECT_EQ(code_of([&] { single.insert(std::uint64_t{1}); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { single.remove(std::uint64_t{1}); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { (void)single.may_contain(std::uint64_t{1}); }), errc::incompatible);
}

TEST(SingleKeysOfAnyFilter, EqualABatchInAQuotientFilterThatGrowsUntilItIsFull) {
  const params p =
      complete({.layout = "quotient_growing", .keys = key_kind::u64le, .capacity = 10'000, .target_fpr = 0.01});
  any_filter single(p), batch(p);
  std::vector<std::uint64_t> keys(15'000);
  std::iota(keys.begin(), keys.end(), std::uint64_t{0});
  std::vector<std::uint8_t> is_new(keys.size());
  EXPECT_ERROR(batch.insert(keys, is_new), errc::full, "the filter is full");
  const std::uint64_t done = batch.insert_count();
  ASSERT_GT(done, 10'000u);

  for (std::uint64_t key = 0; key < done; ++key) ASSERT_EQ(single.insert(key), is_new[key] != 0) << key;
  EXPECT_ERROR(single.insert(done), errc::full, "the filter is full");
  EXPECT_EQ(single.to_bytes(), batch.to_bytes());
}

TEST(SingleKeysOfAnyFilter, EqualABatchInAScheme) {
  const params p = complete({.scheme = "guava", .capacity = 500, .target_fpr = 0.01});
  any_filter single(p), batch(p);
  expect_the_same_as_a_batch(single, batch);
}

TEST(SingleKeysOfAnyFilter, AreRefusedIfTheyAreOfTheOtherKindOrTheSecretIsMissing) {
  const scratch_folder folder;
  const std::uint64_t number = 1;
  const std::string_view text = "one";
  any_filter of_texts(complete({.capacity = 10, .target_fpr = 0.01}));
  any_filter of_numbers(complete({.keys = key_kind::u64le, .capacity = 10, .target_fpr = 0.01}));
  const params keyed = complete({.hash = "siphash", .capacity = 10, .target_fpr = 0.01, .secret = secret_key{1, 2}});
  any_filter::create(folder / "keyed", keyed).close();
  any_filter without_secret = any_filter::open(folder / "keyed", {.facts_only = true});

  for (any_filter* const refusing : {&of_texts, &without_secret}) {
    EXPECT_EQ(code_of([&] { refusing->insert(number); }), errc::incompatible);
    EXPECT_EQ(code_of([&] { (void)refusing->may_contain(number); }), errc::incompatible);
  }
  for (any_filter* const refusing : {&of_numbers, &without_secret}) {
    EXPECT_EQ(code_of([&] { refusing->insert(text); }), errc::incompatible);
    EXPECT_EQ(code_of([&] { (void)refusing->may_contain(text); }), errc::incompatible);
  }
  EXPECT_EQ(of_texts.insert_count() + of_numbers.insert_count(), 0u);
}

TEST(SingleKeysOfAnyFilter, AreNotInsertedIntoAFileThatWasOpenedForReading) {
  const scratch_folder folder;
  any_filter::create(folder / "f", complete({.capacity = 10, .target_fpr = 0.01})).close();
  any_filter for_reading = any_filter::open(folder / "f");

  EXPECT_EQ(code_of([&] { for_reading.insert(std::string_view("one")); }), errc::not_permitted);
  EXPECT_FALSE(for_reading.may_contain("one"));
}

TEST(SingleKeysOfAnyFilter, AreNotRemovedFromAFileThatWasOpenedForReading) {
  const scratch_folder folder;
  for (const char* layout : {"counting", "quotient"}) {
    any_filter filter(described(layout));
    filter.insert("one");
    filter.save(folder / layout);
    any_filter for_reading = any_filter::open(folder / layout);

    EXPECT_EQ(code_of([&] { for_reading.remove("one"); }), errc::not_permitted) << layout;
    EXPECT_EQ(code_of([&] { for_reading.insert("two"); }), errc::not_permitted) << layout;
    EXPECT_TRUE(for_reading.may_contain("one")) << layout;
  }
}

}  // namespace
}  // namespace bloomery
