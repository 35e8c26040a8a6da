// key_span: one call for keys of every form: text, integers, and hashes computed elsewhere.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/key.hpp>
#include <bloomery/rebuilding_filter.hpp>

#include "support/test.hpp"

#include <concepts>

namespace bloomery {
namespace {

using namespace bloomery_tests;

constexpr std::size_t key_count = 700;  // three batches, the last one not whole

params of_layout(const std::string& layout, key_kind kind = key_kind::bytes) {
  params p{.layout = layout, .keys = kind, .capacity = 2000, .target_fpr = 1e-6};
  if (layout == "sliding") p.extra = window_of_keys(2000);
  return complete(p);
}

// The same keys in every form. Nothing is moved afterwards: forms view strings.
struct keys_in_all_forms {
  std::vector<std::string> strings;
  std::vector<std::string_view> views;
  std::vector<std::uint64_t> integers;
  std::vector<key_hash> hashes;
  std::vector<std::uint64_t> hash64s;

  keys_in_all_forms(const any_filter& hasher, std::uint64_t first) : hashes(key_count) {
    for (std::uint64_t i = first; i < first + key_count; ++i) {
      integers.push_back(i);
      strings.push_back("key " + std::to_string(i));
    }
    views.assign(strings.begin(), strings.end());
    const bool text = hasher.parameters().keys == key_kind::bytes;
    if (hasher.uses_hashes()) hasher.hash(text ? key_span(views) : key_span(integers), hashes);
    for (const key_hash& hash : hashes) hash64s.push_back(hash.hash64);
  }

