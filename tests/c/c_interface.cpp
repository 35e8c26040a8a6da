// The C interface, compared with exact sets and with the C++ library.
#include <bloomery.h>
#include <bloomery/any_filter.hpp>
#include <bloomery/filter_handle.hpp>

#include "support/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace bloomery_tests {
namespace {

using testing::HasSubstr;

// A filter that is closed at the end of its scope. close() expects success.
class c_filter {
 public:
  c_filter() = default;
  c_filter(const c_filter&) = delete;
  c_filter& operator=(const c_filter&) = delete;
  ~c_filter() { bloomery_discard(filter_); }

  operator bloomery_filter*() const { return filter_; }
  bloomery_filter** operator&() { return &filter_; }
  void close() { EXPECT_EQ(bloomery_close(std::exchange(filter_, nullptr)), BLOOMERY_OK) << bloomery_error_text(); }

 private:
  bloomery_filter* filter_ = nullptr;
};

#define EXPECT_OK(call) EXPECT_EQ(call, BLOOMERY_OK) << bloomery_error_text()
#define EXPECT_REFUSED(call, code, words)                 \
  do {                                                    \
    EXPECT_EQ(call, code) << #call;                       \
    EXPECT_THAT(bloomery_error_text(), HasSubstr(words)); \
  } while (false)

// Random texts with repetitions; some are empty, and some contain NUL.
std::vector<std::string> some_texts(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) {
    std::string text = std::to_string(random() % count);
    if (random() % 7 == 0) text += '\0';
    texts.push_back(random() % 50 == 0 ? "" : text);
  }
  return texts;
}

std::vector<bloomery_bytes> views_of(const std::vector<std::string>& texts) {
  std::vector<bloomery_bytes> views;
  for (const std::string& text : texts) views.push_back({text.empty() ? nullptr : text.data(), text.size()});
  return views;
}

template <class Offset>
struct buffer_with_offsets {
  explicit buffer_with_offsets(const std::vector<std::string>& texts) : offsets{0} {
    for (const std::string& text : texts) {
      data += text;
      offsets.push_back(static_cast<Offset>(data.size()));
    }
  }
  std::string data;
  std::vector<Offset> offsets;
};

std::vector<std::uint8_t> bytes_of(const bloomery_filter* filter) {
  std::uint8_t* bytes = nullptr;
  std::size_t length = 0;
  EXPECT_OK(bloomery_to_bytes(filter, &bytes, &length));
  std::vector<std::uint8_t> copy(bytes, bytes + length);
  bloomery_free_bytes(bytes);
  return copy;
}

