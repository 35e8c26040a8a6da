// The cells of every layout and scheme, compared with a walk over the bytes that shares no code with the library.
#include <bloomery/cells.hpp>

#include <bloomery/any_filter.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/scheme.hpp>
#include <bloomery/static_filter.hpp>

#include "support/test.hpp"

#include <chrono>

namespace bloomery {
namespace {

using namespace bloomery_tests;

std::vector<std::string> keys_of(int count) {
  std::vector<std::string> keys;
  for (int i = 0; i < count; ++i) keys.push_back("key " + std::to_string(i));
  return keys;
}

any_filter filled(params p, int count) {
  any_filter filter(complete(std::move(p)));
  for (const std::string& key : keys_of(count)) filter.insert(key);
  return filter;
}

cell_view view_of(const any_filter& filter) { return {filter.parameters(), filter.bytes(), filter.epoch()}; }

std::vector<any_filter> all_kinds() {
  std::vector<any_filter> all;
  for (const char* layout : {"classic", "split_block", "split_block512", "blocked", "blocked_page", "counting"})
    all.push_back(filled({.layout = layout, .capacity = 3000, .target_fpr = 0.01}, 2500));
  for (const scheme& row : schemes())
    all.push_back(filled({.scheme = std::string(row.name), .capacity = 3000, .target_fpr = 0.01}, 2500));
  for (const char* layout : {"sliding", "sliding64"})
    all.push_back(
        filled({.layout = layout, .capacity = 3000, .target_fpr = 0.01, .extra = window_of_keys(3000)}, 2500));
  return all;
}

std::vector<std::uint32_t> values_of(const cell_view& cells) {
  std::vector<std::uint32_t> values;
  for (std::uint64_t cell = 0; cell < cells.size(); ++cell) values.push_back(cells.value(cell));
  return values;
}

TEST(CellView, BitsOfLayoutsAreNumberedFromTheLowestOfAByte) {
  const any_filter filter = filled({.layout = "classic", .geometry = {1001, 3}, .capacity = 100}, 100);

  const std::vector<std::uint32_t> values = values_of(view_of(filter));

  ASSERT_EQ(values.size(), 1001u);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], filter.bytes()[i / 8] >> i % 8 & 1u) << i;
}

TEST(CellView, BitsOfPharoAreNumberedFromTheHighestOfAByte) {
  const any_filter filter = filled({.scheme = "pharo", .geometry = {1001, 3}, .capacity = 100}, 100);

  const std::vector<std::uint32_t> values = values_of(view_of(filter));

  ASSERT_EQ(values.size(), 1001u);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], filter.bytes()[i / 8] >> (7 - i % 8) & 1u) << i;
}

TEST(CellView, CountersAreHalvesOfBytes) {
  any_filter filter = filled({.layout = "counting", .capacity = 100, .target_fpr = 0.01}, 100);
  for (int i = 0; i < 9; ++i) filter.insert("key 1");

  const std::vector<std::uint32_t> values = values_of(view_of(filter));

  ASSERT_EQ(values.size(), 2 * filter.bytes().size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], filter.bytes()[i / 2] >> (i % 2 == 0 ? 0 : 4) & 15u) << i;
  EXPECT_GE(*std::max_element(values.begin(), values.end()), 10u);
}

TEST(CellView, FingerprintsAreLittleEndianAndSayNothingOfTheFill) {
  scratch_folder folder;
  const std::vector<std::string> names = keys_of(300);
  const std::vector<std::string_view> keys(names.begin(), names.end());
  static_filter<std::string_view, std::uint16_t>::build(keys).save(folder / "a.bloom");
  const any_filter filter = any_filter::load(folder / "a.bloom");

  const cell_view cells = view_of(filter);

  EXPECT_FALSE(cells.shows_fill());
  ASSERT_EQ(cells.size(), filter.bytes().size() / 2);
  for (std::size_t i = 0; i < cells.size(); ++i)
    ASSERT_EQ(cells.value(i), filter.bytes()[2 * i] + 256u * filter.bytes()[2 * i + 1]) << i;
}

