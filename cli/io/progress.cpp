#include "cli/io/progress.hpp"

#include "app/numbers.hpp"
#include "cli/text/color.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace bloomery::cli {

using namespace app;

namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

std::string time_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

}  // namespace

progress::progress(bool wanted, std::string verb)
    : enabled_(wanted && ::isatty(STDERR_FILENO) != 0),
      color_(wants_color(STDERR_FILENO)),
      verb_(std::move(verb)),
      start_(steady_clock::now()),
      last_(start_) {}

progress::~progress() { wipe(); }

bool progress::due() {
  if (!enabled_) return false;
  const auto now = steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return false;
  last_ = now;
  return true;
}

void progress::show(const progress_state& state) {
  const double seconds = duration<double>(last_ - start_).count();
  std::string line =
      state.counts_keys
          ? fmt::format("{}: {} keys, {}/s", verb_, count_text(state.keys),
                        count_text(static_cast<std::uint64_t>(static_cast<double>(state.keys) / seconds)))
          : fmt::format("{}: {} of {}", verb_, bytes_text(state.bytes_read), bytes_text(state.bytes_total));
  if (state.fill >= 0) line += fmt::format(", {:.0f}% full", state.fill * 100);
  if (state.rate_now >= 0) line += fmt::format(", current FPR {}", rate_text(state.rate_now));
  if (state.bytes_total > 0 && state.bytes_read > 0) {
    const double done = static_cast<double>(state.bytes_read) / static_cast<double>(state.bytes_total);
    constexpr int width = 20;
    const int filled = done >= 1 ? width : static_cast<int>(done * width);
    line += fmt::format("  [{}{}] {:.0f}%", std::string(static_cast<std::size_t>(filled), '#'),
                        std::string(static_cast<std::size_t>(width - filled), '.'), done * 100);
    if (done < 1) line += fmt::format(", {} left", time_text(seconds / done - seconds));
  }
  std::fputs((color_ ? "\r\x1B[K\x1B[36m" + line + "\x1B[0m" : "\r" + line).c_str(), stderr);
  if (!color_) std::fputs("    ", stderr);  // overwrites the end of a longer previous line
  std::fflush(stderr);
  shown_ = true;
}

void progress::wipe() {
  if (!shown_) return;
  std::fputs(color_ ? "\r\x1B[K" : "\n", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace bloomery::cli