TEST(CInterface, EveryFormOfKeysSetsTheBitsOfTheLibrary) {
  const std::vector<std::string> texts = some_texts(20'000, 1);  // several steps, and a part of one
  bloomery::any_filter wanted(bloomery::complete({.capacity = 20'000, .target_fpr = 0.01}));
  std::vector<std::uint8_t> is_new(texts.size());
  wanted.insert(texts, is_new);
  const std::vector<bloomery_bytes> views = views_of(texts);
  const buffer_with_offsets<std::int32_t> small(texts);
  const buffer_with_offsets<std::int64_t> large(texts);
  const bloomery_keys forms[] = {
      bloomery_keys_of_views(views.data(), views.size()),
      bloomery_keys_of_offsets32(small.data.data(), small.data.size(), small.offsets.data(), texts.size()),
      bloomery_keys_of_offsets64(large.data.data(), large.data.size(), large.offsets.data(), texts.size()),
  };

  for (const bloomery_keys& keys : forms) {
    const bloomery_params params = BLOOMERY_PARAMS(20'000, 0.01);
    c_filter batch, all;
    EXPECT_OK(bloomery_make(&params, &batch));
    EXPECT_OK(bloomery_make(&params, &all));
    std::vector<std::uint8_t> answers(texts.size(), 9);
    bloomery_change done = {};
    std::uint64_t changed = 0;
    EXPECT_OK(bloomery_insert_many(batch, &keys, answers.data(), &done));
    EXPECT_OK(bloomery_insert_all(all, &keys, 2, &changed));

    EXPECT_EQ(answers, is_new);
    EXPECT_EQ(done.keys, texts.size());
    EXPECT_EQ(done.changed, wanted.insert_count());
    EXPECT_EQ(bytes_of(batch), wanted.to_bytes());
    EXPECT_TRUE(bloomery::any_filter::from_bytes(bytes_of(all)) == wanted);
  }
}

TEST(CInterface, IntegersAndSingleKeysSetTheBitsOfTheLibrary) {
  bloomery::any_filter wanted(
      bloomery::complete({.keys = bloomery::key_kind::u64le, .capacity = 9000, .target_fpr = 0.001}));
  std::vector<std::uint64_t> numbers(9000);
  std::mt19937_64 random(2);
  for (std::uint64_t& number : numbers) number = random() % 9000;
  wanted.insert(numbers);
  bloomery_params params = BLOOMERY_PARAMS(9000, 0.001);
  params.keys = BLOOMERY_U64;
  c_filter batch, single;
  EXPECT_OK(bloomery_make(&params, &batch));
  EXPECT_OK(bloomery_make(&params, &single));
  const bloomery_keys keys = bloomery_keys_of_u64(numbers.data(), numbers.size());

  EXPECT_OK(bloomery_insert_many(batch, &keys, nullptr, nullptr));
  std::uint64_t sum = 0;
  for (const std::uint64_t number : numbers) {
    int is_new = -1;
    EXPECT_OK(bloomery_insert_u64(single, number, &is_new));
    sum += static_cast<std::uint64_t>(is_new);
  }

  EXPECT_EQ(sum, wanted.insert_count());
  EXPECT_EQ(bytes_of(batch), wanted.to_bytes());
  EXPECT_EQ(bytes_of(single), wanted.to_bytes());
  const std::string text = "7";
  EXPECT_REFUSED(bloomery_insert(single, text.data(), text.size(), nullptr), BLOOMERY_INCOMPATIBLE, "keys");
}

TEST(CInterface, LookupsAgreeWithAnExactSetAndWithEachOther) {
  const std::vector<std::string> inside = some_texts(10'000, 3);
  const std::vector<std::string> asked = some_texts(20'000, 4);
  const std::set<std::string> exact(inside.begin(), inside.end());
  const bloomery_params params = BLOOMERY_PARAMS(10'000, 0.01);
  c_filter filter;
  EXPECT_OK(bloomery_make(&params, &filter));
  for (const std::string& text : inside) EXPECT_OK(bloomery_insert(filter, text.data(), text.size(), nullptr));
  const std::vector<bloomery_bytes> views = views_of(asked);
  const bloomery_keys keys = bloomery_keys_of_views(views.data(), views.size());
  std::vector<std::uint8_t> found(asked.size(), 9);
  std::vector<std::uint64_t> bitmap(asked.size() / 64 + 2, ~std::uint64_t{0});
  std::uint64_t count = 0;

  EXPECT_OK(bloomery_contains_many(filter, &keys, found.data(), &count));
  EXPECT_OK(bloomery_contains_bitmap(filter, &keys, bitmap.data(), bitmap.size()));

  std::uint64_t ones = 0, absent = 0, false_positives = 0;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    int single = -1;
    EXPECT_OK(bloomery_contains(filter, asked[i].data(), asked[i].size(), &single));
    EXPECT_EQ(single, found[i]);
    EXPECT_EQ(bitmap[i / 64] >> i % 64 & 1, found[i]);
    if (exact.count(asked[i]) != 0) {
      EXPECT_EQ(found[i], 1);
    }
    absent += exact.count(asked[i]) == 0 ? 1 : 0;
    false_positives += exact.count(asked[i]) == 0 && found[i] == 1 ? 1 : 0;
    ones += found[i];
  }
  EXPECT_EQ(count, ones);
  EXPECT_EQ(bitmap[asked.size() / 64] >> asked.size() % 64, 0U);  // unused bits
  EXPECT_EQ(bitmap.back(), ~std::uint64_t{0});                    // further words
  EXPECT_LT(static_cast<double>(false_positives), 0.02 * static_cast<double>(absent));
}

TEST(CInterface, HostileKeysAreRefusedAndNamed) {
  const bloomery_params params = BLOOMERY_PARAMS(100, 0.01);
  c_filter filter;
  EXPECT_OK(bloomery_make(&params, &filter));
  const std::vector<std::uint8_t> before = bytes_of(filter);
  const char* const data = "MadridBerlin";
  const auto insert = [&](std::vector<std::int32_t> offsets, std::size_t data_size) {
    const bloomery_keys keys = bloomery_keys_of_offsets32(data, data_size, offsets.data(), offsets.size() - 1);
    return bloomery_insert_many(filter, &keys, nullptr, nullptr);
  };

  EXPECT_REFUSED(insert({0, 6, 13}, 12), BLOOMERY_INVALID_ARGUMENT, "exceeds the data: expected 12 or less, found 13");
  EXPECT_REFUSED(insert({0, 6, 5}, 12), BLOOMERY_INVALID_ARGUMENT, "key 1");
  EXPECT_REFUSED(insert({-1, 6}, 12), BLOOMERY_INVALID_ARGUMENT, "key 0");
  bloomery_keys keys = bloomery_keys_of_views(nullptr, 3);
  EXPECT_REFUSED(bloomery_insert_many(filter, &keys, nullptr, nullptr), BLOOMERY_INVALID_ARGUMENT, "keys.data");
  const bloomery_bytes null_key = {nullptr, 5};
  keys = bloomery_keys_of_views(&null_key, 1);
  EXPECT_REFUSED(bloomery_contains_many(filter, &keys, nullptr, nullptr), BLOOMERY_INVALID_ARGUMENT, "key 0");
  keys.form = 17;
  EXPECT_REFUSED(bloomery_insert_many(filter, &keys, nullptr, nullptr), BLOOMERY_INVALID_ARGUMENT, "form");
  EXPECT_REFUSED(bloomery_insert(filter, nullptr, 5, nullptr), BLOOMERY_INVALID_ARGUMENT, "key");
  std::uint64_t word = 0;
  const std::vector<std::uint64_t> numbers(65);
  keys = bloomery_keys_of_u64(numbers.data(), numbers.size());
  EXPECT_REFUSED(bloomery_contains_bitmap(filter, &keys, &word, 1), BLOOMERY_INVALID_ARGUMENT, "2 or more, found 1");
  EXPECT_EQ(bytes_of(filter), before);
}

TEST(CInterface, NullPointersAreRefused) {
  const bloomery_params params = BLOOMERY_PARAMS(100, 0.01);
  bloomery_info info = BLOOMERY_INFO;
  const bloomery_keys none = bloomery_keys_of_u64(nullptr, 0);
  c_filter filter;
  EXPECT_OK(bloomery_make(&params, &filter));
  int found = 7;
  std::size_t length = 0;
  c_filter out;

  for (const bloomery_code code : {bloomery_make(nullptr, &out),
                                   bloomery_make(&params, nullptr),
                                   bloomery_make_scalable(nullptr, &out),
                                   bloomery_create(nullptr, &params, 0, &out),
                                   bloomery_open(nullptr, 0, nullptr, &out),
                                   bloomery_open("x", 0, nullptr, nullptr),
                                   bloomery_from_bytes(nullptr, 1, nullptr, &out),
                                   bloomery_insert(nullptr, "x", 1, nullptr),
                                   bloomery_insert_u64(nullptr, 1, nullptr),
                                   bloomery_contains(nullptr, "x", 1, &found),
                                   bloomery_contains(filter, "x", 1, nullptr),
                                   bloomery_contains_u64(filter, 1, nullptr),
                                   bloomery_remove(nullptr, "x", 1, nullptr),
                                   bloomery_insert_many(nullptr, &none, nullptr, nullptr),
                                   bloomery_insert_many(filter, nullptr, nullptr, nullptr),
                                   bloomery_insert_all(filter, nullptr, 0, nullptr),
                                   bloomery_contains_many(filter, nullptr, nullptr, nullptr),
                                   bloomery_contains_bitmap(filter, nullptr, nullptr, 0),
                                   bloomery_remove_many(filter, nullptr, nullptr, nullptr),
                                   bloomery_build_static(nullptr, BLOOMERY_FUSE, 8, nullptr, &out),
                                   bloomery_merge(filter, nullptr),
                                   bloomery_clear(nullptr),
                                   bloomery_copy(filter, nullptr),
                                   bloomery_copy(nullptr, &out),
                                   bloomery_tick(nullptr, 1),
                                   bloomery_save(filter, nullptr),
                                   bloomery_to_bytes(filter, nullptr, &length),
                                   bloomery_get_info(filter, 0, nullptr),
                                   bloomery_get_info(nullptr, 0, &info),
                                   bloomery_plan(&params, nullptr),
                                   bloomery_plan(nullptr, &info)}) {
    EXPECT_EQ(code, BLOOMERY_INVALID_ARGUMENT);
    EXPECT_THAT(bloomery_error_text(), HasSubstr("null pointer"));
  }
  EXPECT_EQ(static_cast<bloomery_filter*>(out), nullptr);
  EXPECT_EQ(found, 7);
  EXPECT_EQ(bloomery_close(nullptr), BLOOMERY_OK);
  EXPECT_OK(bloomery_insert_many(filter, &none, nullptr, nullptr));  // no keys: of either kind
}

TEST(CInterface, WrongParametersAreRefusedWithTheirNames) {
  c_filter out;
  const auto refused = [&](bloomery_params params) { return bloomery_make(&params, &out); };
  bloomery_params params = BLOOMERY_PARAMS(1000, 1.5);
  EXPECT_REFUSED(refused(params), BLOOMERY_INVALID_ARGUMENT, "rate");
  params.target_fpr = 0.01;
  params.layout = "no_such_layout";
  EXPECT_REFUSED(refused(params), BLOOMERY_INVALID_ARGUMENT, "no_such_layout");
  params.layout = nullptr;
  params.keys = 2;
  EXPECT_REFUSED(refused(params), BLOOMERY_INVALID_ARGUMENT, "params.keys");
  params.keys = BLOOMERY_BYTES;
  params.size = 8;
  EXPECT_REFUSED(refused(params), BLOOMERY_INVALID_ARGUMENT, "params.size");
  params.size = sizeof params;
  params.window_keys = params.window_ms = 5;
  EXPECT_REFUSED(refused(params), BLOOMERY_INVALID_ARGUMENT, "window");
  params = BLOOMERY_PARAMS(std::numeric_limits<std::uint64_t>::max(), 1e-9);
  EXPECT_REFUSED(refused(params), BLOOMERY_TOO_LARGE, "");
  EXPECT_EQ(bloomery_open("x", 64, nullptr, &out), BLOOMERY_INVALID_ARGUMENT);
  EXPECT_STREQ(bloomery_code_name(BLOOMERY_TOO_LARGE), "too_large");
  EXPECT_STREQ(bloomery_code_name(BLOOMERY_FULL), "full");
  bloomery_code later = BLOOMERY_OK;  // of a later version; C++ cannot convert such a number
  const unsigned number = 16;
  static_assert(sizeof later == sizeof number);
  std::memcpy(&later, &number, sizeof later);
  EXPECT_STREQ(bloomery_code_name(later), "unknown");
}

TEST(CInterface, StructsOfLaterVersionsWork) {
  struct {
    bloomery_params params = BLOOMERY_PARAMS(1000, 0.01);
    std::uint64_t later = 0;
  } longer;
  longer.params.size = sizeof longer;
  c_filter filter;

  EXPECT_OK(bloomery_make(&longer.params, &filter));
  longer.later = 1;
  EXPECT_REFUSED(bloomery_make(&longer.params, &filter), BLOOMERY_INVALID_ARGUMENT, "later version");
  struct {
    bloomery_info info = BLOOMERY_INFO;
    std::uint64_t later = 5;
  } more;
  more.info.size = sizeof more;
  EXPECT_OK(bloomery_get_info(filter, 0, &more.info));
  EXPECT_EQ(more.later, 0U);
  EXPECT_EQ(more.info.size, sizeof more);
}

TEST(CInterface, FilesSurviveAndAreThoseOfTheLibrary) {
  const scratch_folder folder;
  const std::string path = (folder / "here.bloom");
  bloomery_params params = BLOOMERY_PARAMS(1000, 0.01);
  params.layout = "counting";
  c_filter filter;
  EXPECT_OK(bloomery_create(path.c_str(), &params, 0, &filter));
  EXPECT_OK(bloomery_insert(filter, "Madrid", 6, nullptr));
  EXPECT_OK(bloomery_insert(filter, "Berlin", 6, nullptr));
  filter.close();

  c_filter again;
  EXPECT_REFUSED(bloomery_create(path.c_str(), &params, 0, &again), BLOOMERY_ALREADY_EXISTS, path);
  EXPECT_OK(bloomery_open(path.c_str(), BLOOMERY_WRITE, nullptr, &again));
  int removed = -1;
  EXPECT_OK(bloomery_remove(again, "Berlin", 6, &removed));
  EXPECT_EQ(removed, 1);
  EXPECT_OK(bloomery_remove(again, "Lima", 4, &removed));
  EXPECT_EQ(removed, 0);
  EXPECT_TRUE(bloomery::open_filter(path)->contains("Berlin"));  // not yet committed
  again.close();
  EXPECT_TRUE(bloomery::open_filter(path)->contains("Madrid"));
  EXPECT_FALSE(bloomery::open_filter(path)->contains("Berlin"));

  EXPECT_OK(bloomery_open(path.c_str(), 0, nullptr, &again));
  EXPECT_REFUSED(bloomery_insert(again, "Rome", 4, nullptr), BLOOMERY_NOT_PERMITTED, "");
  again.close();
  EXPECT_REFUSED(bloomery_open((folder / "none").c_str(), 0, nullptr, &again), BLOOMERY_NOT_FOUND, "none");
}

TEST(CInterface, AGrowingFileAndAScalableFilterKeepTheirRate) {
  const scratch_folder folder;
  const std::string path = (folder / "all.bloom");
  const bloomery_params params = BLOOMERY_PARAMS(0, 0.01);
  std::vector<std::uint64_t> numbers(200'000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  const bloomery_keys keys = bloomery_keys_of_u64(numbers.data(), numbers.size());
  bloomery_params of_integers = params;
  of_integers.keys = BLOOMERY_U64;
  c_filter grown, layers;
  EXPECT_OK(bloomery_create(path.c_str(), &of_integers, BLOOMERY_GROWS, &grown));
  EXPECT_OK(bloomery_make_scalable(&of_integers, &layers));

  for (bloomery_filter* const filter : {static_cast<bloomery_filter*>(grown), static_cast<bloomery_filter*>(layers)}) {
    bloomery_info info = BLOOMERY_INFO;
    EXPECT_OK(bloomery_insert_many(filter, &keys, nullptr, nullptr));
    std::uint64_t found = 0;
    EXPECT_OK(bloomery_contains_many(filter, &keys, nullptr, &found));
    EXPECT_OK(bloomery_get_info(filter, 1, &info));

    EXPECT_EQ(found, numbers.size());
    EXPECT_LE(info.expected_fpr, 0.0101);
    EXPECT_NEAR(static_cast<double>(info.distinct_keys), 200'000, 400);
    EXPECT_NE(info.capabilities & BLOOMERY_FILTER_GROWS, 0U);
    EXPECT_EQ(info.capacity, 0U);
  }
  EXPECT_OK(bloomery_save(layers, (folder / "layers").c_str()));
  grown.close();
  for (const char* name : {"layers", "all.bloom"})
    EXPECT_TRUE(bloomery::open_filter(folder / name)->contains(std::uint64_t{199'999})) << name;
}

TEST(CInterface, AStaticFilterHasItsKeysAndTheBytesOfTheLibrary) {
  const std::vector<std::string> texts = some_texts(5000, 5);
  const buffer_with_offsets<std::int64_t> buffer(texts);
  const bloomery_keys keys =
      bloomery_keys_of_offsets64(buffer.data.data(), buffer.data.size(), buffer.offsets.data(), texts.size());
  c_filter filter;

  EXPECT_OK(bloomery_build_static(nullptr, BLOOMERY_FUSE, 16, &keys, &filter));

  EXPECT_EQ(bytes_of(filter), bloomery::any_filter::build_static({}, texts, 16).to_bytes());
  bloomery_info info = BLOOMERY_INFO;
  EXPECT_OK(bloomery_get_info(filter, 0, &info));
  EXPECT_EQ(info.insert_count, std::set<std::string>(texts.begin(), texts.end()).size());
  EXPECT_STREQ(info.layout, "fuse16");
  EXPECT_REFUSED(bloomery_insert(filter, "x", 1, nullptr), BLOOMERY_NOT_PERMITTED, "");
  c_filter none;
  EXPECT_REFUSED(bloomery_build_static(nullptr, BLOOMERY_FUSE, 33, &keys, &none), BLOOMERY_INVALID_ARGUMENT, "33");
  EXPECT_REFUSED(bloomery_build_static(nullptr, 2, 8, &keys, &none), BLOOMERY_INVALID_ARGUMENT, "structure");
  c_filter ribbon;
  EXPECT_OK(bloomery_build_static(nullptr, BLOOMERY_RIBBON, 9, &keys, &ribbon));
  EXPECT_EQ(bytes_of(ribbon),
            bloomery::any_filter::build_static({}, texts, 9, 0, bloomery::static_structure::ribbon).to_bytes());
}

TEST(CInterface, MergeCopyAndClear) {
  const bloomery_params params = BLOOMERY_PARAMS(1000, 0.01);
  const bloomery_params other_params = BLOOMERY_PARAMS(2000, 0.01);
  c_filter a, b, other, copy;
  EXPECT_OK(bloomery_make(&params, &a));
  EXPECT_OK(bloomery_make(&params, &b));
  EXPECT_OK(bloomery_make(&other_params, &other));
  EXPECT_OK(bloomery_insert(b, "Madrid", 6, nullptr));
  int found = 0;

  EXPECT_OK(bloomery_merge(a, b));
  EXPECT_OK(bloomery_copy(a, &copy));
  EXPECT_OK(bloomery_clear(a));

  EXPECT_OK(bloomery_contains(copy, "Madrid", 6, &found));
  EXPECT_EQ(found, 1);
  EXPECT_OK(bloomery_contains(a, "Madrid", 6, &found));
  EXPECT_EQ(found, 0);
  EXPECT_REFUSED(bloomery_merge(a, other), BLOOMERY_INCOMPATIBLE, "bits");
}

TEST(CInterface, KeysExpireWithTheClockOfTheCaller) {
  bloomery_params params = BLOOMERY_PARAMS(1000, 0.01);
  params.layout = "sliding";
  params.window_ms = 7000;
  c_filter recent;
  EXPECT_OK(bloomery_make(&params, &recent));
  int found = 0;

  EXPECT_OK(bloomery_tick(recent, 1'000'000));
  EXPECT_OK(bloomery_insert(recent, "Madrid", 6, nullptr));
  EXPECT_OK(bloomery_tick(recent, 1'006'000));
  EXPECT_OK(bloomery_contains(recent, "Madrid", 6, &found));
  EXPECT_EQ(found, 1);
  EXPECT_OK(bloomery_tick(recent, 1'020'000));
  EXPECT_OK(bloomery_contains(recent, "Madrid", 6, &found));
  EXPECT_EQ(found, 0);
}

TEST(CInterface, ASecretIsNeededAgain) {
  const std::uint8_t secret[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  const std::uint8_t another[16] = {};
  bloomery_params params = BLOOMERY_PARAMS(1000, 0.01);
  params.secret = secret;
  c_filter keyed, opened;
  EXPECT_OK(bloomery_make(&params, &keyed));
  EXPECT_OK(bloomery_insert(keyed, "Madrid", 6, nullptr));
  const std::vector<std::uint8_t> bytes = bytes_of(keyed);

  EXPECT_EQ(bloomery_from_bytes(bytes.data(), bytes.size(), nullptr, &opened), BLOOMERY_INCOMPATIBLE);
  EXPECT_EQ(bloomery_from_bytes(bytes.data(), bytes.size(), another, &opened), BLOOMERY_INCOMPATIBLE);
  EXPECT_OK(bloomery_from_bytes(bytes.data(), bytes.size(), secret, &opened));

  int found = 0;
  EXPECT_OK(bloomery_contains(opened, "Madrid", 6, &found));
  EXPECT_EQ(found, 1);
  EXPECT_TRUE(
      bloomery::any_filter::from_bytes(bytes, {.secret = bloomery::secret_key{0x0807060504030201, 0x100F0E0D0C0B0A09}})
          .may_contain("Madrid"));  // the bytes of a key file, in order
}

TEST(CInterface, DamagedBytesAreRefused) {
  const bloomery_params params = BLOOMERY_PARAMS(1000, 0.01);
  c_filter filter;
  EXPECT_OK(bloomery_make(&params, &filter));
  EXPECT_OK(bloomery_insert(filter, "Madrid", 6, nullptr));
  const std::vector<std::uint8_t> bytes = bytes_of(filter);
  std::mt19937 random(6);

  for (std::size_t length = 0; length < bytes.size(); length += 1 + random() % 97) {
    c_filter out;
    EXPECT_NE(bloomery_from_bytes(bytes.data(), length, nullptr, &out), BLOOMERY_OK) << length;
    EXPECT_EQ(static_cast<bloomery_filter*>(out), nullptr);
  }
  for (int i = 0; i < 300; ++i) {
    std::vector<std::uint8_t> damaged = bytes;
    damaged[4096 + random() % (damaged.size() - 4096)] ^= static_cast<std::uint8_t>(1U << random() % 8);
    c_filter out;
    const bloomery_code code = bloomery_from_bytes(damaged.data(), damaged.size(), nullptr, &out);
    EXPECT_TRUE(code == BLOOMERY_DAMAGED || code == BLOOMERY_OK) << bloomery_error_text();
    if (code == BLOOMERY_OK) {
      EXPECT_EQ(bytes_of(out), bytes);  // the bit was in unused padding
    }
  }
}

TEST(CInterface, InfoAndPlanAgreeWithTheLibrary) {
  const bloomery_params params = BLOOMERY_PARAMS(10'000, 0.01);
  const bloomery::params wanted = bloomery::complete({.capacity = 10'000, .target_fpr = 0.01});
  bloomery_info plan = BLOOMERY_INFO;
  bloomery_info info = BLOOMERY_INFO;
  c_filter filter;
  bloomery::any_filter same(wanted);
  EXPECT_OK(bloomery_make(&params, &filter));
  for (int i = 0; i < 5000; ++i) {
    const std::string key = std::to_string(i);
    EXPECT_OK(bloomery_insert(filter, key.data(), key.size(), nullptr));
    same.insert(key);
  }

  EXPECT_OK(bloomery_plan(&params, &plan));
  EXPECT_OK(bloomery_get_info(filter, 1, &info));

  EXPECT_EQ(plan.layout, wanted.layout);
  EXPECT_EQ(plan.bits, wanted.geometry.bits);
  EXPECT_EQ(plan.bytes, same.byte_size());
  EXPECT_DOUBLE_EQ(plan.expected_fpr, bloomery::expected_fpr(wanted, 10'000));
  EXPECT_TRUE(std::isnan(plan.current_fpr));
  EXPECT_EQ(info.insert_count, same.insert_count());
  EXPECT_DOUBLE_EQ(info.current_fpr, same.current_fpr());
  EXPECT_DOUBLE_EQ(info.fill_ratio, same.fill_ratio());
  EXPECT_DOUBLE_EQ(info.estimated_keys, same.estimated_keys().value);
  EXPECT_EQ(info.capabilities,
            BLOOMERY_CAN_INSERT | BLOOMERY_CAN_MERGE | BLOOMERY_CAN_CLEAR | BLOOMERY_LOOKUPS_IN_PARALLEL);
  EXPECT_EQ(info.hash, wanted.hash);
}

TEST(CInterface, ThreadsHaveTheirOwnErrorsAndLookUpInParallel) {
  const bloomery_params params = BLOOMERY_PARAMS(1000, 0.01);
  c_filter filter;
  EXPECT_OK(bloomery_make(&params, &filter));
  EXPECT_OK(bloomery_insert(filter, "Madrid", 6, nullptr));
  c_filter none;
  EXPECT_EQ(bloomery_open("no/such/file", 0, nullptr, &none), BLOOMERY_NOT_FOUND);
  const std::string text = bloomery_error_text();
  std::vector<std::thread> threads;

  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      EXPECT_STREQ(bloomery_error_text(), "");
      for (int i = 0; i < 10'000; ++i) {
        int found = 0;
        EXPECT_OK(bloomery_contains(filter, "Madrid", 6, &found));
        EXPECT_EQ(found, 1);
      }
      EXPECT_EQ(bloomery_contains_u64(filter, 1, nullptr), BLOOMERY_INVALID_ARGUMENT);
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(bloomery_error_text(), text);
}

}  // namespace
}  // namespace bloomery_tests
