// Files of sliding-window filters: killed writers, blocks that are ahead of the state, hostile bytes, and merges.
#include <bloomery/any_filter.hpp>
#include <bloomery/fold.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/sliding_window_filter.hpp>

#include "file/sample_file.hpp"
#include "filters/sliding_windows.hpp"
#include "support/test.hpp"

#include <chrono>

namespace bloomery {
namespace {

using namespace bloomery_tests;

template <class Layout>
class SlidingWindowFile : public ::testing::Test {};
TYPED_TEST_SUITE(SlidingWindowFile, layouts_with_window);

// ---- saving, opening, killed writers --------------------------------------------------------------------------------

TYPED_TEST(SlidingWindowFile, ComesBackFromAFile) {
  const scratch_folder folder;
  std::uint64_t now = some_day;
  const auto clock = [&] { return now; };
  filter_of_integers<TypeParam> filter(
      {.window = window_of_time(std::chrono::hours(7)), .capacity = 1000, .clock = clock});
  for (std::uint64_t key = 0; key < 500; ++key, now += hour / 100) filter.insert(key);
  filter.save(folder / "seen.bloom", "a note");

  {
    using mapped = sliding_window_filter<std::uint64_t, TypeParam, mix, mapped_storage>;
    auto again =
        mapped::open(folder / "seen.bloom", {.mode = access::read_write, .check = file_check::payload, .clock = clock});
    EXPECT_TRUE(std::ranges::equal(again.bytes(), filter.bytes()));
    EXPECT_EQ(again.parameters(), filter.parameters());
    EXPECT_EQ(again.insert_count(), filter.insert_count());
    now += 5 * hour;
    again.insert(9999);
    filter.insert(9999);
    again.close();
  }
  const any_filter any = any_filter::open(folder / "seen.bloom", {.check = file_check::payload});
  EXPECT_TRUE(std::ranges::equal(any.bytes(), filter.bytes()));
  const auto loaded = filter_of_integers<TypeParam>::load(folder / "seen.bloom", {.clock = clock});
  EXPECT_TRUE(std::ranges::equal(loaded.bytes(), filter.bytes()));
  EXPECT_TRUE(loaded.may_contain(9999));
  EXPECT_EQ(loaded.facts().keys, filter.facts().keys);
}

TEST(SlidingWindowFileOfIntegers, OpenedForReadingForgetsWithoutBeingWritten) {
  const scratch_folder folder;
  filter_of_integers<layouts::sliding> filter(
      {.window = window_of_time(std::chrono::hours(7)), .capacity = 1000, .clock = [] { return some_day; }});
  filter.insert(1);
  filter.save(folder / "seen.bloom");
  const bytes before = read_file(folder / "seen.bloom");
  {
    any_filter any = any_filter::open(folder / "seen.bloom");
    any.set_clock([] { return some_day; });
    EXPECT_TRUE(any.may_contain(std::uint64_t{1}));
    any.set_clock([] { return some_day + 8 * hour; });
    EXPECT_FALSE(any.may_contain(std::uint64_t{1}));
    EXPECT_EQ(any.window()->keys_held(), 0u);
    EXPECT_EQ(any.expected_fpr(), 0);
  }
  EXPECT_EQ(read_file(folder / "seen.bloom"), before);
}

TEST(SlidingWindowFileOfIntegers, OfAnotherWindowIsRefusedByAMerge) {
  filter_of_integers<layouts::sliding> a({.window = window_of_time(std::chrono::hours(24)), .capacity = 1000});
  filter_of_integers<layouts::sliding> b({.window = window_of_time(std::chrono::hours(12)), .capacity = 1000});

  EXPECT_ERROR(a.merge(b), errc::incompatible, "window: 86400000 ms and 43200000 ms");
}

TYPED_TEST(SlidingWindowFile, OfALengthThatItCannotHaveLeavesTheOldFile) {
  const scratch_folder folder;
  const std::string path = folder / "seen.bloom";
  filter_of_integers<TypeParam>({.window = window_of_keys(700)}).save(path);
  const bytes before = read_file(path);
  const std::uint64_t too_long = (std::uint64_t{1} << 62) + 1;
  using mapped = sliding_window_filter<std::uint64_t, TypeParam, mix, mapped_storage>;

  EXPECT_ERROR(mapped::create(path, {.window = window_of_milliseconds(too_long), .capacity = 100}),
               errc::invalid_argument, "the window is too long");
  EXPECT_ERROR(mapped::create(path, {.window = window_of_keys(too_long), .capacity = 100}), errc::invalid_argument,
               "the window is too long");
  EXPECT_EQ(read_file(path), before);

  filter_of_integers<TypeParam> filter({.window = window_of_keys(700)});
  params p = filter.parameters();
  p.extra = window_of_keys(too_long);
  EXPECT_ERROR(save_file(path, p, filter.bytes(), {}, ""), errc::invalid_argument, "length of a window");
  EXPECT_EQ(read_file(path), before);
}

// ---- blocks that are ahead of the state -----------------------------------------------------------------------------

// Eight generations of 100 keys, and keys of a ninth that the state does not count: a copy made during a write, or a
// file after a power failure, may look like this.
template <class Layout>
class torn_filter {
 public:
  static constexpr std::uint64_t slice = 1000;
  static constexpr std::uint64_t last_epoch = some_day / slice;

