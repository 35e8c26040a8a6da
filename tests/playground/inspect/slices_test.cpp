// Inspections of files that are read in slices: they find what those of mapped files find.
#include <bloomery/any_filter.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/scheme.hpp>
#include <bloomery/secret.hpp>
#include <bloomery/static_filter.hpp>

#include "playground/inspect/inspected_file.hpp"
#include "playground/inspected_filters.hpp"
#include "support/errors.hpp"
#include "support/files.hpp"
#include "support/scheme_sizes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bloomery_tests {
namespace {

using namespace bloomery::playground;
using bloomery::any_filter;
using bloomery::errc;
using bloomery::error;
using bloomery::family;
using bloomery::params;

constexpr std::uint64_t slice = 3 * 4096;

// The fields of JSON values that differ: fractions by more than a billionth, others at all.
std::string difference(const json& a, const json& b, const std::string& where = "") {
  if (a.is_number_float() && b.is_number_float()) {
    const double x = a.get<double>(), y = b.get<double>();
    return std::abs(x - y) <= 1e-9 * std::abs(x) ? "" : where + ": " + a.dump() + " and " + b.dump() + "\n";
  }
  if (!a.is_object() || !b.is_object() || a.size() != b.size())
    return a == b ? "" : where + ": " + a.dump().substr(0, 200) + " and " + b.dump().substr(0, 200) + "\n";
  std::string all;
  for (const auto& [name, value] : a.items())
    all += b.contains(name) ? difference(value, b[name], where + "." + name) : where + "." + name + " is missing\n";
  return all;
}

json read_now(watched& i) {
  i.update();
  json seen = i.look(0, {});
  for (const char* name : {"version", "failed_at"}) seen.erase(name);  // numbers of changes, and a time
  return seen;
}

class SlicedFile : public testing::Test {
 protected:
  // Compares all that a mapped file and slices show, and returns it.
  json both() {
    const auto mapped = inspect_mapped(path, {}, 2);
    const auto sliced = inspect_in_slices(path, slice);
    json seen = read_now(*mapped);
    EXPECT_EQ(difference(seen, read_now(*sliced)), "");
    const std::vector<std::string> keys = {"key 7", "key 8", "absent 1", "absent 2", "absent 3", ""};
    std::string answers[2];
    int number = 0;
    for (watched* one : {mapped.get(), sliced.get()}) {
      try {
        answers[number++] = one->ask(keys).dump();
      } catch (const error& e) {
        answers[number - 1] = e.what();
      }
    }
    EXPECT_EQ(answers[0], answers[1]);
    return seen;
  }

