// Mismatched keys, parameters, hashes and files: filter<> and any_filter refuse them and stay unchanged.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>

#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;

// ---- keys and parameters --------------------------------------------------------------------------------------------

TEST(AnyFilter, RefusesKeysOfTheOtherKindAndStaysAsItIs) {
  any_filter integers(complete({.keys = key_kind::u64le, .capacity = 100, .target_fpr = 0.01}));
  any_filter texts(complete({.capacity = 100, .target_fpr = 0.01}));
  any_filter scheme(complete({.scheme = "guava", .capacity = 100, .target_fpr = 0.01}));
  const std::vector<std::string_view> strings{"a", "b"};
  const std::vector<std::uint64_t> numbers{1, 2};
  std::vector<std::uint64_t> bitmap(1);
  std::vector<key_hash> hashes(2);

  EXPECT_EQ(code_of([&] { integers.insert("a"); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { integers.may_contain("a"); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { integers.insert(std::span(strings)); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { integers.may_contain(std::span(strings), bitmap); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { integers.hash(std::span(strings), hashes); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { texts.insert(std::uint64_t{1}); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { texts.may_contain(std::span(numbers), bitmap); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { texts.hash(std::span(numbers), hashes); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { scheme.insert(std::uint64_t{1}); }), errc::incompatible);
  EXPECT_THAT(error_of([&] { integers.insert("a"); })->what(), HasSubstr("expected u64, found bytes"));
  EXPECT_EQ(integers.insert_count() + texts.insert_count() + scheme.insert_count(), 0u);
  EXPECT_EQ(integers.fill_ratio() + texts.fill_ratio() + scheme.fill_ratio(), 0);
  EXPECT_FALSE(scheme.uses_hashes());
}

TEST(AnyFilter, RefusesUnknownParams) {
  const auto code = [](params p) { return code_of([&] { any_filter f(std::move(p)); }); };

  EXPECT_EQ(code({.layout = "nonesuch", .capacity = 10, .target_fpr = 0.1}), errc::invalid_argument);
  EXPECT_EQ(code({.scheme = "nonesuch", .capacity = 10, .target_fpr = 0.1}), errc::invalid_argument);
  EXPECT_EQ(code({.hash = "nonesuch", .capacity = 10, .target_fpr = 0.1}), errc::invalid_argument);
  EXPECT_EQ(code({.layout = "classic", .scheme = "perl", .capacity = 10, .target_fpr = 0.1}), errc::invalid_argument);
  EXPECT_EQ(code({.hash = "mix", .capacity = 10, .target_fpr = 0.1}), errc::invalid_argument);
  EXPECT_EQ(code({.hash = "murmur3", .seed = 1ull << 32, .capacity = 10, .target_fpr = 0.1}), errc::invalid_argument);
  EXPECT_EQ(code({.scheme = "perl", .keys = key_kind::u64le, .capacity = 10, .target_fpr = 0.1}),
            errc::invalid_argument);
  EXPECT_EQ(code({.capacity = 0, .target_fpr = 0.1}), errc::invalid_argument);
  EXPECT_EQ(code({.capacity = 10, .target_fpr = 0}), errc::invalid_argument);
  EXPECT_EQ(code({.layout = "split_block", .geometry = {255, 8}}), errc::invalid_argument);
  EXPECT_EQ(code({.layout = "split_block512", .geometry = {256, 8}}), errc::invalid_argument);
  EXPECT_EQ(code({.layout = "split_block512", .geometry = {512, 7}}), errc::invalid_argument);
  EXPECT_EQ(code({.layout = "blocked", .geometry = {512, 256}}), errc::invalid_argument);
  EXPECT_EQ(code({.layout = "blocked_page", .geometry = {512, 7}}), errc::invalid_argument);
  EXPECT_EQ(code({.layout = "classic", .geometry = {255, 0}}), errc::invalid_argument);
}

TEST(Params, AreCompletedAsTheLayoutsWould) {
  EXPECT_EQ(complete({.capacity = 1'000'000, .target_fpr = 0.01}).layout, "split_block");
  EXPECT_EQ(complete({.capacity = 1'000'000, .target_fpr = 0.01}, preference::memory).layout, "blocked_page");
  EXPECT_EQ(complete({.geometry = {1000, 7}}).layout, "classic");
  EXPECT_EQ(complete({.keys = key_kind::u64le, .capacity = 1000, .target_fpr = 0.01}).hash, "mix");
  EXPECT_EQ(complete({.layout = "classic", .capacity = 1000, .target_fpr = 0.01}).geometry,
            layouts::classic::geometry_for(1000, 0.01));
  const params p = complete({.capacity = 1000, .target_fpr = 0.01});
  EXPECT_EQ(complete(p), p);
}

// ---- files and types ------------------------------------------------------------------------------------------------

// A user-defined hash, as in the example of hash.hpp.
struct acme_hash {
  static constexpr std::string_view name = "acme.sum/1";
  key_hash operator()(std::string_view key) const noexcept {
    std::uint64_t h = 0;
    for (const char c : key) h = mix64(h + static_cast<unsigned char>(c) + 1);
    return {h, mix64(h + 1)};
  }
};
struct acme_hash_2 : acme_hash {
  static constexpr std::string_view name = "acme.sum/2";
};

TEST(OwnHash, OpensItsFileOnlyUnderItsName) {
  const scratch_folder folder;
  using own = filter<std::string_view, layouts::classic, acme_hash>;
  own seen(100, 0.01);
  seen.insert("key");
  seen.save(folder / "f");

  EXPECT_TRUE(own::load(folder / "f").may_contain("key"));
  EXPECT_TRUE(
      (filter<std::string_view, layouts::classic, acme_hash, mapped_storage>::open(folder / "f").may_contain("key")));
  EXPECT_EQ(inspect(folder / "f").info.parameters.hash, "acme.sum/1");
  using newer = filter<std::string_view, layouts::classic, acme_hash_2>;
  EXPECT_ERROR(newer::load(folder / "f"), errc::incompatible, "hash: acme.sum/1 and acme.sum/2");
  EXPECT_EQ(code_of([&] { filter<std::string_view, layouts::classic>::load(folder / "f"); }), errc::incompatible);
  EXPECT_ERROR(any_filter::open(folder / "f"), errc::incompatible, "'acme.sum/1'");
  EXPECT_EQ(code_of([&] { any_filter::load(folder / "f"); }), errc::incompatible);
}

struct name_of_32_characters : acme_hash {
  static constexpr std::string_view name = "12345678901234567890123456789012";
};
struct name_of_31_characters : acme_hash {
  static constexpr std::string_view name = "1234567890123456789012345678901";
};
struct empty_name : acme_hash {
  static constexpr std::string_view name = "";
};
struct name_with_a_space : acme_hash {
  static constexpr std::string_view name = "my hash";
};

TEST(OwnHash, HasANameThatFitsTheHeader) {
  const scratch_folder folder;
  filter<std::string_view, layouts::classic, name_of_31_characters> fits(100, 0.01);
  fits.save(folder / "f");
  const auto loads = [&] { filter<std::string_view, layouts::classic, name_of_31_characters>::load(folder / "f"); };
  EXPECT_EQ(code_of(loads), std::nullopt);

  filter<std::string_view, layouts::classic, name_of_32_characters> too_long(100, 0.01);
  filter<std::string_view, layouts::classic, empty_name> nameless(100, 0.01);
  filter<std::string_view, layouts::classic, name_with_a_space> spaced(100, 0.01);

  EXPECT_EQ(code_of([&] { too_long.save(folder / "g"); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { nameless.save(folder / "g"); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { spaced.save(folder / "g"); }), errc::invalid_argument);
  EXPECT_FALSE(std::filesystem::exists(folder / "g"));
}

TEST(Filter, OpensOnlyFilesOfItsOwnKind) {
  const scratch_folder folder;
  filter<> seen(1000, 0.01);
  seen.save(folder / "f");
  const bytes before = read_file(folder / "f");
  const auto refusal = [&]<class Filter>(std::type_identity<Filter>, auto hash) {
    const auto thrown = error_of([&] {
      if constexpr (requires { Filter::load(folder / "f"); })
        Filter::load(folder / "f", hash);
      else
        Filter::open(folder / "f", {.mode = access::read_write}, hash);
    });
    EXPECT_TRUE(thrown);
    EXPECT_EQ(thrown ? thrown->code() : errc::io, errc::incompatible);
    return std::string(thrown ? thrown->what() : "");
  };

  EXPECT_THAT((refusal(std::type_identity<filter<std::string_view, layouts::classic>>{}, xxh3{})),
              HasSubstr("layout: split_block and classic"));
  EXPECT_THAT((refusal(std::type_identity<filter<std::string_view, layouts::split_block, murmur3>>{}, murmur3{})),
              HasSubstr("hash: xxh3_64 and murmur3"));
  EXPECT_THAT((refusal(std::type_identity<filter<std::uint64_t, layouts::split_block, xxh3_64>>{}, xxh3_64{})),
              HasSubstr("keys: bytes and u64"));
  EXPECT_THAT((refusal(std::type_identity<filter<std::string_view, layouts::split_block, xxh3>>{}, xxh3{})),
              HasSubstr("hash: xxh3_64 and xxh3"));
  EXPECT_THAT((refusal(std::type_identity<filter<>>{}, xxh3_64{7})), HasSubstr("seed: 0 and 7"));
  EXPECT_THAT((refusal(std::type_identity<filter<std::string_view, layouts::classic, xxh3, mapped_storage>>{}, xxh3{})),
              HasSubstr("layout: split_block and classic"));
  EXPECT_THAT((refusal(std::type_identity<filter<>>{}, xxh3_64{7})), HasSubstr(folder / "f"));
  EXPECT_EQ(read_file(folder / "f"), before);  // refused before anything was written
}

}  // namespace
}  // namespace bloomery
