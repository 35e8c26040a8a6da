// The parts of dedup: making its filter (dedup_filter.cpp), one pass over the input (dedup.cpp), and the passes that
// compare suspects with earlier lines (dedup_exact.cpp).
#pragma once

#include "cli/commands/common.hpp"
#include "cli/commands/options.hpp"
#include "cli/io/output.hpp"

#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace bloomery::cli {

struct dedup_options {
  making_options wanted;
  std::optional<double> max_loss;  ///< share of distinct lines that may be dropped wrongly
  std::string state;               ///< filter file that remembers from run to run
  std::string suspects;            ///< file for the lines the filter had, or seemed to have, seen
  bool exact = false;
  sharing_options sharing;
  server_options server;
  input_options inputs;
  common_options common;
};

/// What was done, for the last message.
struct dedup_result {
  std::uint64_t lines_in = 0;
  std::uint64_t lines_out = 0;
  std::uint64_t rescued = 0;          ///< exact only: suspects that turned out to be first occurrences
  std::optional<double> rate = 0;     ///< the filter's FPR at the end; empty: unknown, and so are the losses
  double expected_losses = 0;         ///< distinct lines dropped wrongly; 0 if exact
  bool losses_are_at_most = false;    ///< expected_losses is a bound: other machines insert, too
  bool finished = true;               ///< false: a signal ended it early
  std::optional<error> failure = {};  ///< of the filter, after all lines: to be thrown after the report
  std::uint64_t bytes = 0;            ///< memory of a filter with layers
  std::uint64_t layers = 0;           ///< 0: it has none
};

/// The filter that remembers lines.
struct dedup_filter {
  std::unique_ptr<filter_handle> filter;
  std::string size = {};  ///< for messages: capacity, FPR and memory
};

/// Refuses options that do not fit together, or that no filter at this place can have, before anything is read.
/// @throws error invalid_argument
void check_dedup_filter(const dedup_options& options);

/// Opens the filter of --state, or makes it if there is none, or makes one in memory. Reports a filter that exists with
/// other parameters than the options ask for.
/// @throws error  incompatible: the filter that exists cannot remember lines, or not as the options ask; as making and
///                opening filters
dedup_filter open_or_make(const dedup_options& options);

/// Messages before the work: size and expected losses. @param before  keys that are in already
void say_before(const dedup_options& options, const dedup_filter& made, std::uint64_t before);

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

  /// Writes the run. The last line of an input may lack its end: `text_end` is where the text ends.
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

/// dedup --exact: loses no line and keeps the order, in several passes. @param suspects  may be null
/// @throws error, interrupted
dedup_result dedup_exactly(const dedup_options& options, output& out, output* suspects);

}  // namespace bloomery::cli
