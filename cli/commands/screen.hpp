// Which lines go out: what check and noisy check do alike once they know how to ask.
#pragma once

#include "cli/commands/common.hpp"
#include "cli/io/key_batch.hpp"

#include <nlohmann/json.hpp>

namespace bloomery::cli {

struct screen_options {
  bool invert = false;  ///< the lines whose key is certainly absent
  bool count = false;   ///< their number only
  const input_options& inputs;
  const common_options& common;
};

/// Prints the lines whose key may be there, in order, or their number, or with --json `about` and the numbers. Exit
/// status as grep.
///
/// @param ask  goes through the inputs and sets the answers of their batches
exit_status screen(const lookup_pass& ask, const screen_options& options, nlohmann::ordered_json about);

}  // namespace bloomery::cli
