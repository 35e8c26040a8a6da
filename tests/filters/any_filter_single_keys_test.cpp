// Single keys of any_filter, which take a shorter path in memory than in files, windows and schemes: the same bits,
// counts, answers and errors on both paths.
#include <bloomery/any_filter.hpp>

#include "support/errors.hpp"
#include "support/files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
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

}  // namespace
}  // namespace bloomery
