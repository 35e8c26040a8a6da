// filter_handle: capabilities derived from parameters, copies in memory, and overfull filters.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/rebuilding_filter.hpp>

#include "support/fenced.hpp"
#include "support/test.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <chrono>

namespace bloomery_tests {
namespace {

using namespace bloomery;

std::vector<std::string> keys(int first, int end) {
  std::vector<std::string> list;
  for (int i = first; i < end; ++i) list.push_back("key" + std::to_string(i));
  return list;
}

bool removes(filter_handle& filter) {
  try {
    filter.remove(keys(0, 1));
    return true;
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::incompatible);
    return false;
  }
}

TEST(CapabilitiesOf, TellWhatAFilterOfTheseParametersDoes) {
  for (const family kind : {family::plain, family::counting, family::sliding_window, family::quotient}) {
    for (const layout_facts& layout : layouts_of(kind)) {
      SCOPED_TRACE(layout.name);
      params p{.layout = std::string(layout.name), .capacity = 100, .target_fpr = 0.01};
      if (kind == family::sliding_window) p.extra = window_of_time(std::chrono::seconds(1));
      const capabilities can = capabilities_of(p);
      const auto filter = make_handle(any_filter(complete(p)));
      const auto same = make_handle(any_filter(complete(p)));

      EXPECT_EQ(filter->insert(keys(0, 1)).changed, 1u);
      EXPECT_TRUE(can.can_insert && can.can_clear && can.can_merge);
      EXPECT_NO_THROW(filter->merge(*same));
      EXPECT_EQ(can.has_window, filter->summary().window.has_value());
      EXPECT_EQ(can.can_remove, removes(*filter));
      EXPECT_EQ(can.counts_copies, can.can_remove);
    }
  }
}

TEST(CapabilitiesOf, StaticFiltersTakeNothingAndWindowsByKeysDoNotMerge) {
  for (const layout_facts& layout : layouts_of(family::static_set)) {
    const capabilities can = capabilities_of({.layout = std::string(layout.name)});
    EXPECT_FALSE(can.can_insert || can.can_remove || can.can_merge || can.can_clear) << layout.name;
  }
  const params by_keys =
      complete({.layout = "sliding", .capacity = 70, .target_fpr = 0.01, .extra = window_of_keys(70)});
  const auto a = make_handle(any_filter(by_keys)), b = make_handle(any_filter(by_keys));
  EXPECT_FALSE(a->capabilities().can_merge);
  EXPECT_THROW(a->merge(*b), error);
}

TEST(CopyOfAHandle, HasTheBitsOfAKeyedFileWithoutItsSecret) {
  const scratch_folder folder;
  const std::string path = folder / "keyed";
  any_filter keyed(complete({.capacity = 500, .target_fpr = 0.01, .secret = secret_key{1, 2}}));
  for (const std::string& key : keys(0, 400)) keyed.insert(key);
  keyed.save(path);

  const any_filter copy = open_filter(path, {.facts_only = true})->copy();

  EXPECT_TRUE(std::ranges::equal(copy.bytes(), keyed.bytes()));
  EXPECT_EQ(copy.insert_count(), keyed.insert_count());
  EXPECT_EQ(copy.parameters().key_check, key_check(secret_key{1, 2}));
  EXPECT_FALSE(copy.count_is_estimate());
}

TEST(CopyOfAHandle, EstimatesTheCountOfAFileThatIsNotClosed) {
  const scratch_folder folder;
  for (const char* layout : {"split_block512", "classic", "counting"}) {
    SCOPED_TRACE(layout);
    const std::string path = folder / layout;
    any_filter writer = any_filter::create(path, complete({.layout = layout, .capacity = 2000, .target_fpr = 0.001}));
    for (const std::string& key : keys(0, 1000)) writer.insert(key);

    const any_filter copy = open_filter(path)->copy();

    EXPECT_TRUE(copy.count_is_estimate());
    EXPECT_NEAR(static_cast<double>(copy.insert_count()), 1000, 50);
    EXPECT_TRUE(std::ranges::equal(copy.bytes(), writer.bytes()));
  }
}

TEST(SummaryOfAHandle, ReportsThatTheCountOfAnUnclosedFileIsAnEstimate) {
  const scratch_folder folder;
  const std::string path = folder / "f";
  any_filter writer = any_filter::create(path, complete({.capacity = 2000, .target_fpr = 0.001}));
  for (const std::string& key : keys(0, 1000)) writer.insert(key);

  EXPECT_TRUE(open_filter(path)->summary().count_is_estimate);

  writer.close();
  const filter_summary closed = open_filter(path)->summary();
  EXPECT_FALSE(closed.count_is_estimate);
  EXPECT_EQ(closed.insert_count, 1000u);
}

TEST(MergeOfAHandle, TakesTheKeysOfAFileThatIsNotClosedAndEstimatesTheCount) {
  const scratch_folder folder;
  const params p = complete({.capacity = 4000, .target_fpr = 0.001});
  any_filter writer = any_filter::create(folder / "open", p);
  for (const std::string& key : keys(0, 1000)) writer.insert(key);
  const auto all = make_handle(any_filter(p));
  all->insert(keys(1000, 1500));

  all->merge(*open_filter(folder / "open"));

  for (const std::string& key : keys(0, 1500)) EXPECT_TRUE(all->contains(key));
  const filter_summary now = all->summary();
  EXPECT_TRUE(now.count_is_estimate);
  EXPECT_NEAR(static_cast<double>(*now.insert_count), 1500, 60);
}

// A second open would see a file that another process has put in its place.
TEST(OpenFilter, OpensACountingFileOnceToChangeIt) {
  const scratch_folder folder;
  const std::string path = folder / "f";
  any_filter(complete({.layout = "counting", .capacity = 1000, .target_fpr = 0.01})).save(path);
  const int events = ::inotify_init1(IN_NONBLOCK);
  ASSERT_GE(events, 0);
  // Reads come between two opens, so that the system does not report both opens as one event.
  ASSERT_GE(::inotify_add_watch(events, path.c_str(), IN_OPEN | IN_ACCESS | IN_CLOSE), 0);

  const auto filter = open_filter(path, {.mode = access::read_write, .to_remove = true});
  filter->insert(keys(0, 10));
  filter->commit();

  alignas(inotify_event) char buffer[16'384];
  const ssize_t got = ::read(events, buffer, sizeof buffer);
  ::close(events);
  int opens = 0;
  for (ssize_t at = 0; at < got;) {
    inotify_event event{};
    std::memcpy(&event, buffer + at, sizeof event);
    opens += (event.mask & IN_OPEN) != 0 ? 1 : 0;
    at += static_cast<ssize_t>(sizeof event + event.len);
  }
  EXPECT_EQ(opens, 1);
  EXPECT_TRUE(open_filter(path)->contains("key1"));
}

TEST(Explain, ReadsNoMoreOfASchemesHashThanThereIs) {
  const auto scheme = make_handle(any_filter(complete({.scheme = "guava", .capacity = 100, .target_fpr = 0.01})));
  const fenced<std::uint64_t> hash64(1);  // the byte after it cannot be read

  const auto refused = error_of([&] { scheme->explain(key_span::of_hash64s(hash64.all())); });

  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), errc::incompatible);
}