  std::vector<key_span> forms_for(const any_filter& filter) const {
    std::vector<key_span> forms = {integers};
    if (filter.parameters().keys == key_kind::bytes) forms = {views, strings};
    if (filter.uses_hashes()) forms.emplace_back(hashes);
    if (filter.uses_hash64()) forms.push_back(key_span::of_hash64s(hash64s));
    return forms;
  }
};

// Keys one by one: the calls that the others are measured by.
bool insert_one(any_filter& filter, key_span keys, std::size_t i) {
  return keys.is_text() ? filter.insert(keys.text(i)) : filter.insert(keys.integers()[i]);
}

bool has_one(const any_filter& filter, key_span keys, std::size_t i) {
  return keys.is_text() ? filter.may_contain(keys.text(i)) : filter.may_contain(keys.integers()[i]);
}

void expect_equal_in_all_forms(const params& p) {
  any_filter expected(p);
  const keys_in_all_forms keys(expected, 0), more(expected, key_count / 2);
  const key_span originals = keys.forms_for(expected).front();
  for (std::size_t i = 0; i < key_count; ++i) insert_one(expected, originals, i);

  const std::vector<key_span> forms = keys.forms_for(expected);
  for (std::size_t form = 0; form < forms.size(); ++form) {
    SCOPED_TRACE(form);
    any_filter filter(p), in_any_order(p);
    std::vector<std::uint8_t> is_new(key_count, 7);

    EXPECT_EQ(filter.insert(forms[form], is_new), key_count);
    EXPECT_EQ(in_any_order.insert_all(forms[form], 2), key_count);

    EXPECT_EQ(is_new, std::vector<std::uint8_t>(key_count, 1));
    EXPECT_TRUE(std::ranges::equal(filter.bytes(), expected.bytes()));
    EXPECT_TRUE(std::ranges::equal(in_any_order.bytes(), expected.bytes()));
    EXPECT_EQ(filter.insert(forms[form].part(1, 10)), 0u);
    const key_span looked_up = more.forms_for(expected)[form];
    std::vector<std::uint64_t> bitmap(key_count / 64 + 1);
    filter.may_contain(looked_up, bitmap);
    for (std::size_t i = 0; i < key_count; ++i) {
      ASSERT_EQ(bitmap[i / 64] >> i % 64 & 1, has_one(expected, more.forms_for(expected).front(), i) ? 1u : 0u) << i;
    }
  }
}

TEST(KeySpan, GivesTheSameBitsAndAnswersInEveryForm) {
  for (const char* layout :
       {"split_block", "split_block512", "blocked", "blocked_page", "classic", "counting", "sliding"}) {
    SCOPED_TRACE(layout);
    expect_equal_in_all_forms(of_layout(layout));
    expect_equal_in_all_forms(of_layout(layout, key_kind::u64le));
  }
  expect_equal_in_all_forms(complete({.hash = "murmur3", .capacity = 2000, .target_fpr = 1e-6}));
  expect_equal_in_all_forms(complete({.scheme = "guava", .capacity = 2000, .target_fpr = 1e-6}));
}

TEST(KeySpan, OfTheOtherKindOrWithMissingHashesIsRefused) {
  any_filter texts(of_layout("blocked")), whole_hashes(of_layout("classic"));
  any_filter by_scheme(complete({.scheme = "perl", .capacity = 1000, .target_fpr = 0.01}));
  const std::vector<std::uint64_t> words = {1, 2, 3};
  std::uint64_t bitmap = 7;

  for (any_filter* filter : {&texts, &whole_hashes, &by_scheme}) {
    EXPECT_EQ(code_of([&] { filter->insert(words); }), errc::incompatible);
    EXPECT_EQ(code_of([&] { filter->insert_all(words); }), errc::incompatible);
    EXPECT_EQ(code_of([&] { filter->may_contain(words, {&bitmap, 1}); }), errc::incompatible);
  }
  for (any_filter* filter : {&whole_hashes, &by_scheme}) {
    EXPECT_EQ(code_of([&] { filter->insert(key_span::of_hash64s(words)); }), errc::incompatible);
    EXPECT_EQ(code_of([&] { filter->may_contain(key_span::of_hash64s(words), {&bitmap, 1}); }), errc::incompatible);
  }
  any_filter counters(of_layout("counting"));
  EXPECT_EQ(code_of([&] { counters.remove(key_span::of_hash64s(words)); }), errc::incompatible);
  EXPECT_EQ(bitmap, 7u);
  EXPECT_EQ(texts.insert(key_span::of_hash64s(words)), 3u);
}

// A text is one key, and never a range of characters; a range of one text is a batch.
template <class Filter>
void expect_single_keys_apart() {
  const auto insert = [](auto&& key) -> decltype(std::declval<Filter&>().insert(key)) { return {}; };
  static_assert(std::same_as<decltype(insert("Madrid")), bool>);
  static_assert(std::same_as<decltype(insert(std::string("Madrid"))), bool>);
  static_assert(std::same_as<decltype(insert(std::string_view("Madrid"))), bool>);
  static_assert(std::same_as<decltype(insert(std::uint64_t{7})), bool>);
  static_assert(std::same_as<decltype(insert(7)), bool>);
  static_assert(std::same_as<decltype(insert(std::vector<std::string>{})), std::uint64_t>);
  static_assert(std::same_as<decltype(insert(std::array<std::string_view, 1>{})), std::uint64_t>);
  static_assert(std::same_as<decltype(insert(std::vector<std::uint64_t>{})), std::uint64_t>);
  static_assert(std::same_as<decltype(insert(std::span<key_hash>{})), std::uint64_t>);
}

TEST(KeySpan, LeavesSingleKeysToTheirOwnCalls) {
  expect_single_keys_apart<any_filter>();
  expect_single_keys_apart<rebuilding_filter>();
  any_filter filter(of_layout("blocked"));

  filter.insert(std::string("Madrid"));

  EXPECT_TRUE(filter.may_contain("Madrid"));
  EXPECT_FALSE(filter.may_contain("M"));
}

TEST(KeySpan, IsLoggedInEveryForm) {
  const scratch_folder folder;
  const params p = rebuilding_filter::completed({.capacity = 2000, .target_fpr = 1e-6});
  const keys_in_all_forms keys{any_filter(p), 0};
  const std::vector<key_span> forms = keys.forms_for(any_filter(p));
  ASSERT_EQ(forms.size(), 4u);
  for (std::size_t form = 0; form < forms.size(); ++form) {
    SCOPED_TRACE(form);
    const std::string name = "f" + std::to_string(form);
    rebuilding_filter filter = rebuilding_filter::create(folder / name, p);

    EXPECT_EQ(filter.insert(forms[form].part(0, 600)), 600u);
    filter.record(forms[form].part(600, 100));
    filter.close();

    const any_filter closed = any_filter::open(folder / name);
    EXPECT_EQ(closed.insert_count(), key_count);
    for (const std::string& key : keys.strings) ASSERT_TRUE(closed.may_contain(key)) << key;
  }
}

TEST(KeySpan, ABracedListIsAListOfKeys) {
  any_filter seen(complete({.capacity = 1000, .target_fpr = 0.01}));

  EXPECT_EQ(seen.insert({"Madrid", "Berlin"}), 2u);

  EXPECT_TRUE(seen.may_contain("Madrid"));
  EXPECT_TRUE(seen.may_contain("Berlin"));
}

TEST(KeySpan, ExplainingNoKeyIsRefused) {
  const auto seen = bloomery::make_handle(any_filter(complete({.capacity = 1000, .target_fpr = 0.01})));

  EXPECT_EQ(code_of([&] { seen->explain({}); }), errc::invalid_argument);
}

}  // namespace
}  // namespace bloomery
