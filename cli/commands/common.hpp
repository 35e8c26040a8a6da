// Helpers that several commands share: texts of names, sizes and rates, checks of options, secret keys.
#pragma once

#include "cli/commands/options.hpp"
#include "cli/io/temporary_file.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/params.hpp>
#include <bloomery/secret.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace bloomery::cli {

/// Refuses to write a filter on a file system without locks, before the input is read; with --no-lock it warns once.
/// Does nothing for an address. @throws error io
void check_locks(const std::string& path);

/// Untrusted text on one line, safe for a terminal: control characters are shown as \x0A.
std::string printable(const std::string& text);

/// The number of salts and the first two: "7 drawn: 0.4300, 0.8141, ..."; a salt that is not UTF-8 is in Base64.
std::string salts_text(std::span<const std::string> salts);

/// The target FPR of a filter if no option states one.
inline constexpr double default_fpr = 0.01;

/// The text in JSON: null if it is empty.
nlohmann::ordered_json text_or_null(const std::string& text);

/// The salts in JSON: null without salts; a salt that is not UTF-8 is {"base64": ...}.
nlohmann::ordered_json salts_json(std::span<const std::string> salts);

/// Prints "bloomery: TEXT" on stderr, with control characters escaped and passwords removed. On a terminal "warning:"
/// is colored.
void say(const std::string& text);

/// The same with "bloomery:" in the color of errors.
void say_error(const std::string& text);

/// A JSON object as one line. File names may be any bytes: invalid UTF-8 becomes U+FFFD.
std::string json_line(const nlohmann::ordered_json& object);

/// Notes on stderr that the file was not closed cleanly, if so.
void say_if_dirty(const std::string& path, const file_info& info);

/// Reports once that another process is writing to the file; throws if a signal ends the wait.
void wait_for_writer(const std::string& path);

/// The key in a key file; none if the name is empty. Warns once if other users can read the file. Each file is read
/// once, because it may be a pipe. @throws error as read_secret
std::optional<secret_key> secret_of(const std::string& keyfile);

/// any_filter::open, with the key in `keyfile` if that is not empty.
any_filter open_filter(const std::string& path, const std::string& keyfile, access mode = access::read_only,
                       file_check what = file_check::automatic, const callback<void(const std::string&)>& waiting = {});

/// "split_block" or "scheme guava".
std::string kind_text(const params& p);

/// Capacity, target FPR and size: "capacity 100,000 keys at 1%: 128 KiB (split_block, 10.5 bits per key)".
std::string size_text(const params& p);

/// How exact the current FPR is, to be put behind it: "", ", within 20%" or ", within a factor of 2".
std::string uncertainty_text(const fill_facts& fill);

/// The requested parameters, with the given or counted capacity.
/// @throws error invalid_argument: contradictory options; too_large: no filter can be so large
params params_for(const making_options& wanted, std::uint64_t capacity, double default_rate);

/// Refuses invalid numbers, contradictory options and a key file without a key, before any input is read.
/// @throws error invalid_argument; as read_secret
void check_target_fpr(const making_options& wanted);

/// Copies all inputs, uncompressed, to a temporary file whose every line has its end. @throws interrupted, error
temporary_file spool_text(const input_options& inputs);

/// Refuses to write over an input, which would be lost. @throws error invalid_argument
void check_not_an_input(const std::string& path, const std::string& option, const input_options& inputs);

/// Refuses to write over the file of a secret key, which would be lost. @throws error invalid_argument
void check_not_the_key(const std::string& path, const std::string& option, const std::string& keyfile);

/// The filter in the file that a command is about to replace; none if the file is missing, empty or a device.
/// @throws error already_exists: a file that is not a filter: a key, a list
std::optional<file_info> replaced_filter(const std::string& path, const std::string& option);

/// As replaced_filter(); also refuses to replace a filter whose log would be left alone.
/// @return  the file's version, for create_options::expected: a command that takes long keeps changes made meanwhile
/// @throws  error already_exists
file_version check_replaceable(const std::string& path, const std::string& option);

/// Refuses counting, sliding-window and static filters: "overlap is not possible for counting filters". @throws error
/// incompatible
/// @param what  "overlap"
void refuse_unless_plain(const params& p, const std::string& path, const std::string& what, const char* hint);

/// Refuses standard output that is an input or the file of the filter: it would be read back or destroyed.
/// @throws error invalid_argument
void check_output(const input_options& inputs, const std::string& filter);

/// Refuses two filters that cannot be combined bit by bit: names the field and both values. @throws error incompatible
void check_compatible(const std::string& path_a, const params& a, const std::string& path_b, const params& b);

/// A number, or null where JSON has none: infinity.
nlohmann::ordered_json number_or_null(double value);

/// The same for a number that may be missing.
template <class Number>
nlohmann::ordered_json number_or_null(const std::optional<Number>& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json(nullptr);
}

/// "30,035 +- 114 keys", at two standard deviations; "30,035 keys" for an exact number.
std::string keys_text(const estimate& keys, const std::string& noun);

/// The error of a filter in memory, with the name of its file if it names nothing.
error in_filter(const error& e, const std::string& name);

/// The distance of the set bits from the number expected for the key count: "by 7.2 standard deviations".
std::string distance_text(const fill_check& count);

/// "1% (0.9% to 1.1%): 99 of 10,000 absent keys", with the 95% interval; and the same as JSON.
std::string rate_with_interval(const measured_rate& m);

/// Throws too_large if the disk of `path` has fewer free bytes, before the input is read.
void check_room(const std::string& path, std::uint64_t bytes);

/// The number of queries for the filter of a scheme, which hashes a key once per probe: `usual`, or fewer if it has
/// many probes.
std::uint64_t queries_of_scheme(const params& p, std::uint64_t usual);
nlohmann::ordered_json json_of(const measured_rate& m);

/// The count to store for a filter with this estimated number of distinct keys: expected_insertions().
std::uint64_t counted_of_estimate(const params& p, double keys);

/// Expected false positives among new keys while a filter grows from `from` to `to` distinct keys.
double losses_between(const params& p, std::uint64_t from, std::uint64_t to);

}  // namespace bloomery::cli
