// Files of copied sliding-window filters: answers at any time, and refusal of damaged or hostile files.
//
// Offsets are those of docs/format.md.
#include <bloomery/any_filter.hpp>
#include <bloomery/detail/bits.hpp>
#include <bloomery/detail/generations.hpp>
#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layered_filter.hpp>

#include "file/format.hpp"
#include "file/layered_files.hpp"
#include "support/test.hpp"

#include <set>

namespace bloomery {
namespace {

using namespace bloomery_tests;

constexpr std::uint64_t window = 7'000;
constexpr std::uint64_t slice = 1'000;
constexpr std::uint64_t copied_at = 1'700'000'000'000;

layered_params params_of(std::uint64_t shards) {
  layered_params p{.filter = {.layout = "split_block512", .hash = "mix", .keys = key_kind::u64le, .capacity = 300},
                   .shards = shards,
                   .is_shared = true,
                   .metadata = "a note",
                   .copied_at = copied_at};
  p.filter.target_fpr = 0.01;
  p.filter.extra = window_of_milliseconds(window);
  return p;
}

constexpr geometry of_slice = {4096, 8};

filter_layer layer_of(std::uint64_t shard, std::uint64_t age) {
  return {shard, of_slice, 300, 0, copied_at - age * slice};
}

void insert(layered_filter& filter, std::size_t layer, std::uint64_t key) {
  for (const std::uint64_t cell : filter.cells(layer, mix{}(key)))
    filter.bytes_of(layer)[cell / 8] |= static_cast<std::uint8_t>(1u << cell % 8);
}

// Two shards: slices of the ages 12, 5 and 0, and one of age 3. Each key is in a slice of its shard, by its number.
layered_filter sample_slices() {
  layered_filter result(params_of(2), {layer_of(0, 12), layer_of(0, 5), layer_of(0, 0), layer_of(1, 3)});
  for (std::uint64_t key = 0; key < 400; ++key) {
    const std::uint64_t shard = result.shard_of(mix{}(key));
    insert(result, shard == 1 ? 3 : key % 3, key);
  }
  return result;
}

TEST(SlicesFile, AnswersAsOneFilterPerSliceAtAnyTime) {
  const scratch_folder folder;
  sample_slices().save(folder / "f");
  const layered_filter copy = layered_filter::open(folder / "f");
  const std::unique_ptr<filter_handle> handle = open_filter(folder / "f");
  // The slices of both shards laid end to end, each as a plain filter.
  std::vector<std::pair<std::uint64_t, any_filter>> plain;  // with the age
  for (const std::uint64_t age : {12u, 5u, 3u, 0u}) {
    params p = params_of(2).filter;
    p.extra = {};
    p.geometry = {2 * of_slice.bits, of_slice.probes};
    plain.emplace_back(age, any_filter(p));
  }
  const auto of_age = [&](std::uint64_t age) -> any_filter& {
    return std::ranges::find(plain, age, &std::pair<std::uint64_t, any_filter>::first)->second;
  };
  for (std::uint64_t key = 0; key < 400; ++key) {
    constexpr std::uint64_t ages[] = {12, 5, 0};
    of_age(copy.shard_of(mix{}(key)) == 1 ? 3 : ages[key % 3]).insert(key);
  }

  EXPECT_EQ(copy.layers(), sample_slices().layers());
  EXPECT_EQ(copy.parameters().copied_at, copied_at);
  EXPECT_EQ(copy.parameters().filter.window(), window_of_milliseconds(window));
  EXPECT_EQ(copy.parameters().metadata, "a note");
  for (const std::uint64_t time : {std::uint64_t{0}, copied_at, copied_at + 999, copied_at + 1000, copied_at + 7999,
                                   copied_at + 8000, copied_at + 9999, copied_at + 10'000, copied_at + 12'999,
                                   copied_at + 13'000, std::numeric_limits<std::uint64_t>::max()}) {
    handle->tick(time);
    std::uint64_t found = 0;
    for (std::uint64_t key = 0; key < 20'000; ++key) {
      // A slice of age a expires 8 s after its start and 5 s later: 13 - a seconds after the copy.
      const bool expected = std::ranges::any_of(plain, [&](const auto& of) {
        return copied_at + (13 - of.first) * slice > time && of.second.may_contain(key);
      });
      ASSERT_EQ(copy.may_contain(mix{}(key), time), expected) << key << " at " << time;
      ASSERT_EQ(handle->contains(key), expected) << key << " at " << time;
      const key_explanation why = handle->explain(std::span<const std::uint64_t>(&key, 1));
      const bool decided = std::ranges::any_of(why.layers, [](const explained_layer& layer) {
        return std::ranges::all_of(layer.cells, [](const explained_cell& cell) { return cell.value == 1; });
      });
      ASSERT_EQ(why.maybe_present, expected);
      ASSERT_EQ(decided, expected);
      found += expected ? 1 : 0;
    }
    EXPECT_EQ(found > 0, time < copied_at + 13'000) << time;
  }
}

TEST(SlicesFile, GoesByTheSystemsClockAndNeverBeforeTheCopy) {
  layered_params p = params_of(1);
  const std::uint64_t now = milliseconds_since_1970();
  const auto handle_of = [&](std::uint64_t copied, std::uint64_t start) {
    p.copied_at = copied;
    layered_filter filter(p, {{0, of_slice, 300, 0, start / slice * slice}});
    insert(filter, 0, 7);
    return make_handle(std::move(filter));
  };

  EXPECT_TRUE(handle_of(now, now)->contains(std::uint64_t{7}));
  EXPECT_FALSE(handle_of(now - 60'000, now - 60'000)->contains(std::uint64_t{7}));
  EXPECT_TRUE(handle_of(now + 3'600'000, now + 3'590'000)->contains(std::uint64_t{7}));
  const std::unique_ptr<filter_handle> old = handle_of(now - 60'000, now - 60'000);
  old->tick(0);
  EXPECT_TRUE(old->contains(std::uint64_t{7}));
  EXPECT_TRUE(old->capabilities().has_window);
}

TEST(SlicesFile, ReportsSlicesAndTheRateOfThoseThatHaveNotExpired) {
  const std::unique_ptr<filter_handle> handle = make_handle(sample_slices());
  const layered_filter& filter = *layered_filter_of(*handle);
  const auto absent_found = [&] {
    std::uint64_t found = 0;
    for (std::uint64_t key = 1'000'000; key < 1'400'000; ++key) found += handle->contains(key) ? 1 : 0;
    return static_cast<double>(found) / 400'000;
  };
  for (const std::uint64_t time : {copied_at, copied_at + 8'000}) {  // then those of the ages 12 and 5 have expired
    SCOPED_TRACE(time);
    handle->tick(time);

    const filter_facts facts = handle->info(info_depth::everything);

    ASSERT_TRUE(facts.window_copy.has_value());
    EXPECT_EQ(facts.window_copy->copied_at, copied_at);
    EXPECT_EQ(facts.window_copy->time, time);
    EXPECT_EQ(facts.window_copy->slice, slice);
    ASSERT_EQ(facts.layers.size(), 4u);
    const std::size_t by_start[] = {0, 1, 3, 2};  // layers of the filter
    std::uint64_t ones = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t layer = by_start[i];
      EXPECT_EQ(facts.layers[i].start, filter.layers()[layer].start);
      EXPECT_EQ(facts.layers[i].expires_at, filter.layers()[layer].start + 13'000);
      EXPECT_EQ(*facts.layers[i].cells_set, count_ones(filter.bytes_of(layer)));
      if (facts.layers[i].expires_at > time) ones += *facts.layers[i].cells_set;
    }
    EXPECT_EQ(facts.fill->cells_set, ones);
    const double rate = facts.fill->current_fpr;
    EXPECT_NEAR(absent_found(), rate, 6 * std::sqrt(rate / 400'000));
    EXPECT_NEAR(*facts.expected_fpr, rate, 0.5 * rate);
    std::set<std::uint64_t> present;  // keys in slices that count
    for (std::uint64_t key = 0; key < 400; ++key) {
      if (time == copied_at || filter.shard_of(mix{}(key)) == 1 || key % 3 == 2) present.insert(key);
    }
    EXPECT_NEAR(static_cast<double>(*facts.insert_count), static_cast<double>(present.size()), 40);
    EXPECT_TRUE(facts.count_is_estimate);
  }
  handle->tick(copied_at + 100'000);
  const filter_facts facts = handle->info(info_depth::everything);
  EXPECT_EQ(facts.fill->current_fpr, 0);
  EXPECT_EQ(facts.insert_count, 0u);
  EXPECT_EQ(facts.layers.size(), 4u);
  EXPECT_NO_THROW(handle->summary());
}

TEST(SlicesFile, WithAnyBitFlippedIsRefused) {
  const scratch_folder folder;
  sample_slices().save(folder / "f");

  expect_flipped_bits_refused(folder / "f");
}

TEST(SlicesFile, WithFalseFieldsAndCorrectChecksumsIsRefused) {
  const scratch_folder folder;
  sample_slices().save(folder / "f");
  constexpr std::size_t second = first_entry + entry, third = first_entry + 2 * entry;

  expect_false_fields_refused(
      folder / "f",
      {
          {"version 1 has neither a window nor starts", u32(8, 1)},
          {"version 0", u32(8, 0), errc::wrong_version},
          {"version 3", u32(8, 3), errc::wrong_version},
          {"origin is not a shared filter", u32(84, 0)},
          {"it grows, too", u64(120, 1000)},
          {"no window", both(176, 0, 184, 0)},
          {"a window that is too long", both(176, 7 * (std::uint64_t{1} << 51), 184, std::uint64_t{1} << 51)},
          {"a window of 2^64 - 1", both(176, huge, 184, huge / 7 + 1)},
          {"another window than its slices", u64(176, 7'001)},
          {"slices of another length", u64(184, 999)},
          {"no slices", u64(184, 0)},
          {"copied after the oldest slice expired", u64(192, copied_at + slice)},
          {"copied later than 2^58 ms", u64(192, (std::uint64_t{1} << 58) + 1)},
          {"copied at 2^64 - 1", u64(192, huge)},
          {"reserved bytes", u32(200, 1)},
          {"reserved bytes at the end", u32(4084, 1)},
          {"more shards than slices", u64(128, 5)},
          {"very many shards", u64(128, std::uint64_t{1} << 24)},
          {"no slice", u64(136, 0)},
          {"one slice more", u64(136, 5)},
          {"very many slices", u64(136, std::uint64_t{1} << 40)},
          {"slices that overflow", u64(136, huge / 48 + 2)},
          {"a start within a slice", u64(first_entry + 32, copied_at - 12 * slice + 1)},
          {"two slices of one start", u64(second + 32, copied_at - 12 * slice)},
          {"starts out of order", both(second + 32, copied_at, third + 32, copied_at - 5 * slice)},
          {"a slice that had expired", u64(first_entry + 32, copied_at - 13 * slice)},
          {"a slice of 1970", u64(first_entry + 32, 0)},
          {"a start after the copy", u64(third + 32, copied_at + 2 * slice)},
          {"a start that never comes", u64(third + 32, ((std::uint64_t{1} << 58) / slice + 1) * slice)},
          {"a start that overflows", u64(third + 32, huge / slice * slice)},
          {"slices of different sizes", u64(second + 8, 4608)},
          {"slices of different capacities", u64(second + 24, 301)},
          {"very many bits", u64(second + 8, std::uint64_t{1} << 50)},
          {"probes of another layout", u32(second + 16, 9)},
          {"reserved bytes of the table", u32(second + 20, 1)},
      });
}

TEST(SlicesFile, OfAnUnknownVersionNamesTheVersionsThatAreRead) {
  const scratch_folder folder;
  sample_slices().save(folder / "f");
  bytes file = read_file(folder / "f");
  EXPECT_EQ(file[8], 2);
  put<std::uint32_t>(file, 8, 3);
  write_file(folder / "f", layers_with_checksums(file));

  const std::optional<error> e = error_of([&] { open_filter(folder / "f"); });

  ASSERT_TRUE(e.has_value());
  EXPECT_THAT(e->what(), HasSubstr("expected version 1 or 2, found 3"));
}

TEST(SlicesFile, OfAnotherLengthIsRefused) {
  const scratch_folder folder;
  sample_slices().save(folder / "f");

  expect_other_lengths_refused(folder / "f");
}

TEST(SlicesFile, IsForLookupsOnlyAndNoScalableFilter) {
  const scratch_folder folder;
  sample_slices().save(folder / "f");

  EXPECT_ERROR(any_filter::open(folder / "f"), errc::incompatible, "slices of a shared sliding-window filter");
  EXPECT_EQ(code_of([&] { open_filter(folder / "f", {.mode = access::read_write}); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { scalable_layers(layered_filter::open(folder / "f")); }), errc::incompatible);
}

TEST(SlicesFile, OfImpossibleParametersIsNotMade) {
  const auto code_with = [](auto change, std::vector<filter_layer> layers = {layer_of(0, 0)}) {
    layered_params p = params_of(1);
    change(p);
    return code_of([&] { layered_filter(p, std::move(layers)); });
  };
  EXPECT_EQ(code_with([](layered_params&) {}), std::nullopt);
  EXPECT_EQ(code_with([](layered_params& p) { p.filter.extra = window_of_keys(7000); }), errc::invalid_argument);
  EXPECT_EQ(code_with([](layered_params& p) { p.filter.extra = {}; }), errc::invalid_argument);
  EXPECT_EQ(code_with([](layered_params& p) { p.is_shared = false; }), errc::invalid_argument);
  filter_layer counted = layer_of(0, 0);
  counted.keys = 1;
  EXPECT_EQ(code_with([](layered_params&) {}, {counted}), errc::invalid_argument);
  // From the oldest that has not expired to the one after the copy.
  std::vector<filter_layer> many;
  for (std::uint64_t i = 0; i < 14; ++i) many.push_back({0, of_slice, 300, 0, copied_at - 12 * slice + i * slice});
  EXPECT_EQ(code_with([](layered_params&) {}, many), std::nullopt);
  many.push_back({0, of_slice, 300, 0, copied_at + 2 * slice});
  EXPECT_EQ(code_with([](layered_params&) {}, many), errc::invalid_argument);
}

}  // namespace
}  // namespace bloomery
