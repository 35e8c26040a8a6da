// Generations of a sliding-window filter: epochs, key counts, checks of a file's state, and merging.
#include <bloomery/detail/generations.hpp>

#include <bloomery/sizing.hpp>

#include "math/occupancy.hpp"
#include "registry/tables.hpp"
#include "registry/windows.hpp"

#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

namespace bloomery {
namespace {

void put(std::uint8_t* bytes, const window_state& s) noexcept { std::memcpy(bytes, &s, sizeof s); }

const layout_row& row_of(const params& p) {
  const layout_row* row = find_layout(p.layout);
  if (row == nullptr || row->window == nullptr) {
    throw error(errc::invalid_argument,
                {"this filter has no window", "layout", "sliding or sliding64", "'" + p.layout + p.scheme + "'", ""});
  }
  return *row;
}

void check_size(const params& p, std::span<const std::uint8_t> bytes) {
  row_of(p).check(p.geometry);
  if (bytes.size() == bytes_for(p.geometry.bits)) return;
  throw error(errc::invalid_argument, {"wrong number of bytes", "window", std::to_string(bytes_for(p.geometry.bits)),
                                       std::to_string(bytes.size()), ""});
}

window_length checked_length(const params& p) {
  check_window_length(p);
  return p.window();
}

// With more probes, computing rates takes long.
constexpr std::uint32_t most_probes_quickly = 64;

// Estimated distinct keys of the generations with these counts, which do not include keys that were false positives in
// their generation. While the FPR of a generation is below `from_rate`, its count is used unchanged.
keys_by_generation distinct_in_lanes(const window_calls& calls, const geometry& g, const keys_by_generation& counted,
                                     double from_rate) {
  if (g.probes > most_probes_quickly) return counted;
  keys_by_generation distinct = counted;
  const auto rate = [&](std::uint64_t keys) { return calls.rate_of(g, {&keys, 1}); };
  for (std::uint64_t& keys : distinct) {
    if (keys > 0 && rate(keys) >= from_rate) keys = estimate_distinct(keys, rate);
  }
  return distinct;
}

}  // namespace

std::uint64_t window_facts::keys_held() const noexcept {
  return std::accumulate(keys.begin(), keys.end(), std::uint64_t{0});
}

bool window_facts::has_overfull_generation() const noexcept {
  return keys_per_slice != 0 && *std::max_element(keys.begin(), keys.end()) > keys_per_slice;
}

generations::generations(const params& p, window_clock clock)
    : by_keys_(!p.window().by_time()), slice_(0), clock_(std::move(clock)) {
  row_of(p);
  slice_ = checked_length(p).slice_length();
}

std::uint64_t milliseconds_since_1970() noexcept {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count();
  return milliseconds > 0 ? static_cast<std::uint64_t>(milliseconds) : 0;
}

std::uint64_t generations::now() const {
  return clock_ ? std::min(clock_(), window_length::most) : milliseconds_since_1970();
}

void generations::refuse_insertions() {
  throw error(errc::too_large, {"the window has reached the maximum number of insertions", "window",
                                "at most 2^62 of them", "", hint::begin_empty});
}

void generations::begin_generation(std::uint8_t* bytes, const window_state& s, std::uint64_t epoch) noexcept {
  put(bytes, s.at(epoch));
  std::atomic_signal_fence(std::memory_order_seq_cst);  // stored before the first cell of the new generation is set
}

void generations::check(std::span<const std::uint8_t> bytes, bool settled, const std::string& path) const {
  const auto damaged = [&](const char* what, const std::string& expected, std::uint64_t found) {
    throw error(errc::damaged, {what, path, expected, std::to_string(found), hint::restore_file});
  };
  const window_state s = window_state::of(bytes.data());
  const bool zeros = std::all_of(bytes.begin() + sizeof s, bytes.begin() + window_state_bytes,
                                 [](std::uint8_t byte) { return byte == 0; });
  if (!zeros) damaged("reserved bytes of the window's state", "zeros", 1);
  if (s.newest > window_length::most / slice_) {
    damaged("newest generation of the window", "at most " + std::to_string(window_length::most / slice_), s.newest);
  }
  if (s.insertions > most_insertions) damaged("insertions of the window", "at most 2^62", s.insertions);
  if (!settled) return;
  std::uint64_t left = s.insertions;
  for (const std::uint64_t keys : s.keys) {
    if (keys > left) damaged("keys of the window's generations", "no more than were inserted", keys);
    left -= keys;
  }
  // A killed writer may have begun the next generation without inserting a key.
  if (!by_keys_ || s.newest == s.insertions / slice_) return;
  if (s.insertions > 0 && s.newest == (s.insertions - 1) / slice_) return;
  damaged("newest generation of the window", std::to_string(s.insertions / slice_) + ", for its insertions", s.newest);
}

std::uint64_t generations::unite(std::uint8_t* bytes, const std::uint8_t* other) const {
  if (by_keys_) {
    throw error(errc::incompatible, {"windows of keys cannot be merged", "", "windows of time", "a window of keys",
                                     hint::use_window_by_time});
  }
  const window_state a = window_state::of(bytes);
  const window_state b = window_state::of(other);
  check_insertions(a.insertions, b.insertions);
  const std::uint64_t epoch = std::max(a.newest, b.newest);
  window_state both = a.at(epoch);
  const window_state more = b.at(epoch);
  both.insertions += more.insertions;
  for (std::uint32_t lane = 0; lane < window_generations; ++lane) both.keys[lane] += more.keys[lane];
  put(bytes, both);
  return epoch;
}

void check_window_state(const params& p, std::span<const std::uint8_t> bytes, bool settled, const std::string& path) {
  check_size(p, bytes);
  generations(p).check(bytes, settled, path);
}

void merge_windows(const params& p, std::span<std::uint8_t> into, std::span<const std::uint8_t> from) {
  const layout_row& row = row_of(p);
  check_size(p, into);
  check_size(p, from);
  const std::uint64_t epoch = generations(p).unite(into.data(), from.data());
  row.window->unite(into.data(), from.data(), p.geometry, static_cast<std::uint32_t>(epoch));
}

namespace {

// Files of earlier versions are sized for a seventh of the capacity in each slice of time.
std::uint64_t keys_per_slice(const params& p, const window_calls& calls) {
  constexpr double rounding = 1 + 1e-9;
  const keys_by_generation fullest = fullest_generations(p.window(), p.capacity);
  const std::uint64_t seventh = p.capacity / window_slices + (p.capacity % window_slices != 0 ? 1 : 0);
  if (fullest[0] == seventh || p.geometry.probes > most_probes_quickly) return seventh;
  return calls.rate_of(p.geometry, fullest) <= p.target_fpr * rounding ? fullest[0] : seventh;
}

}  // namespace

window_facts facts_of_window(const params& p, std::span<const std::uint8_t> bytes, std::optional<std::uint64_t> epoch) {
  const layout_row& row = row_of(p);
  check_size(p, bytes);
  window_state s = window_state::of(bytes.data());
  s = s.at(epoch.value_or(s.newest));
  window_facts f;
  f.length = checked_length(p);
  f.slice = f.length.slice_length();
  f.keys_per_slice = keys_per_slice(p, *row.window);
  f.epoch = s.newest;
  f.insertions = s.insertions;
  f.keys = s.keys;
  // At an FPR of 1% about one key in a thousand is not counted, which is negligible compared to the FPR of a
  // generation.
  f.rate = row.window->rate_of(p.geometry, distinct_in_lanes(*row.window, p.geometry, s.keys, 0.01));
  return f;
}

window_cells measure_window_fill(const params& p, std::span<const std::uint8_t> bytes,
                                 std::optional<std::uint64_t> epoch) {
  const layout_row& row = row_of(p);
  check_size(p, bytes);
  const std::uint64_t at = epoch.value_or(window_state::of(bytes.data()).newest);
  return row.window->scan_cells(bytes.data(), p.geometry, static_cast<std::uint32_t>(at));
}

fill_check check_window_fill(const params& p, std::span<const std::uint8_t> bytes) {
  const layout_row& row = row_of(p);
  const window_cells cells = measure_window_fill(p, bytes);
  const keys_by_generation counted = window_state::of(bytes.data()).keys;
  const keys_by_generation distinct = distinct_in_lanes(*row.window, p.geometry, counted, 0);
  const occupancy lane = row.window->lane(p.geometry);
  fill_check result{0, {}, p.geometry.probes <= most_probes_quickly};
  double variance = 0;
  for (std::uint32_t i = 0; i < window_generations; ++i) {
    const auto keys = static_cast<double>(distinct[i]);
    const estimate expected = ones_of_keys(lane, keys);
    // Keys that were false positives in the generation are not counted; their number is random.
    const double lost = static_cast<double>(distinct[i] - std::min(distinct[i], counted[i]));
    const double of_a_key = ones_of_keys(lane, keys + 1).value - expected.value;
    result.ones += cells.ones[i];
    result.expected.value += expected.value;
    variance += expected.sigma * expected.sigma + of_a_key * of_a_key * lost;
    if (row.window->rate_of(p.geometry, {&distinct[i], 1}) > 0.5) result.conclusive = false;
  }
  result.expected.sigma = std::sqrt(variance);
  return result;
}

}  // namespace bloomery
