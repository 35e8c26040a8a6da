// Insertion and removal of the keys of an input, for filters of any kind, and the report of the result.
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

/// Result of an insertion or removal.
struct keys_done {
  std::uint64_t keys = 0;             ///< keys whose call has returned
  std::uint64_t changed = 0;          ///< of these, the keys that were added or removed
  std::uint64_t undecided = 0;        ///< keys of a failed call, which may or may not be done
  bool finished = true;               ///< the whole input was read
  std::optional<error> failure = {};  ///< the error that ended the work; to be thrown after the result is printed
};

/// Applies `change` to the keys of all inputs.
/// @param verb    "add" or "remove"
/// @param change  takes the prepared keys of a batch
/// @param after   called after each batch
keys_done change_keys(filter_handle& filter, const input_options& inputs, const common_options& common,
                      const std::string& verb, const std::function<change_result(key_batch& batch)>& change,
                      const std::function<void()>& after);

/// The summary after the work; empty if the work failed. A filter that could not grow is a failure. A server that does
/// not return the summary is a warning. A missing filter, or a missing part, is a failure, because it may have had the
/// keys.
filter_summary summary_after(keys_done& done, const std::string& name, filter_handle& filter);

/// Commits the changes. If the work has failed before, a failure of the commit is a warning, because the first failure
/// will be thrown. @throws error  as filter_handle::commit
void commit(const keys_done& done, filter_handle& filter);

/// Handles a failure to count the keys after the work, as described at summary_after().
void count_failed(keys_done& done, const std::string& name, const error& why);

/// The JSON object of add and remove.
/// @param changed  the name of the number of changed keys: "new", "removed"
nlohmann::ordered_json json_of(const keys_done& done, const std::string& name, const char* changed,
                               const filter_handle& filter, const filter_summary& now);

/// Adds to a JSON object whether the work is complete.
void add_end(nlohmann::ordered_json& result, const keys_done& done);

/// Prints the JSON object and throws the failure of the work, if any, even if printing fails.
void print_result(const keys_done& done, const nlohmann::ordered_json& result);

/// Prints a warning if the filter exceeds its target FPR: fpr_watch without an exit status.
void warn_if_overfull(const std::string& name, const filter_handle& filter, const filter_summary& now);

/// The number of inserted keys that were new: "12", "at least 12" if some of the others were probably false positives.
std::string new_keys_text(const keys_done& done, const filter_summary& now);

/// ", 3 in total, current FPR 0.0002%" and other facts that are known, or "".
/// @param noun  "in total", "left"
std::string state_text(const filter_handle& filter, const filter_summary& now, const std::string& noun);

}  // namespace bloomery::cli