  torn_filter(const std::string& path, std::uint64_t first_key) : first_key_(first_key) {
    std::uint64_t now = 0;
    filter_of_integers<Layout> filter(
        {.window = window_of_milliseconds(7 * slice), .capacity = 2000, .fpr = 1e-6, .clock = [&] { return now; }});
    window_state state;
    for (std::uint64_t epoch = last_epoch - 7; epoch <= last_epoch + 1; ++epoch) {
      if (epoch == last_epoch + 1) state = window_state::of(filter.bytes().data());
      now = epoch * slice;
      for (std::uint64_t i = 0; i < 100; ++i) filter.insert(key(epoch, i));
    }
    filter.save(path);
    bytes torn = read_file(path);
    std::memcpy(torn.data() + 4096, &state, sizeof state);
    write_file(path, with_checksums(std::move(torn)));
  }

  std::uint64_t key(std::uint64_t epoch, std::uint64_t i) const {
    return first_key_ + (epoch - last_epoch + 7) * 100 + i;
  }

  // The number of keys of the window that are missing. Keys of the first epoch expired when the blocks reached the
  // last.
  std::uint64_t missing(any_filter& filter, std::uint64_t epoch) const {
    filter.set_clock([epoch] { return epoch * slice; });
    std::uint64_t result = 0;
    for (std::uint64_t of = std::max(last_epoch - 6, epoch - 7); of <= last_epoch + 1; ++of) {
      for (std::uint64_t i = 0; i < 100; ++i) result += filter.may_contain(key(of, i)) ? 0 : 1;
    }
    return result;
  }

 private:
  std::uint64_t first_key_;
};

TYPED_TEST(SlidingWindowFile, LosesNoKeyOfBlocksThatAreAheadOfTheState) {
  const scratch_folder folder;
  const torn_filter<TypeParam> torn(folder / "torn.bloom", 0);
  const std::uint64_t first = torn.last_epoch;
  any_filter filter = any_filter::open(folder / "torn.bloom", {.mode = access::read_write});
  const auto mine = [](std::uint64_t epoch, std::uint64_t i) { return epoch * 1000 + i; };

  for (std::uint64_t epoch = first; epoch <= first + 16; ++epoch) {
    filter.set_clock([&] { return epoch * torn.slice; });
    for (std::uint64_t i = 0; i < 100; ++i) filter.insert(mine(epoch, i));

    if (epoch <= first + 8) {
      EXPECT_EQ(torn.missing(filter, epoch), 0u) << epoch - first;
    }
    filter.set_clock([&] { return epoch * torn.slice; });
    for (std::uint64_t of = std::max(first, epoch - 7); of <= epoch; ++of) {
      for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(filter.may_contain(mine(of, i))) << epoch - of;
    }
    // Keys expire as usual: once its epoch is reached, a block that was ahead is like any other.
    if (epoch <= first + 9) continue;
    for (std::uint64_t i = 0; i < 100; ++i) EXPECT_FALSE(filter.may_contain(mine(epoch - 8, i))) << epoch - first;
  }
}

TYPED_TEST(SlidingWindowFile, UnitedWithBlocksThatAreAheadLosesNoKey) {
  const scratch_folder folder;
  const torn_filter<TypeParam> torn(folder / "torn.bloom", 0), other(folder / "other.bloom", 1'000'000);
  const std::uint64_t first = torn.last_epoch;
  std::uint64_t now = 0;
  filter_of_integers<TypeParam> sound(
      {.window = window_of_milliseconds(7 * torn.slice), .capacity = 2000, .fpr = 1e-6, .clock = [&] { return now; }});
  const auto of_sound = [](std::uint64_t epoch) { return epoch * 1000; };
  for (std::uint64_t epoch = first - 7; epoch <= first; ++epoch) {
    now = epoch * torn.slice;
    for (std::uint64_t i = 0; i < 100; ++i) sound.insert(of_sound(epoch) + i);
  }

  for (const char* into : {"sound.bloom", "torn.bloom"}) {
    SCOPED_TRACE(into);
    sound.save(folder / "sound.bloom");
    const char* from = std::string(into) == "sound.bloom" ? "torn.bloom" : "sound.bloom";
    any_filter all = any_filter::open(folder / into, {.mode = access::read_write});
    all.merge(any_filter::open(folder / from));
    all.merge(any_filter::open(folder / "other.bloom"));

    for (std::uint64_t epoch = first; epoch <= first + 8; ++epoch) {
      EXPECT_EQ(torn.missing(all, epoch), 0u) << epoch - first;
      EXPECT_EQ(other.missing(all, epoch), 0u) << epoch - first;
      for (std::uint64_t of = epoch - 7; of <= first; ++of) {
        for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(all.may_contain(of_sound(of) + i)) << epoch - of;
      }
      all.insert(std::uint64_t{77});
    }
  }
}

// ---- hostile bytes --------------------------------------------------------------------------------------------------

class HostileSlidingWindow : public ::testing::Test {
 protected:
  void SetUp() override {
    filter_of_integers<layouts::sliding> by_keys({.window = window_of_keys(700)});
    for (std::uint64_t key = 0; key < 1234; ++key) by_keys.insert(key);
    by_keys.save(folder_ / "seen.bloom");
    whole_ = read_file(folder_ / "seen.bloom");
  }

