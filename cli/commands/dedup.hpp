// The parts of dedup: the command and the pass with a filter (dedup.cpp), making that filter (dedup_filter.cpp), exact
// dedup and pipes in memory (dedup_in_memory.cpp), exact dedup of inputs that do not fit (dedup_on_disk.cpp), and what is
// reported (dedup_report.cpp).
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
  std::optional<std::uint64_t>
      memory;  ///< --memory: bits that exact mode may take for lines; absent: half of what is free
  sharing_options sharing;
  server_options server;
  input_options inputs;
  common_options common;
};

/// How lines are remembered.
enum class dedup_mode {
  exact,   ///< their text is compared: nothing is lost
  hashes,  ///< by 70 bits of a hash: fewer than 0.01 lines are expected to be lost
  filter,  ///< in a filter of the target FPR
};

/// Exact for files, by hashes for pipes; a filter if its FPR, its layout, a window or a state is asked for.
dedup_mode mode_of(const dedup_options& options);

/// What was done, for the last message.
struct dedup_result {
  dedup_mode mode = dedup_mode::filter;
  std::uint64_t lines_in = 0;
  std::uint64_t lines_out = 0;
  std::uint64_t uncertain_lines = 0;    ///< of these, lines that may have been printed before: a connection was lost
  std::uint64_t rescued = 0;            ///< exact: false positives of the filter, which are kept
  std::optional<double> rate = 0;       ///< the filter's FPR at the end; empty: unknown, and so are the losses
  double expected_losses = 0;           ///< distinct lines dropped wrongly; 0 if exact
  bool losses_are_at_most = false;      ///< expected_losses is a bound: other machines insert, too
  double stated_losses = 0;             ///< as many as were expected before the work
  std::optional<double> max_loss = {};  ///< --max-loss
  bool overfull = false;                ///< a filter on servers, or a window, that holds more than it was made for
  bool finished = true;                 ///< false: a signal ended it early
  std::optional<error> failure = {};    ///< of the filter, after all lines: to be thrown after the report
  std::uint64_t bytes = 0;              ///< memory of a filter with layers
  std::uint64_t layers = 0;             ///< 0: it has none
};

/// Distinct lines that are expected to be lost at most if the command line names no rate.
inline constexpr double default_losses = 0.01;

/// The target FPR at which a filter that grows loses fewer than default_losses keys up to 5e8 keys, if each larger one
/// has the target of its own capacity. hash64 alone, which a key log keeps, makes capacity / 2^64 of it.
double growing_target(std::uint64_t capacity);

/// Whether the target FPR of a filter that grows is as low as growing_target().
bool loses_few(const params& p);

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

/// Reports size and expected losses before the work. @param before  keys that are in already
void say_before(const dedup_options& options, const dedup_filter& made, std::uint64_t before);

/// The same for dedup_by_hash().
void say_before_hashing(const dedup_options& options);

/// If `lines` is not 0, warns that up to this number of lines may have been printed twice.
void warn_of_repeated_lines(std::uint64_t lines);

/// Reports what was done. Returns exit_status::target_missed if more lines are expected to be lost than was said before or than
/// --max-loss allows, or if lines may have been printed twice.
exit_status say_after(const dedup_options& options, const dedup_result& result);

/// What hashes lines without a filter: hash, seed, secret and kind of keys.
params hashing_of(const dedup_options& options);

/// Keeps 70 bits of the hash of each distinct key: losses_by_hash(). @param suspects  may be null
/// @throws error, interrupted
dedup_result dedup_by_hash(const dedup_options& options, output& out, output* suspects);

/// The filter of exact mode, for options.wanted.capacity lines.
params params_of_exact(const dedup_options& options);

/// Memory that dedup_in_memory() takes at most for lines of this size.
std::uint64_t memory_to_remember(const text_size& size);

/// Loses no line: the texts of repeated keys are in memory. Reads the input twice. @param filter  finds the keys that may
/// be repeated
dedup_result dedup_in_memory(const dedup_options& options, const params& filter, output& out, output* suspects);

/// Loses no line: repeated keys are compared in temporary files. Reads the input three times. @param lines  of the input
dedup_result dedup_on_disk(const dedup_options& options, const params& filter, std::uint64_t lines, output& out,
                           output* suspects);

/// The error if an input that is read several times has another number of lines than before.
error changed_input(std::uint64_t before, std::uint64_t now);

/// Loses no line: in memory if all may fit into options.memory, else on disk.
dedup_result dedup_exactly(const dedup_options& options, output& out, output* suspects);

}  // namespace bloomery::cli
