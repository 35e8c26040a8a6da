// The clock of a sliding window that follows the times in records, so that a log of a week fills a window as it would
// have during that week.
#pragma once

#include "cli/commands/options.hpp"
#include "cli/io/key_batch.hpp"

#include <bloomery/filter_handle.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace bloomery::cli {

/// The latest time so far, starting with the newest generation of the filter. It never goes back: a record with an
/// older time belongs to the current slice. A record that is older than the window counts as late.
class record_clock {
 public:
  /// @param filter  a local filter with a window of time; its clock is set to its newest generation
  explicit record_clock(filter_handle& filter);

  /// Splits records into runs of one slice: each(first, count, now) for each run, where `now` is the time of its latest
  /// record.
  template <class Each>
  void each_run(std::span<const std::uint64_t> times, Each each) {
    std::size_t first = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (times[i] <= now_) {
        if (now_ - times[i] > window_) ++late_;
        continue;
      }
      if (i > first && times[i] / slice_ != now_ / slice_) {
        each(first, i - first, now_);
        first = i;
      }
      now_ = times[i];
    }
    if (first < times.size()) each(first, times.size() - first, now_);
  }

  std::uint64_t late() const noexcept { return late_; }

 private:
  std::uint64_t window_;  // milliseconds, as all times
  std::uint64_t slice_;
  std::uint64_t now_;
  std::uint64_t late_ = 0;
};

/// Inserts keys; keys of records with times are inserted at these times.
class timed_insertion {
 public:
  /// @param inputs  its notes count the late records
  timed_insertion(filter_handle& filter, const input_options& inputs);

  change_result insert(key_batch& batch);

 private:
  filter_handle& filter_;
  input_notes& notes_;
  std::optional<record_clock> clock_;  // absent: records have no times
};

/// Refuses --time-field for filters on servers, and together with --now. @param name  of the filter; may be empty
/// @throws error invalid_argument
void check_times(const input_options& inputs, const std::string& name, const std::optional<std::uint64_t>& now);

/// Refuses --time-field for a filter without a window of time. @throws error invalid_argument
void check_times(const input_options& inputs, const params& p);

}  // namespace bloomery::cli
