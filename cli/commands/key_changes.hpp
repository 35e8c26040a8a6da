// Keys of the input inserted into or removed from a filter, whatever its kind: how far it came, and how that is
// reported.
#pragma once

#include "cli/commands/common.hpp"
#include "cli/io/key_batch.hpp"

#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace bloomery::cli {

/// What became of the keys that were to be inserted or removed.
struct keys_done {
  std::uint64_t keys = 0;             ///< whose call has returned
  std::uint64_t changed = 0;          ///< of these: they were new, or are removed
  std::uint64_t undecided = 0;        ///< of the call that failed: done or not, which cannot be known
  bool finished = true;               ///< all of the input was taken
  std::optional<error> failure = {};  ///< what ended it, with the numbers; to be thrown when the result is printed
};

/// Changes a filter by the keys of all inputs.
/// @param verb    "add" or "remove"
/// @param change  takes the prepared keys of a batch
/// @param after   called after each batch
keys_done change_keys(filter_handle& filter, const input_options& inputs, const common_options& common,
                      const std::string& verb, const std::function<change_result(key_batch& batch)>& change,
                      const std::function<void()>& after);

/// The summary after the work, unless that has failed or was not finished by a filter that commits as a whole. If a
/// filter could not grow, that is a failure. A server that does not tell is a warning, and the work a success; but a
/// filter that is gone, or a part of it, is a failure, for the keys may have been in it.
filter_summary summary_after(keys_done& done, const std::string& name, filter_handle& filter);

/// Commits the changes. If the work has failed before, a failure of the commit is a warning, and the first failure is
/// the one to be thrown. @throws error  as filter_handle::commit
void commit(const keys_done& done, filter_handle& filter);

/// What was to be counted after the work could not be: as summary_after() says.
void count_failed(keys_done& done, const std::string& name, const error& why);

/// The JSON object that add and remove have in common.
/// @param changed  the name of the number of changed keys: "new", "removed"
nlohmann::ordered_json json_of(const keys_done& done, const std::string& name, const char* changed,
                               const filter_handle& filter, const filter_summary& now);

/// Adds to a JSON object how the work ended.
void add_end(nlohmann::ordered_json& result, const keys_done& done);

/// Prints the JSON object and throws what ended the work. A failure of the work is thrown even if printing fails.
void print_result(const keys_done& done, const nlohmann::ordered_json& result);

/// Prints a warning if the filter breaks its target FPR: fpr_watch without an exit status.
void warn_if_overfull(const std::string& name, const filter_handle& filter, const filter_summary& now);

/// The number of inserted keys that were new: "12", "at least 12" if some of the others were probably false positives.
std::string new_keys_text(const keys_done& done, const filter_summary& now);

/// ", 3 in all, error now 0.0002 %" and what else is known, or "".
/// @param noun  "in all", "left"
std::string state_text(const filter_handle& filter, const filter_summary& now, const std::string& noun);

}  // namespace bloomery::cli
