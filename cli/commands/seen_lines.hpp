// The lines that dedup has seen, remembered in a filter of any kind.
#pragma once

#include "cli/commands/record_clock.hpp"
#include "cli/io/hash_set.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/output.hpp"

#include <bloomery/detail/generations.hpp>
#include <bloomery/filter_handle.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace bloomery::cli {

/// Decides which lines are new and remembers them. A filter in a file never holds a line that the output lacks:
///
///   in memory, on servers    A batch is inserted. The lines that were certainly new are printed, and those of which a lost
///                            connection left that open.
///   in a file                A batch is looked up, in the filter and in an exact set of the lines that are printed but
///                            not yet inserted. Lines that are in neither are printed; their keys are inserted once the
///                            output has them.
///   a window in a file       A copy in memory works as above. The file gets the same keys, those of dropped lines too,
///                            in the same order once the output has the lines.
///
/// A sliding window by time takes all keys of a batch at one moment: when the batch came. If records have times, it
/// takes each key at the moment that a record_clock shows.
class seen_lines {
 public:
  /// @param in_file  the filter is in a file
  /// @param out      where new lines go. Before a file gets their keys, it is flushed, and synced if it is a regular
  ///        file
  /// @param clock    of a local window by time, read once per batch; the system's if empty
  seen_lines(std::unique_ptr<filter_handle> filter, bool in_file, output& out, window_clock clock = {});

  /// The filter that lines are prepared for and looked up in.
  filter_handle& filter() noexcept { return *filter_; }

  /// is_new[i] of the batch becomes 1 if line i is certainly new, maybe_new if that is unknown after a lost connection to
  /// a server or during a repair, else 0. @throws error, as filter_handle::insert
  void take(key_batch& batch);

  /// After the new lines of a batch went to the output: inserts the waiting keys into the file if they are many.
  void written();

  /// Flushes the output and inserts all waiting keys.
  void finish();

  /// Closes the filter: the last call. @throws error, as filter_handle::commit
  void close();

  /// New lines that were expected to be dropped wrongly, for local windows and filters in files: the sum over all
  /// lookups of the FPR at that moment.
  double expected_losses() const noexcept { return expected_losses_; }

  /// Lines of which it is unknown whether another run has printed them: maybe_new.
  std::uint64_t uncertain_lines() const noexcept { return uncertain_lines_; }

  /// Records that were older than the window.
  std::uint64_t late_records() const noexcept { return record_clock_ ? record_clock_->late() : 0; }

 private:
  // From pending_[first] on keys came in the slice of this moment.
  struct slice_start {
    std::size_t first;
    std::uint64_t moment;
  };

  bool waits_for_output() const noexcept { return unwritten_.has_value() || file_ != nullptr; }
  void come_to(std::uint64_t now);
  void insert(key_batch& batch, std::size_t from, std::size_t keys);
  void look_up(key_batch& batch);
  void write_down();
  void add_losses(std::uint64_t kept, double fpr);
  double fpr_now() { return filter_->summary().fpr.value_or(0); }

  std::unique_ptr<filter_handle> filter_;
  std::unique_ptr<filter_handle> file_;  // of a window in a file: filter_ is its copy in memory
  output& out_;
  window_clock clock_;
  std::uint64_t slice_ms_ = 0;  // length of a generation; 0: no local window by time
  std::uint64_t moment_ = 0;    // what the clock of filter_ shows
  std::optional<record_clock> record_clock_;
  std::size_t keys_per_step_ = 0;      // of a local window: from one look at the FPR to the next; 0: no look
  std::optional<hash_set> unwritten_;  // pending_ as a set; for filters that are looked up before lines are inserted
  std::vector<key_hash> pending_;      // printed, or dropped in a window, and not yet in the file
  std::vector<slice_start> slices_;    // of a window in a file: of the pending keys
  std::uint64_t pending_bytes_ = 0;    // of their lines
  std::uint64_t uncertain_lines_ = 0;
  double fpr_ = 0;
  double expected_losses_ = 0;
};

}  // namespace bloomery::cli
