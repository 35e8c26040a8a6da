// Selection of input lines by lookups, for check and noisy check.
#pragma once

#include "cli/commands/common.hpp"
#include "cli/io/key_batch.hpp"

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace bloomery::cli {

struct screen_options {
  bool invert = false;  ///< select the lines whose key is certainly absent
  bool count = false;   ///< print only their number
  const input_options& inputs;
  const common_options& common;
  std::function<std::string(std::string_view key)> before = {};  ///< text before each printed line
};

/// Prints the lines whose key may be present, in order, or their number, or with --json `about` and the numbers.
/// Returns the exit status of grep.
///
/// @param ask  reads the inputs and looks up the keys of each batch
exit_status screen(const lookup_pass& ask, const screen_options& options, nlohmann::ordered_json about);

}  // namespace bloomery::cli
