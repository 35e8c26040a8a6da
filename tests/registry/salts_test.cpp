// Salts in params: completion, and files whose header has salts. Offsets are those of docs/format.md.
#include <bloomery/any_filter.hpp>
#include <bloomery/hash.hpp>

#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;

params with(std::vector<std::string> salts) {
  const auto probes = static_cast<std::uint32_t>(salts.size());
  return {.scheme = "perl", .geometry = {1000, probes}, .extra = salt_list{std::move(salts)}};
}

TEST(Salts, SelectTheBitsOfAKey) {
  any_filter by_seed(params{.scheme = "perl", .seed = 7, .geometry = {1000, 2}});
  any_filter by_salts(with({"7.0", "7.1"}));

  EXPECT_EQ(by_salts.cells("Madrid"), by_seed.cells("Madrid"));
  EXPECT_NE(by_salts.cells("Madrid"), any_filter(with({"7.1", "7.0"})).cells("Madrid"));
}

TEST(Salts, AreRefusedWhereTheyHaveNoMeaning) {
  params blocks = complete({.capacity = 100, .target_fpr = 0.01});
  blocks.extra = salt_list{{"0.5"}};
  EXPECT_ERROR(complete(blocks), errc::invalid_argument, "these hashes have no salts");
  params p = with({"0.5", "0.25"});
  p.scheme = "guava";
  p.geometry.bits = 1024;
  EXPECT_ERROR(complete(p), errc::invalid_argument,
               "expected a scheme with salts: perl or valkey_bloom, found 'guava'");
  p = with({"0.5", "0.25"});
  p.geometry.probes = 3;
  EXPECT_ERROR(complete(p), errc::invalid_argument, "expected 3, one for each probe, found 2");
  p = with({"0.5", "0.25"});
  p.seed = 1;
  EXPECT_ERROR(complete(p), errc::invalid_argument, "salts replace a seed");
  EXPECT_ERROR(complete(with({std::string(256, 'x')})), errc::invalid_argument, "a salt is too long");
  EXPECT_ERROR(complete({.scheme = "perl", .geometry = {1000, 1}, .extra = salt_list{}}), errc::invalid_argument,
               "expected 1, one for each probe, found 0");
}

TEST(Salts, HaveAtMost3008BytesInAFile) {
  const std::vector<std::string> most(16, std::string(187, 'x'));  // 16 (1 + 187) = 3008
  any_filter filter(with(most));
  filter.insert("Madrid");
  filter.save("most.bloom");

  EXPECT_TRUE(any_filter::load("most.bloom") == filter);
  EXPECT_EQ(any_filter::load("most.bloom").parameters(), filter.parameters());

  std::vector<std::string> more = most;
  more[3] += 'x';
  EXPECT_ERROR(complete(with(more)), errc::invalid_argument, "at most 3008 bytes");
}

// ---- the header -----------------------------------------------------------------------------------------------------

constexpr std::size_t at_salts = 1088;

template <class T>
void put(bytes& file, std::size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof value);
}

// A file with correct checksums of the header and of `length` bytes of salts.
void seal(bytes& file, std::uint64_t length) {
  const auto checksum = [&](std::size_t at, std::size_t size) {
    return xxh3_64{}(std::string_view(reinterpret_cast<const char*>(file.data()) + at, size)).hash64;
  };
  put(file, 216, length);
  put(file, 224, checksum(at_salts, static_cast<std::size_t>(std::min<std::uint64_t>(length, 3008))));
  put(file, 504, checksum(0, 504));
}

TEST(SaltsFile, IsDamagedIfAnyBitOfItsSaltsDiffers) {
  any_filter(with({"0.5", "0.25"})).save("f");
  const bytes whole = read_file("f");
  ASSERT_EQ(whole[8], 2);
  for (std::size_t at = 0; at < 4096; at += at == 511 ? at_salts - 511 : at < at_salts + 16 ? 1 : 37) {
    bytes changed = whole;
    changed[at] ^= static_cast<std::uint8_t>(1u << at % 8);
    write_file("f", changed);
    const errc expected = at < 8 ? errc::not_a_filter : at < 12 ? errc::wrong_version : errc::damaged;
    ASSERT_EQ(code_of([] { any_filter::open("f"); }), expected) << at;
  }
}

TEST(SaltsFile, WithFalseFieldsIsRefused) {
  any_filter(with({"0.5", "0.25"})).save("f");
  const bytes whole = read_file("f");
  constexpr std::uint64_t length = 9;  // 3 "0.5" 4 "0.25"
  bytes sealed = whole;
  seal(sealed, length);
  ASSERT_EQ(sealed, whole);
  const struct {
    const char* words;
    std::uint64_t length;
    std::size_t at;
    std::uint8_t value;
  } changes[] = {{"length of the salts: expected 0, found 9", length, 8, 1},  // version 1
                 {"length of the salts: expected 1 to 3008 bytes, found 0", 0, 8, 2},
                 {"length of the salts", 3009, 8, 2},
                 {"length of the salts", ~std::uint64_t{0}, 8, 2},
                 {"length of a salt", 8, 8, 2},
                 {"length of a salt", length, at_salts + 4, 5},
                 {"number of salts of scheme perl: expected 3, one for each probe, found 2", length, 136, 3},
                 {"salts: expected 1 to 255 of a scheme, and seed 0", length, 120, 1},  // a seed
                 {"none in a filter with salts", length, 192, 5},                       // a window
                 {"none in a filter with salts", length, 208, 5},                       // a key log
                 {"reserved bytes", length, at_salts + length, 1},
                 {"reserved bytes", length, 232, 1}};
  for (const auto& change : changes) {
    bytes file = whole;
    file[change.at] = change.value;
    seal(file, change.length);
    write_file("f", file);
    EXPECT_ERROR(any_filter::open("f"), errc::damaged, change.words);
  }
}

TEST(SaltsFile, OfAnotherSchemeIsRefused) {
  any_filter(with({"0.5", "0.25"})).save("f");
  bytes file = read_file("f");
  std::memcpy(file.data() + 48, "dcso", 5);
  seal(file, 9);
  write_file("f", file);

  EXPECT_ERROR(any_filter::open("f"), errc::damaged, "these hashes have no salts");
}

TEST(SaltsFile, IsOpenedForWritingAndKeepsItsSalts) {
  any_filter(with({"0.5", "0.25"})).save("f");
  {
    any_filter filter = any_filter::open("f", {.mode = access::read_write});
    filter.insert("Madrid");
    filter.close();
  }
  const any_filter again = any_filter::open("f", {.check = file_check::payload});
  EXPECT_TRUE(again.may_contain("Madrid"));
  EXPECT_EQ(again.parameters(), with({"0.5", "0.25"}));
}

}  // namespace
}  // namespace bloomery
