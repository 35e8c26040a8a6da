// The commands: what each needs, and the function that does it. main.cpp fills the options in; the deeds are one file
// each.
#pragma once

#include "input.hpp"
#include "temporary_file.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/params.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace bloomery::cli {

/// As grep: 0 something was found, 1 nothing was, 2 an error. Commands that do not search succeed with 0.
enum class exit_status : int { found = 0, nothing = 1, error = 2 };

/// What most commands share.
struct common_options {
  unsigned threads = 1;
  bool quiet = false;
  bool progress = true;
  bool json = false;
};

/// Parameters of a filter to be made; what is absent is derived.
struct making_options {
  std::optional<std::uint64_t> capacity;  ///< -n
  std::optional<double> rate;             ///< -p
  std::optional<std::uint64_t> bits;      ///< -m
  std::optional<std::uint64_t> probes;    ///< -k
  std::string layout;
  std::string scheme;
  std::string hash;
  key_kind keys = key_kind::bytes;
  std::uint64_t seed = 0;
  std::optional<preference> prefer;  ///< --prefer; speed if absent
};

struct plan_options {
  making_options wanted;
  bool table = false;
  bool json = false;
};

struct build_options {
  std::string filter;
  making_options wanted;
  std::string note;  ///< kept in the file as metadata
  input_options inputs;
  common_options common;
};

struct add_options {
  std::string filter;
  input_options inputs;
  common_options common;
};

struct check_options {
  std::string filter;
  bool invert = false;
  bool count = false;
  input_options inputs;
  common_options common;
};

struct dedup_options {
  making_options wanted;
  std::optional<double> max_loss;  ///< share of distinct lines that may be dropped wrongly
  std::string state;               ///< filter file that remembers from run to run
  std::string suspects;            ///< file for the lines the filter had, or seemed to have, seen
  bool exact = false;
  input_options inputs;
  common_options common;
};

struct info_options {
  std::string filter;  ///< empty with `build`
  bool check_pages = false;
  bool build = false;  ///< the program itself, instead of a filter
  bool json = false;
};

exit_status plan(const plan_options& options);
exit_status build(const build_options& options);
exit_status add(const add_options& options);
exit_status check(const check_options& options);
exit_status dedup(const dedup_options& options);
exit_status info(const info_options& options);
exit_status info_of_build(bool json);

// ---- what commands say alike
// -------------------------------------------------------------------------------------------

/// Somebody else's words, on one line and harmless to a terminal: control characters are shown as \x0A.
std::string printable(const std::string& text);

/// A line on stderr, printable: "bloomery: ...".
void say(const std::string& text);

/// A JSON object as one line. Names are anyone's bytes: what is no UTF-8 is shown as U+FFFD.
std::string json_line(const nlohmann::ordered_json& object);

/// Complains on stderr if the file was not closed cleanly.
void say_if_dirty(const std::string& path, const file_info& info);

/// Says that another process is writing and waits for it; throws if a signal ends the waiting.
void wait_for_writer(const std::string& path);

/// "split_block" or "scheme guava".
std::string kind_text(const params& p);

/// Name, size and promise: "100,000 keys at 1 %: 128 KiB (split_block, 10.5 bits a key)".
std::string size_text(const params& p);

/// The params asked for, with the capacity that was given or counted.
/// @throws error invalid_argument: contradictory options; too_large: no filter can be so large
params params_for(const making_options& wanted, std::uint64_t capacity, double default_rate);

/// Refuses numbers that no filter can have, and contradictions, before anything is read. @throws error invalid_argument
void check_promise(const making_options& wanted);

/// Copies all inputs, uncompressed, to a temporary file whose every line has its end. @throws interrupted, error
temporary_file spool_text(const input_options& inputs);

/// Refuses to write over an input, which would be lost. @throws error invalid_argument
void check_not_an_input(const std::string& path, const std::string& option, const input_options& inputs);

/// Refuses standard output that is an input or the filter's own file: it would be read back, or destroyed.
/// @throws error invalid_argument
void check_output(const input_options& inputs, const std::string& filter);

/// bloomery::distinct_keys for a filter of these params.
std::uint64_t distinct_keys(const params& p, std::uint64_t counted);

/// Keys wrongly taken for seen while a filter goes from `from` to `to` distinct keys.
double losses_between(const params& p, std::uint64_t from, std::uint64_t to);

/// Most keys for which the filter keeps `rate`; 0 if none.
std::uint64_t keys_within(const params& p, double rate);

}  // namespace bloomery::cli