  // Opens a copy of the file with this state.
  void open_with(const window_state& state, std::size_t reserved = 0) {
    bytes changed = whole_;
    std::memcpy(changed.data() + 4096, &state, sizeof state);
    if (reserved != 0) changed[4096 + reserved] = 1;
    write_file(folder_ / "changed.bloom", with_checksums(std::move(changed)));
    any_filter::open(folder_ / "changed.bloom");
  }

  window_state state() const { return window_state::of(whole_.data() + 4096); }

  scratch_folder folder_;
  bytes whole_;
};

TEST_F(HostileSlidingWindow, StateIsRefused) {
  const window_state sound = state();
  EXPECT_NO_THROW(open_with(sound));
  for (const std::uint64_t newest : {sound.newest + 1, sound.newest - 1, std::uint64_t{0}, ~std::uint64_t{0}}) {
    window_state s = sound;
    s.newest = newest;
    EXPECT_ERROR(open_with(s), errc::damaged, "newest generation of the window");
  }
  window_state s = sound;
  s.insertions = ~std::uint64_t{0};
  EXPECT_ERROR(open_with(s), errc::damaged, "insertions of the window");
  for (const std::uint64_t keys : {std::uint64_t{1200}, ~std::uint64_t{0}}) {
    s = sound;
    s.keys[2] = keys;
    EXPECT_ERROR(open_with(s), errc::damaged, "keys of the window's generations");
  }
  for (const std::size_t at : {sizeof(window_state), std::size_t{511}}) {
    EXPECT_ERROR(open_with(sound, at), errc::damaged, "reserved bytes of the window's state");
  }
}

// Offsets of docs/format.md.
TEST_F(HostileSlidingWindow, HeaderWithTwoLengthsOrALogIsRefused) {
  constexpr std::size_t at_keys = 192, at_milliseconds = 200, at_log_id = 208;
  const auto open_with_fields = [&](std::uint64_t keys, std::uint64_t milliseconds, std::uint64_t log) {
    write_file(folder_ / "changed.bloom", with_header(whole_, [&](bytes& h) {
                 put(h, at_keys, keys);
                 put(h, at_milliseconds, milliseconds);
                 put(h, at_log_id, log);
               }));
    any_filter::open(folder_ / "changed.bloom");
  };
  EXPECT_NO_THROW(open_with_fields(700, 0, 0));
  EXPECT_ERROR(open_with_fields(700, 1000, 0), errc::damaged, "length of a window");
  EXPECT_ERROR(open_with_fields(0, 0, 0), errc::damaged, "length of a window");
  EXPECT_ERROR(open_with_fields((std::uint64_t{1} << 62) + 1, 0, 0), errc::damaged, "length of a window");
  EXPECT_ERROR(open_with_fields(700, 0, 5), errc::damaged, "number of a key log");
  EXPECT_ERROR(open_with_fields(0, 1000, 5), errc::damaged, "number of a key log");
  EXPECT_ERROR(open_with_fields(0, 0, 5), errc::damaged, "length of a window");
}

TEST_F(HostileSlidingWindow, CellsAndStampsDoNoHarm) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 50; ++round) {
    bytes changed = whole_;
    const std::size_t payload_bytes =
        512 + layouts::sliding::blocks_of(layouts::sliding::geometry_for(700, 0.01)) * 512;
    for (std::size_t at = 4096 + 512; at < 4096 + payload_bytes; ++at) {
      changed[at] = static_cast<std::uint8_t>(random());
    }
    write_file(folder_ / "changed.bloom", with_checksums(std::move(changed)));

    any_filter filter = any_filter::open(folder_ / "changed.bloom", {.mode = access::read_write});

    for (std::uint64_t key = 0; key < 300; ++key) filter.insert(key);
    for (std::uint64_t key = 0; key < 300; ++key) EXPECT_TRUE(filter.may_contain(key));
    EXPECT_GE(filter.current_fpr(), 0);
    EXPECT_LE(filter.current_fpr(), 1);
  }
}