// A block is a stamp of 4 bytes and its cells; 512 bytes of state come before the first.
TEST(CellView, StampsOfASlidingWindowFilterAreNoCells) {
  for (const auto& [layout, block] : {std::pair<const char*, std::size_t>{"sliding", 512}, {"sliding64", 64}}) {
    SCOPED_TRACE(layout);
    const any_filter filter =
        filled({.layout = layout, .capacity = 3000, .target_fpr = 0.01, .extra = window_of_keys(30'000)}, 2500);
    std::vector<std::uint32_t> expected;
    for (std::size_t at = 512; at < filter.bytes().size(); at += block) {
      for (std::size_t i = 4; i < block; ++i) expected.push_back(filter.bytes()[at + i]);
    }

    const cell_view cells = view_of(filter);

    EXPECT_EQ(cells.block_cells(), block - 4);
    EXPECT_EQ(values_of(cells), expected);
  }
}

TEST(CellView, CellsOfExpiredGenerationsAreNotSet) {
  any_filter filter(complete(
      {.layout = "sliding", .capacity = 100, .target_fpr = 0.01, .extra = window_of_time(std::chrono::seconds(7))}));
  std::uint64_t now = 1'000'000;
  filter.set_clock([&] { return now; });
  filter.insert("Madrid");
  EXPECT_EQ(filter.epoch(), 1000u);
  EXPECT_EQ(filter.window()->epoch, 1000u);
  const std::uint64_t set = view_of(filter).count_set(0, view_of(filter).size());
  EXPECT_GT(set, 0u);

  now += 7000;
  EXPECT_EQ(view_of(filter).count_set(0, view_of(filter).size()), set);
  EXPECT_GT(measure_window_fill(filter.parameters(), filter.bytes(), filter.epoch()).current_fpr, 0);
  now += 1000;
  EXPECT_EQ(filter.epoch(), 1008u);
  EXPECT_EQ(view_of(filter).count_set(0, view_of(filter).size()), 0u);
  EXPECT_EQ(measure_window_fill(filter.parameters(), filter.bytes(), filter.epoch()).current_fpr, 0);
  EXPECT_GT(measure_window_fill(filter.parameters(), filter.bytes()).current_fpr, 0) << "at its newest generation";
}

TEST(CellView, ExplainedCellsHaveTheirNumberAndTheirValue) {
  for (any_filter& filter : all_kinds()) {
    SCOPED_TRACE(filter.parameters().layout + filter.parameters().scheme);
    const std::unique_ptr<filter_handle> handle = make_handle(std::move(filter));
    const cell_view cells = handle->cells();
    for (const std::string& key : keys_of(100)) {
      const key_explanation why = handle->explain(std::span(&key, 1));
      for (const explained_cell& cell : why.layers.front().cells) {
        const std::uint64_t number = cells.number_of(cell.cell, 0);
        ASSERT_LT(number, cells.size());
        EXPECT_EQ(cells.value(number), cell.value) << key;
        EXPECT_NE(cell.value, 0u) << key;
      }
    }
  }
}

TEST(CellView, RunsAndRangesHaveTheSumsOfTheirCells) {
  for (const any_filter& filter : all_kinds()) {
    const cell_view cells = view_of(filter);
    const std::vector<std::uint32_t> values = values_of(cells);
    const auto sum = [&](std::uint64_t from, std::uint64_t to) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(from);
      const auto last = values.begin() + static_cast<std::ptrdiff_t>(to);
      return static_cast<std::uint64_t>(last - first - std::count(first, last, 0u));
    };
    EXPECT_GT(sum(0, cells.size()), 0u);
    for (const std::uint64_t run :
         {std::uint64_t{512}, std::max<std::uint64_t>(cells.block_cells(), 1), std::uint64_t{100}}) {
      SCOPED_TRACE(filter.parameters().layout + filter.parameters().scheme + " " + std::to_string(run));
      for (const std::uint64_t from : {std::uint64_t{0}, run, std::uint64_t{3}}) {
        EXPECT_EQ(cells.count_set(from, cells.size()), sum(from, cells.size()));
        std::vector<std::uint64_t> counts((cells.size() - from + run - 1) / run);

        cells.count_set(from, run, counts);

        for (std::size_t i = 0; i < counts.size(); ++i)
          ASSERT_EQ(counts[i], sum(from + i * run, std::min(cells.size(), from + (i + 1) * run))) << i;
      }
    }
  }
}

TEST(CellView, LayersOfAScalableFilterFollowEachOther) {
  const std::unique_ptr<filter_handle> filter = make_scalable_handle({.capacity = 100, .target_fpr = 0.01});
  const std::vector<std::string> keys = keys_of(1000);
  filter->insert(keys);
  const filter_facts facts = filter->info(info_depth::bits);
  ASSERT_GT(facts.layers.size(), 2u);

  const cell_view cells = filter->cells();

  ASSERT_EQ(cells.layers(), facts.layers.size());
  EXPECT_EQ(cells.block_cells(), 512u);
  std::uint64_t first = 0;
  for (std::uint32_t i = 0; i < cells.layers(); ++i) {
    const std::uint64_t end = first + facts.layers[i].geometry.bits;
    EXPECT_EQ(cells.first_cell(i), first);
    EXPECT_EQ(cells.layer_of(first), i);
    EXPECT_EQ(cells.layer_of(end - 1), i);
    EXPECT_EQ(cells.count_set(first, end), facts.layers[i].cells_set);
    first = end;
  }
  EXPECT_EQ(cells.size(), first);
  for (const std::string& key : keys_of(50)) {
    const key_explanation why = filter->explain(std::span(&key, 1));
    for (std::size_t i = 0; i < why.layers.size(); ++i) {  // the newest first
      const auto layer = static_cast<std::uint32_t>(why.layers.size() - 1 - i);
      for (const explained_cell& cell : why.layers[i].cells) {
        const std::uint64_t number = cells.number_of(cell.cell, layer);
        EXPECT_EQ(cells.layer_of(number), layer);
        EXPECT_EQ(cells.value(number), cell.value);
      }
    }
  }
  EXPECT_NEAR(facts.fill->estimated_keys->value, 1000, 5 * facts.fill->estimated_keys->sigma + 10);
}

}  // namespace
}  // namespace bloomery
