// The parts of dedup: the command and the pass with a filter (dedup.cpp), the choice of that filter (dedup_filter.cpp),
// exact dedup and pipes in memory (dedup_in_memory.cpp), exact dedup of inputs that do not fit in memory
// (dedup_on_disk.cpp), and reports (dedup_report.cpp).
//
// A false drop is a distinct line that is dropped because the filter has a false positive for it.
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
  std::optional<double> max_loss;  ///< maximum share of distinct lines that are false drops
  std::string state;               ///< the filter that remembers lines between runs
  std::string suspects;            ///< file for the lines that are not printed
  bool exact = false;
  std::optional<std::uint64_t>
      memory;  ///< --memory: bits of memory for lines in exact mode; absent: half of the free memory
  sharing_options sharing;
  server_options server;
  input_options inputs;
  common_options common;
};

/// How lines are remembered.
enum class dedup_mode {
  exact,   ///< their text is compared: no false drops
  hashes,  ///< by 70 bits of a hash: fewer than 0.01 expected false drops
  filter,  ///< in a filter of the target FPR
};

/// Exact for files, by hashes for pipes; a filter if its FPR, its layout, a window or a state is given.
dedup_mode mode_of(const dedup_options& options);

/// Result of a run, for the report.
struct dedup_result {
  dedup_mode mode = dedup_mode::filter;
  std::uint64_t lines_in = 0;
  std::uint64_t lines_out = 0;
  std::uint64_t uncertain_lines = 0;    ///< of these, lines that may have been printed twice: a connection was lost
  std::uint64_t rescued = 0;            ///< exact: false positives of the filter, which are kept
  std::optional<double> rate = 0;       ///< the filter's FPR at the end; empty: unknown, as are the false drops
  double expected_losses = 0;           ///< expected false drops; 0 if exact
  bool losses_are_at_most = false;      ///< expected_losses is a bound: other machines insert, too
  double stated_losses = 0;             ///< false drops expected at the start
  std::optional<double> max_loss = {};  ///< --max-loss
  bool overfull = false;                ///< a filter on servers, or a window, has more keys than its capacity
  bool finished = true;                 ///< false: a signal ended it early
  std::optional<error> failure = {};    ///< a failure of the filter after the last line, to be thrown after the report
  std::uint64_t bytes = 0;              ///< memory of a filter with layers
  std::uint64_t layers = 0;             ///< 0: the filter has no layers
};

/// The maximum of expected false drops if the command line gives no FPR.
inline constexpr double default_losses = 0.01;

/// The target FPR of a filter that grows, with this capacity, such that up to 5e8 keys have fewer than default_losses
/// expected false drops in total. Of it, capacity / 2^64 are collisions of hash64, which is all that a key log keeps.
double growing_target(std::uint64_t capacity);

/// Whether the target FPR of a filter that grows is as low as growing_target().
bool loses_few(const params& p);

/// The filter that remembers lines.
struct dedup_filter {
  std::unique_ptr<filter_handle> filter;
  std::string size = {};  ///< for messages: capacity, FPR and memory
};

/// Refuses contradictory options, and options that the kind of filter does not have, before any input is read.
/// @throws error invalid_argument
void check_dedup_filter(const dedup_options& options);

/// Opens or creates the filter of --state, or creates one in memory. Notes that an existing filter has other parameters
/// than the options.
/// @throws error  incompatible: the existing filter cannot remember lines, or contradicts the options; as creating and
///                opening filters
dedup_filter open_or_make(const dedup_options& options);

/// Reports the size and the expected false drops at the start. @param before  keys that the filter has already
void say_before(const dedup_options& options, const dedup_filter& made, std::uint64_t before);

/// The same for dedup_by_hash().
void say_before_hashing(const dedup_options& options);

/// If `lines` is not 0, warns that up to this number of lines may have been printed twice.
void warn_of_repeated_lines(std::uint64_t lines);

/// Reports the result. Returns exit_status::target_missed if there are more expected false drops than expected at the
/// start, or than --max-loss allows, or if lines may have been printed twice.
exit_status say_after(const dedup_options& options, const dedup_result& result);

/// Parameters that hash lines without a filter: hash, seed, secret and kind of keys.
params hashing_of(const dedup_options& options);

/// Keeps 70 bits of the hash of each distinct key: losses_by_hash(). @param suspects  may be null
/// @throws error, interrupted
dedup_result dedup_by_hash(const dedup_options& options, output& out, output* suspects);

/// The filter of exact mode, for options.wanted.capacity lines.
params params_of_exact(const dedup_options& options);

/// The maximum memory of dedup_in_memory() for lines of this size.
std::uint64_t memory_to_remember(const text_size& size);

/// Exact: keeps the texts of repeated keys in memory. Reads the input twice. @param filter  finds the keys that may be
/// repeated
dedup_result dedup_in_memory(const dedup_options& options, const params& filter, output& out, output* suspects);

/// Exact: compares repeated keys in temporary files. Reads the input three times. @param lines  of the input
dedup_result dedup_on_disk(const dedup_options& options, const params& filter, std::uint64_t lines, output& out,
                           output* suspects);

/// The error for an input whose number of lines changed between two passes.
error changed_input(std::uint64_t before, std::uint64_t now);

/// Exact: in memory if the lines may fit into options.memory, otherwise on disk.
dedup_result dedup_exactly(const dedup_options& options, output& out, output* suspects);

}  // namespace bloomery::cli
