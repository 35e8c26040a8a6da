// seen_lines: a filter in a file never holds a line that the output lacks, and holds every line once the output has it.
// A window in a file gives the same answers as its copy in memory, whenever the lines are written.
#include "cli/commands/seen_lines.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/rebuilding_filter.hpp>

#include "support/test.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <set>

namespace bloomery::cli {
namespace {

using namespace bloomery_tests;

constexpr std::uint64_t slice = 1000;  // milliseconds of a generation
constexpr std::uint64_t start = 1'700'000'000'000;

class SeenLines : public ::testing::Test {
 protected:
  SeenLines() : fd_(::open("/dev/null", O_WRONLY | O_CLOEXEC)), out_(fd_, "nowhere") {}
  ~SeenLines() override { ::close(fd_); }

  // The new ones of the lines first .. first + count - 1, a number each.
  std::vector<std::string> take(seen_lines& seen, int first, int count) {
    std::vector<std::string> lines;
    for (int i = 0; i < count; ++i) lines.push_back(std::to_string(first + i));
    return take(seen, lines);
  }

  std::vector<std::string> take(seen_lines& seen, const std::vector<std::string>& lines) {
    key_batch batch;
    batch.lines.assign(lines.begin(), lines.end());
    batch.keys = batch.lines;
    batch.prepared = seen.filter().prepare(batch.keys, batch.hashes);
    seen.take(batch);
    std::vector<std::string> kept;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (batch.is_new[i] != 0) kept.push_back(lines[i]);
    }
    seen.written();
    return kept;
  }

  std::string path() const { return folder_ / "state.bloom"; }

