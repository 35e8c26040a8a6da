// dedup within a window of time, with a state file: what the file remembers is what the memory remembers, whenever the
// lines are written.
#include "cli/commands/window.hpp"

#include "support/files.hpp"

#include <bloomery/any_filter.hpp>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bloomery::cli {
namespace {

using bloomery_tests::scratch_folder;

constexpr std::uint64_t part = 1000;  // milliseconds of a generation
constexpr std::uint64_t start = 1'700'000'000'000;

class WindowDedup : public ::testing::Test {
 protected:
  WindowDedup() : fd_(::open("/dev/null", O_WRONLY | O_CLOEXEC)), out_(fd_, "nowhere") {}
  ~WindowDedup() override { ::close(fd_); }

  params wanted(std::uint64_t milliseconds, std::uint64_t of_keys) const {
    return complete({.layout = "sliding",
                     .capacity = 70'000,
                     .target_fpr = 1e-6,
                     .window_keys = of_keys,
                     .window_milliseconds = milliseconds});
  }

  window_dedup make(const params& p, window_clock clock) {
    return window_dedup(any_filter(p), any_filter::create(path(), p), out_, std::move(clock));
  }

  // The lines first .. first + count - 1, a number each. Returns how many were kept.
  int take(window_dedup& dedup, int first, int count) {
    std::vector<std::string> lines;
    for (int i = 0; i < count; ++i) lines.push_back(std::to_string(first + i));
    key_batch batch;
    batch.lines.assign(lines.begin(), lines.end());
    batch.hashes.resize(lines.size());
    dedup.filter().hash(batch.lines, batch.hashes);
    int kept = 0;
    dedup.take(
        batch, [&](std::string_view) { ++kept; }, [](std::string_view) {});
    dedup.commit(out_);
    return kept;
  }

  std::string path() const { return folder_ / "state.bloom"; }

  scratch_folder folder_;
  int fd_;
  output out_;
};

TEST_F(WindowDedup, FileHasLinesInTheGenerationInWhichTheyCame) {
  std::uint64_t now = start;
  window_dedup dedup = make(wanted(7 * part, 0), [&] { return now; });
  for (int turn = 0; turn < 5; ++turn, now += part + 200) EXPECT_EQ(take(dedup, 100 * turn, 100), 100);
  now -= 5 * part;  // it stands still for the filter
  EXPECT_EQ(take(dedup, 450, 100), 50);

  now = start + 6 * part;
  EXPECT_EQ(take(dedup, 0, 1), 0);
  dedup.finish(out_);

  any_filter file = any_filter::load(path());
  EXPECT_TRUE(std::ranges::equal(file.bytes(), dedup.filter().bytes()));
  file.set_clock(
      [] { return start + 8 * part; });  // the lines of the start have run out, but for that which came again
  EXPECT_TRUE(file.may_contain("0"));
  EXPECT_FALSE(file.may_contain("1"));
  EXPECT_TRUE(file.may_contain("101"));
}

TEST_F(WindowDedup, ABatchHasOneMoment) {
  std::uint64_t now = start;
  window_dedup dedup = make(wanted(7 * part, 0), [&] { return now += part; });

  for (int turn = 0; turn < 4; ++turn) EXPECT_EQ(take(dedup, 10'000 * turn, 3000), 3000);
  dedup.finish(out_);

  const any_filter file = any_filter::load(path());
  EXPECT_TRUE(std::ranges::equal(file.bytes(), dedup.filter().bytes()));
  const auto held = window_state::of(file.bytes().data()).keys;
  EXPECT_EQ(std::count_if(held.begin(), held.end(), [](std::uint64_t keys) { return keys > 2900; }), 4);
}

TEST_F(WindowDedup, OfKeysAsksForNoTime) {
  window_dedup dedup = make(wanted(0, 700), []() -> std::uint64_t {
    ADD_FAILURE() << "the clock was asked";
    return 0;
  });
  EXPECT_EQ(take(dedup, 0, 3000), 3000);
  EXPECT_EQ(take(dedup, 2500, 500), 0);
  dedup.finish(out_);

  EXPECT_TRUE(std::ranges::equal(any_filter::load(path()).bytes(), dedup.filter().bytes()));
}

}  // namespace
}  // namespace bloomery::cli