// ---- merging --------------------------------------------------------------------------------------------------------

TYPED_TEST(SlidingWindowFile, MergedByTimeIsThatOfTheKeysOfBoth) {
  std::uint64_t now = some_day / 7000 * 7000;
  const auto clock = [&] { return now; };
  const auto make = [&] {
    return filter_of_integers<TypeParam>(
        {.window = window_of_milliseconds(7000), .capacity = 500, .fpr = 0.05, .clock = clock});
  };
  filter_of_integers<TypeParam> a = make(), b = make(), both = make();
  std::mt19937_64 random(2);
  for (std::uint64_t key = 0; key < 1500; ++key, now += 11) {
    const bool to_a = now % 9000 < 4000 || key > 1400;  // b is behind at the end
    (to_a ? a : b).insert(key);
    both.insert(key);
  }
  now = 0;  // as of the newest epochs

  a.merge(b);

  for (std::uint64_t key = 0; key < 5000; ++key) ASSERT_EQ(a.may_contain(key), both.may_contain(key)) << key;
  EXPECT_EQ(a.current_fpr(), both.current_fpr());
  EXPECT_EQ(a.facts().epoch, both.facts().epoch);
  EXPECT_EQ(a.facts().insertions, both.facts().insertions);
  EXPECT_GE(a.facts().keys_held(), both.facts().keys_held());
}

TYPED_TEST(SlidingWindowFile, MergedWithAnEarlierOneCountsNoKeyThatHasExpired) {
  std::uint64_t epoch = some_day / 1000;
  const auto make = [&] {
    return filter_of_integers<TypeParam>(
        {.window = window_of_milliseconds(7000), .capacity = 500, .fpr = 1e-6, .clock = [&] { return epoch * 1000; }});
  };
  filter_of_integers<TypeParam> earlier = make(), later = make();
  std::uint64_t key = 0;
  const auto insert = [&](filter_of_integers<TypeParam>& into, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) into.insert(key++);
  };
  keys_by_generation expected{};
  insert(earlier, 60);  // expires when the eighth generation after it begins
  epoch += 3;
  insert(earlier, expected[epoch % window_generations] = 40);
  epoch += 5;
  insert(later, expected[epoch % window_generations] = 20);

  later.merge(earlier);

  EXPECT_EQ(later.facts().keys, expected);
}

TEST(MergedSlidingWindows, ByKeysAreRefused) {
  any_filter a(complete({.layout = "sliding", .target_fpr = 0.01, .extra = window_of_keys(700)}));
  any_filter b(complete({.layout = "sliding", .target_fpr = 0.01, .extra = window_of_keys(700)}));

  EXPECT_ERROR(a.merge(b), errc::incompatible, "windows of keys cannot be merged");
  EXPECT_FALSE(a.compatible_with(b));
}

TEST(MergedSlidingWindows, CannotBeIntersectedOrFolded) {
  const params p = complete(
      {.layout = "sliding", .capacity = 700, .target_fpr = 0.01, .extra = window_of_time(std::chrono::seconds(1))});
  any_filter a(p), b(p);

  EXPECT_ERROR(a.intersect(b), errc::incompatible, "cannot be intersected");
  EXPECT_ERROR(estimated_keys(p, 5), errc::incompatible, "sliding-window filter do not determine");
  EXPECT_EQ(times_foldable(p), 0u);
}

}  // namespace
}  // namespace bloomery