  scratch_folder folder_;
  int fd_;
  output out_;
};

// ---- every kind of filter -------------------------------------------------------------------------------------------

TEST_F(SeenLines, EveryKindKeepsTheFirstOccurrencesInOrder) {
  const params p = complete({.capacity = 10'000, .target_fpr = 1e-9});
  const params window =
      complete({.layout = "sliding", .capacity = 70'000, .target_fpr = 1e-9, .extra = window_of_keys(70'000)});
  const auto file = [&](const params& of, const std::string& name) {
    return make_handle(any_filter::create(folder_ / name, of));
  };
  struct kind {
    const char* name;
    std::unique_ptr<filter_handle> filter;
    bool in_file;
  };
  std::vector<kind> kinds;
  kinds.push_back({"memory", make_handle(any_filter(p)), false});
  kinds.push_back({"layers", make_scalable_handle({.target_fpr = 1e-9}), false});
  kinds.push_back({"window", make_handle(any_filter(window)), false});
  kinds.push_back({"file", file(p, "plain"), true});
  kinds.push_back({"window in a file", file(window, "window"), true});
  kinds.push_back(
      {"log", make_handle(rebuilding_filter::create(folder_ / "log", {.target_fpr = 1e-9}), folder_ / "log"), true});
  std::vector<std::string> lines;
  for (int i = 0; i < 5000; ++i) lines.push_back(std::to_string(i * i % 3001));
  std::vector<std::string> expected;
  std::set<std::string> known;
  std::copy_if(lines.begin(), lines.end(), std::back_inserter(expected),
               [&](const std::string& line) { return known.insert(line).second; });

  for (kind& k : kinds) {
    seen_lines seen(std::move(k.filter), k.in_file, out_);
    std::vector<std::string> kept;
    for (std::size_t first = 0; first < lines.size(); first += 1000) {
      const auto more =
          take(seen, {lines.begin() + static_cast<long>(first), lines.begin() + static_cast<long>(first) + 1000});
      kept.insert(kept.end(), more.begin(), more.end());
    }
    seen.finish();
    seen.close();

    EXPECT_EQ(kept, expected) << k.name;
  }
}

TEST_F(SeenLines, FileHasNoLineBeforeTheOutputHasIt) {
  const auto written = std::to_string(::getpid()) + ".out";
  const int fd = ::open((folder_ / written).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  output out(fd, written);
  seen_lines seen(make_handle(any_filter::create(path(), complete({.capacity = 1'000'000, .target_fpr = 1e-9}))), true,
                  out);
  const auto length = [&] { return ::lseek(fd, 0, SEEK_END); };

  EXPECT_EQ(take(seen, 0, 10).size(), 10u);
  out.write("ten lines\n");
  EXPECT_FALSE(seen.filter().contains("5"));
  EXPECT_EQ(length(), 0);
  EXPECT_EQ(take(seen, 0, 10).size(), 0u);
  seen.finish();

  EXPECT_TRUE(seen.filter().contains("5"));
  EXPECT_EQ(length(), 10);
  seen.close();
  ::close(fd);
  EXPECT_EQ(any_filter::open(path()).insert_count(), 10u);
}

TEST_F(SeenLines, ManyWaitingLinesAreWrittenDownWithoutBeingAsked) {
  constexpr int batch = 50'000;
  seen_lines seen(make_handle(any_filter::create(path(), complete({.capacity = 1'000'000, .target_fpr = 1e-9}))), true,
                  out_);
  int batches = 0;

  while (!seen.filter().contains("0") && batches < 20) take(seen, batch * batches++, batch);

  EXPECT_EQ(batches, 6);  // 262,144 lines wait at most
  EXPECT_EQ(take(seen, 0, batch * batches).size(), 0u);
}

TEST_F(SeenLines, ExpectedLossesOfAFileMatchActualLosses) {
  constexpr int keys = 900'000;
  seen_lines seen(make_handle(any_filter::create(path(), complete({.capacity = 600'000, .target_fpr = 0.05}))), true,
                  out_);
  std::size_t kept = 0;

  for (int first = 0; first < keys; first += 45'000) kept += take(seen, first, 45'000).size();
  seen.finish();

  const double lost = keys - static_cast<double>(kept);
  EXPECT_GT(lost, 5000);
  EXPECT_NEAR(lost / seen.expected_losses(), 1, 0.05);
}

// ---- sliding windows in a file --------------------------------------------------------------------------------------

class WindowInFile : public SeenLines {
 protected:
  params wanted(window_length length) const {
    return complete({.layout = "sliding", .capacity = 70'000, .target_fpr = 1e-6, .extra = length});
  }

  seen_lines make(const params& p, window_clock clock) {
    return seen_lines(make_handle(any_filter::create(path(), p)), true, out_, std::move(clock));
  }

  // Closes the filter. The bits of its copy in memory, as they were before.
  std::vector<std::uint8_t> end(seen_lines& seen) {
    seen.finish();
    const std::span<const std::uint8_t> bits = seen.filter().local()->bytes();
    seen.close();
    return {bits.begin(), bits.end()};
  }
};

TEST_F(WindowInFile, FileHasLinesInTheGenerationInWhichTheyCame) {
  std::uint64_t now = start;
  seen_lines seen = make(wanted(window_of_milliseconds(7 * slice)), [&] { return now; });
  for (int turn = 0; turn < 5; ++turn, now += slice + 200) EXPECT_EQ(take(seen, 100 * turn, 100).size(), 100u);
  now -= 5 * slice;  // it stands still for the filter
  EXPECT_EQ(take(seen, 450, 100).size(), 50u);

  now = start + 6 * slice;
  EXPECT_EQ(take(seen, 0, 1).size(), 0u);
  const std::vector<std::uint8_t> bits = end(seen);

  any_filter file = any_filter::load(path());
  EXPECT_TRUE(std::ranges::equal(file.bytes(), bits));
  file.set_clock(
      [] { return start + 8 * slice; });  // the lines of the start have expired, except the one that came again
  EXPECT_TRUE(file.may_contain("0"));
  EXPECT_FALSE(file.may_contain("1"));
  EXPECT_TRUE(file.may_contain("101"));
}

TEST_F(WindowInFile, ABatchHasOneMoment) {
  std::uint64_t now = start;
  seen_lines seen = make(wanted(window_of_milliseconds(7 * slice)), [&] { return now += slice; });

  for (int turn = 0; turn < 4; ++turn) EXPECT_EQ(take(seen, 10'000 * turn, 3000).size(), 3000u);
  const std::vector<std::uint8_t> bits = end(seen);

  const any_filter file = any_filter::load(path());
  EXPECT_TRUE(std::ranges::equal(file.bytes(), bits));
  const auto held = window_state::of(file.bytes().data()).keys;
  EXPECT_EQ(std::count_if(held.begin(), held.end(), [](std::uint64_t keys) { return keys > 2900; }), 4);
}

TEST_F(WindowInFile, OfKeysAsksForNoTime) {
  seen_lines seen = make(wanted(window_of_keys(700)), []() -> std::uint64_t {
    ADD_FAILURE() << "the clock was asked";
    return 0;
  });
  EXPECT_EQ(take(seen, 0, 3000).size(), 3000u);
  EXPECT_EQ(take(seen, 2500, 500).size(), 0u);
  const std::vector<std::uint8_t> bits = end(seen);

  EXPECT_TRUE(std::ranges::equal(any_filter::load(path()).bytes(), bits));
}

}  // namespace
}  // namespace bloomery::cli
