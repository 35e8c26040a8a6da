// sliced_filter: a filter in a file whose bytes come in slices.
#include <bloomery/any_filter.hpp>
#include <bloomery/sliced_filter.hpp>

#include "support/errors.hpp"
#include "support/files.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;

constexpr std::uint64_t slice_bytes = 4 * fill_scan::slice_unit;

class SlicedFilter : public testing::Test {
 protected:
  void SetUp() override {
    any_filter filter(p);
    for (std::uint64_t i = 0; i < 50'000; ++i) filter.insert("key " + std::to_string(i));
    filter.save(path);
  }

  // Calls work() after the first slice was read.
  template <class Work>
  sliced_reading read_and(sliced_filter& filter, Work work) {
    return filter.read(0, [&](std::uint64_t first, std::span<const std::uint8_t>) {
      if (first == 0) work();
    });
  }

  const params p = complete({.layout = "classic", .capacity = 50'000, .target_fpr = 0.01});
  scratch_folder folder;
  std::string path = folder / "large.bloom";
};

TEST_F(SlicedFilter, LooksUpKeysAndMeasuresAsAMappedOne) {
  sliced_filter sliced(path, {}, slice_bytes);
  const std::unique_ptr<filter_handle> mapped = open_filter(path);
  std::vector<std::string> keys;
  for (int i = 0; i < 500; ++i) keys.push_back((i % 2 == 0 ? "key " : "other ") + std::to_string(i));
  std::vector<std::uint64_t> found(8), expected(8);

  sliced.contains(keys, found);
  mapped->contains(keys, expected);

  EXPECT_EQ(found, expected);
  EXPECT_EQ(measure_rate(sliced, 300).hits, measure_rate(*mapped, 300).hits);
  EXPECT_EQ(sliced.read(20'000).measured.hits, measure_rate(*mapped, 20'000).hits);
  EXPECT_EQ(sliced.info(info_depth::bits).fill->current_fpr, mapped->info(info_depth::bits).fill->current_fpr);
  EXPECT_EQ(sliced.info(info_depth::counts).insert_count, mapped->info(info_depth::counts).insert_count);
  EXPECT_EQ(sliced.summary().fpr, mapped->summary().fpr);
  EXPECT_EQ(code_of([&] { sliced.insert(keys); }), errc::not_permitted);
}

TEST_F(SlicedFilter, PassesAllBytesInOrder) {
  sliced_filter sliced(path, {}, slice_bytes);
  std::vector<std::uint8_t> all;

  sliced.read(0, [&](std::uint64_t first, std::span<const std::uint8_t> slice) {
    EXPECT_EQ(first, all.size());
    EXPECT_LE(slice.size(), slice_bytes);
    all.insert(all.end(), slice.begin(), slice.end());
  });

  const any_filter mapped = any_filter::open(path);
  EXPECT_EQ(all, copy_of(mapped.bytes()));
  EXPECT_GT(all.size(), 3 * slice_bytes);
}

TEST_F(SlicedFilter, ThatIsTruncatedWhileItIsReadIsDamaged) {
  sliced_filter sliced(path, {}, slice_bytes);

  const auto thrown = error_of([&] { read_and(sliced, [&] { std::filesystem::resize_file(path, 30'000); }); });

  ASSERT_TRUE(thrown);
  EXPECT_EQ(thrown->code(), errc::damaged);
  EXPECT_NE(thrown->text().what.find("truncated"), std::string::npos);
}

TEST_F(SlicedFilter, WhosePagesAWriterChangesMeanwhileIsNotDamaged) {
  sliced_filter sliced(path, {}, slice_bytes);

  const sliced_reading seen = read_and(sliced, [&] {
    any_filter writer = any_filter::open(path, {.mode = access::read_write});
    for (std::uint64_t i = 0; i < 1000; ++i) writer.insert("new " + std::to_string(i));
  });

  EXPECT_FALSE(seen.damage);
}

TEST_F(SlicedFilter, OfADamagedFileRefusesTheKeysOfDamagedPages) {
  bytes file = read_file(path);
  file[4096 + 5 * 4096] ^= 1;
  write_file(path, file);
  sliced_filter sliced(path, {}, slice_bytes);
  sliced_filter unchecked(path, {.check = file_check::header}, slice_bytes);
  const any_filter cells(p);
  int refused = 0;

  for (int i = 0; i < 40; ++i) {
    const std::string key = "key " + std::to_string(i);
    const auto on_page = [](std::uint64_t cell) { return cell / 8 / 4096 == 5; };
    const std::vector<std::uint64_t> of_key = cells.cells(std::string_view(key));
    const bool is_on_page = std::any_of(of_key.begin(), of_key.end(), on_page);
    EXPECT_EQ(code_of([&] { sliced.contains(key); }) == errc::damaged, is_on_page) << key;
    EXPECT_EQ(code_of([&] { unchecked.contains(key); }), std::nullopt);
    refused += is_on_page ? 1 : 0;
  }

  EXPECT_GT(refused, 5);
  const sliced_reading seen = sliced.read(0);
  ASSERT_TRUE(seen.damage);
  EXPECT_EQ(seen.damage->text().what, error_of([&] { any_filter::open(path); })->text().what);
  EXPECT_EQ(code_of([&] { sliced.info(info_depth::bits); }), errc::damaged);
}

TEST_F(SlicedFilter, RefusesFiltersThatNeedAllBytes) {
  any_filter(complete({.layout = "sliding", .target_fpr = 0.01, .extra = window_of_keys(700)})).save(path);

  EXPECT_FALSE(sliced_filter::can_read(path));
  EXPECT_EQ(code_of([&] { sliced_filter sliced(path); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { sliced_filter sliced(path, {}, 1000); }), errc::invalid_argument);
}

}  // namespace
}  // namespace bloomery