  scratch_folder folder;
  std::string path = folder / "seen.bloom";
};

params of_layout(const bloomery::layout_facts& layout) {
  // Not a whole number of slices; for classic, nor of bytes.
  const std::uint64_t unit = layout.block_bits == 0 ? 1'000'003 : layout.block_bits;
  const std::uint32_t probes = layout.fixed_probes != 0 ? layout.fixed_probes : 5;
  return bloomery::complete({.layout = std::string(layout.name),
                             .geometry = {(1'000'000 / unit + 1) * unit, probes},
                             .capacity = layout.cell_bits > 1 ? 20'000u : 80'000u});
}

TEST_F(SlicedFile, OfEachLayoutShowsTheSameAsAMappedOne) {
  for (const family kind : {family::plain, family::counting}) {
    for (const bloomery::layout_facts& layout : bloomery::layouts_of(kind)) {
      SCOPED_TRACE(layout.name);
      const params p = of_layout(layout);
      any_filter filter = made(p.capacity * 9 / 10, p);
      if (kind == family::counting) filter.remove(std::vector<std::string>{"key 1", "not in it"});

      filter.save(path, "a note");

      const json seen = both();
      EXPECT_EQ(seen["state"], "ready");
      EXPECT_EQ(seen["facts"]["ones"], measure_fill(p, filter.bytes()).ones);
      EXPECT_GT(seen["measured"]["rate"], 0.001);
      EXPECT_EQ(seen["measured"]["queries"], 100'000);
      EXPECT_EQ(seen["histogram"]["fits"], true);
    }
  }
}

TEST_F(SlicedFile, OfEachSchemeShowsTheSameAsAMappedOne) {
  for (const bloomery::scheme& scheme : bloomery::schemes()) {
    SCOPED_TRACE(scheme.name);
    const std::uint64_t bits = has_whole_words(scheme) ? 960'000 : 960'011;
    const params p =
        bloomery::complete({.scheme = std::string(scheme.name), .geometry = {bits, 3}, .capacity = 200'000});

    made(150'000, p).save(path);

    const json seen = both();
    EXPECT_EQ(seen["state"], "ready");
    EXPECT_GT(seen["measured"]["rate"], 0.01);
  }
}

TEST_F(SlicedFile, ThatIsSmallerThanASliceOrEmptyShowsTheSame) {
  made(100, usual(200)).save(path);
  EXPECT_EQ(both()["state"], "ready");
  any_filter::create(path, usual(50'000)).close();
  EXPECT_EQ(both()["verdict"]["code"], "empty");
}

TEST_F(SlicedFile, OfIntegersOrWithASecretShowsTheSame) {
  any_filter numbers(bloomery::complete({.keys = bloomery::key_kind::u64le, .capacity = 50'000, .target_fpr = 0.01}));
  for (std::uint64_t i = 0; i < 40'000; ++i) numbers.insert(i);
  numbers.save(path);
  EXPECT_GT(both()["measured"]["rate"], 0.0001);

  made(40'000, bloomery::complete({.capacity = 50'000, .target_fpr = 0.01, .secret = bloomery::random_secret()}))
      .save(path);
  EXPECT_EQ(both()["measured"], nullptr);
}

TEST_F(SlicedFile, OfAWindowOrASealedFilterIsReadWhole) {
  const params windows = bloomery::complete(
      {.layout = "sliding", .capacity = 20'000, .target_fpr = 0.01, .extra = bloomery::window_of_keys(20'000)});
  made(15'000, windows).save(path);
  EXPECT_EQ(both()["state"], "ready");
  std::filesystem::remove(path);
  const std::vector<std::string> keys = texts(0, 20'000);
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  bloomery::static_filter<>::build(views).save(path);
  EXPECT_EQ(both()["verdict"]["code"], "sealed");
}

TEST_F(SlicedFile, OfALargeWindowIsRefusedAndNamesTheCommand) {
  const params large = bloomery::complete({.layout = "sliding",
                                           .capacity = 150'000'000,
                                           .target_fpr = 0.01,
                                           .extra = bloomery::window_of_keys(150'000'000)});
  any_filter::create(path, large, {.reserve = false, .sync = false}).close();
  ASSERT_GT(std::filesystem::file_size(path), std::uint64_t{256} << 20);

  const auto refused = error_of([&] { inspect_in_slices(path, slice); });

  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), errc::too_large);
  EXPECT_NE(refused->text().hint.words().find("bloomery playground"), std::string::npos);
}

TEST_F(SlicedFile, WithDamagedPagesIsBadAndAnswersNothing) {
  const any_filter filter = made(80'000, usual(80'000));
  for (const std::uint64_t at : {std::uint64_t{0}, filter.byte_size() / 2, filter.byte_size() - 1}) {
    filter.save(path);
    bytes file = read_file(path);
    file[4096 + at] ^= 16;
    write_file(path, file);

    EXPECT_EQ(both()["verdict"]["code"], "damaged") << at;
    const auto i = inspect_in_slices(path, slice);
    i->update();
    EXPECT_EQ(code_of([&] { i->ask(texts(0, 1)); }), errc::damaged) << at;
  }
}

TEST_F(SlicedFile, ThatIsOpenForWritingOrWasCutOffShowsTheSame) {
  made(50'000, usual(80'000)).save(path);
  any_filter writer = any_filter::open(path, {.mode = bloomery::access::read_write});
  insert(writer, 50'000, 20'000);

  EXPECT_EQ(both()["clean"], false);
  writer.close();

  EXPECT_EQ(both()["clean"], true);
}

TEST_F(SlicedFile, ThatChangesIsReadAgain) {
  made(20'000, usual(80'000)).save(path);
  const auto i = inspect_in_slices(path, slice);
  const json before = read_now(*i);
  made(70'000, usual(80'000)).save(path);

  const json after = read_now(*i);

  EXPECT_GT(after["facts"]["ones"], before["facts"]["ones"]);
  EXPECT_EQ(difference(after, read_now(*inspect_mapped(path, {}, 1))), "");
}

TEST_F(SlicedFile, ThatIsCutOrNoFilterHasTheSameError) {
  made(50'000, usual(80'000)).save(path);
  const auto mapped = inspect_mapped(path, {}, 1);
  const auto sliced = inspect_in_slices(path, slice);
  std::filesystem::resize_file(path, 30'000);
  EXPECT_EQ(read_now(*mapped), read_now(*sliced));
  EXPECT_EQ(sliced->look(0, {})["error"]["code"], "damaged");
  write_file(path, std::string("some text"));
  EXPECT_EQ(read_now(*mapped), read_now(*sliced));
  const auto refused = error_of([&] { inspect_in_slices(path, slice); });
  ASSERT_TRUE(refused);
  EXPECT_FALSE(refused->text().hint.empty());
  std::filesystem::remove(path);
  EXPECT_EQ(code_of([&] { inspect_in_slices(path, slice); }), errc::not_found);
}

}  // namespace
}  // namespace bloomery_tests
