// What the two ways of dedup share: dedup.cpp in one pass, dedup_exact.cpp with a second look at every suspect.
#pragma once

#include "cli/commands/commands.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/output.hpp"

#include <bloomery/any_filter.hpp>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace bloomery::cli {

/// What was done, for the last word.
struct dedup_result {
  std::uint64_t lines_in = 0;
  std::uint64_t lines_out = 0;
  std::uint64_t rescued = 0;        ///< exact only: suspects that turned out to be first occurrences
  double rate = 0;                  ///< the filter's error rate at the end
  double expected_losses = 0;       ///< distinct lines dropped wrongly, by the exact formula; 0 if exact
  bool losses_are_at_most = false;  ///< expected_losses is a bound: a state that others fill, too
  bool finished = true;             ///< false: a signal ended it early
  std::uint64_t bytes = 0;          ///< growing only: memory of the filter
  std::uint64_t layers = 0;         ///< growing only
};

/// Joins neighbouring lines of a chunk, ends included, so that long runs are written as one piece.
class line_writer {
 public:
  line_writer(output& to, char line_end) : to_(to), end_(line_end) {}

  void add(std::string_view line) {
    if (run_.data() + run_.size() == line.data()) {
      run_ = {run_.data(), run_.size() + line.size() + 1};
    } else {
      finish();
      run_ = {line.data(), line.size() + 1};
    }
  }

  /// Writes the run. The byte after the last line of an input may not be there: `text_end` is where the text ends.
  void finish(const char* text_end = nullptr) {
    if (run_.empty()) return;
    if (text_end != nullptr && run_.data() + run_.size() > text_end) {
      to_.write(run_.substr(0, run_.size() - 1));
      to_.write({&end_, 1});
    } else {
      to_.write(run_);
    }
    run_ = {};
  }

 private:
  output& to_;
  char end_;
  std::string_view run_;
};

/// Ends the last line of a file that is appended to (>>), after a run that was killed inside it: without an end the
/// next line would be glued to it. With --state only: else nothing is gone on with.
void end_torn_line(output& out, char line_end);

/// Whether a filter is asked for that is not the one that is there.
bool asks_for_another(const dedup_options& options, const params& p);

/// Whether the filter grows: --grow, or a pipe and no -n. With --state it is another matter.
bool dedup_grows(const dedup_options& options);

/// One pass in memory with a filter that grows. @throws error, interrupted
dedup_result dedup_growing(const dedup_options& options, output& out, output* suspects);

/// Disk that a candidate takes beside its key's own bytes.
inline constexpr std::uint64_t exact_bytes_a_line = 16;

/// Loses nothing, keeps the order. @throws error, interrupted
dedup_result dedup_exactly(const dedup_options& options, const params& p, const input_options& inputs,
                           std::uint64_t lines, output& out, output* suspects);

}  // namespace bloomery::cli