TEST(CopyOfAHandle, IsRefusedByFiltersOfSeveralLayers) {
  try {
    static_cast<void>(make_scalable_handle({.target_fpr = 0.01})->copy());
    FAIL() << "copied";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::incompatible);
  }
}

// Sizes are whole blocks, so a small filter has room for more keys than its capacity.
TEST(Overfull, MeansThatTheExpectedFprExceedsTheTarget) {
  const params p = complete({.layout = "split_block", .capacity = 20, .target_fpr = 0.01});
  const auto filter = make_handle(any_filter(p));
  ASSERT_LT(expected_fpr(p, 21), 0.01);
  ASSERT_GT(expected_fpr(p, 100), 0.01);

  filter->insert(keys(0, 21));
  EXPECT_FALSE(filter->is_overfull() || filter->summary().is_overfull);

  filter->insert(keys(21, 100));
  EXPECT_TRUE(filter->is_overfull() && filter->summary().is_overfull);
}

TEST(Overfull, IsACountingFilterWithoutAFreeCounter) {
  const auto filter = make_handle(any_filter(complete({.layout = "counting", .capacity = 20, .target_fpr = 0.01})));

  filter->insert(keys(0, 15));
  filter->settle();
  EXPECT_FALSE(filter->summary().is_overfull);

  filter->insert(keys(0, 20'000));
  filter->settle();
  ASSERT_EQ(filter->info(info_depth::bits).fill->fill_ratio(), 1);
  EXPECT_TRUE(filter->summary().is_overfull);
}

TEST(Overfull, CountsTheKeysOfOneGenerationAgainstTheFprOfAll) {
  const auto filter = make_handle(any_filter(complete(
      {.layout = "sliding", .capacity = 7000, .target_fpr = 0.01, .extra = window_of_time(std::chrono::seconds(7))})));
  filter->tick(1000);

  filter->insert(keys(0, 7500));  // of 7,000, and the other generations are empty
  ASSERT_TRUE(filter->summary().window->has_overfull_generation());
  EXPECT_FALSE(filter->is_overfull());

  filter->insert(keys(7500, 20'000));
  EXPECT_TRUE(filter->is_overfull());
  EXPECT_GT(*filter->summary().fpr, 0.01);
}

}  // namespace
}  // namespace bloomery_tests
