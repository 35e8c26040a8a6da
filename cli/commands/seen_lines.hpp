// The set of lines that dedup has seen, in a filter of any kind.
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

/// Decides which lines are new and remembers them. A filter in a file never contains a line that was not printed:
///
///   in memory, on servers    A batch is inserted. Lines that are certainly new are printed, and lines whose state is
///                            unknown after a lost connection.
///   in a file                A batch is looked up in the filter and in an exact set of the lines that are printed but
///                            not yet inserted. Lines in neither are printed. Their keys are inserted after the output
///                            is written.
///   a window in a file       A copy in memory works as above. The file gets the same keys, including those of dropped
///                            lines, in the same order, after the output is written.
///
/// All keys of a batch are inserted with the time of the batch. If records have times, each key is inserted with the
/// time that a record_clock shows.
class seen_lines {
 public:
  /// @param in_file  the filter is in a file
  /// @param out      the output for new lines. It is flushed before their keys are inserted into a file, and synced if
  ///        it is a regular file
  /// @param clock    clock of a local window of time, read once per batch; default: the system clock
  seen_lines(std::unique_ptr<filter_handle> filter, bool in_file, output& out, window_clock clock = {});

  /// The filter that lines are prepared for and looked up in.
  filter_handle& filter() noexcept { return *filter_; }

  /// Sets is_new[i] of the batch to 1 if line i is certainly new, to maybe_new if that is unknown after a lost
  /// connection to a server or during a repair, and otherwise to 0. @throws error, as filter_handle::insert
  void take(key_batch& batch);

  /// To be called after the new lines of a batch are written: inserts the pending keys into the file if there are many.
  void written();

  /// Flushes the output and inserts all pending keys.
  void finish();

  /// Closes the filter: the last call. @throws error, as filter_handle::commit
  void close();

  /// Expected false drops, for local windows and filters in files: the sum of the FPR over all lookups.
  double expected_losses() const noexcept { return expected_losses_; }

  /// Number of lines with maybe_new, which another run may have printed.
  std::uint64_t uncertain_lines() const noexcept { return uncertain_lines_; }

  /// Records that were older than the window.
  std::uint64_t late_records() const noexcept { return record_clock_ ? record_clock_->late() : 0; }

 private:
  // The keys from pending_[first] on belong to the slice of this time.
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
  std::unique_ptr<filter_handle> file_;  // for a window in a file: filter_ is its copy in memory
  output& out_;
  window_clock clock_;
  std::uint64_t slice_ms_ = 0;  // length of a generation; 0: no local window of time
  std::uint64_t moment_ = 0;    // the time of the clock of filter_
  std::optional<record_clock> record_clock_;
  std::size_t keys_per_step_ = 0;      // for a local window: keys between two computations of the FPR; 0: none
  std::optional<hash_set> unwritten_;  // the set of pending_; for filters in files
  std::vector<key_hash> pending_;      // not yet in the file: printed, or for a window also dropped
  std::vector<slice_start> slices_;    // for a window in a file: the slices of the pending keys
  std::uint64_t pending_bytes_ = 0;    // bytes of their lines
  std::uint64_t uncertain_lines_ = 0;
  double fpr_ = 0;
  double expected_losses_ = 0;
};

}  // namespace bloomery::cli
