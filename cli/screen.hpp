// Which lines go out: what check and noisy check do alike once they know how to ask.
#pragma once

#include "commands.hpp"
#include "key_batch.hpp"

#include <bloomery/any_filter.hpp>

#include <nlohmann/json.hpp>

#include <functional>

namespace bloomery::cli {

struct screen_options {
  bool invert = false;  ///< the lines whose key is certainly absent
  bool count = false;   ///< their number only
  const input_options& inputs;
  const common_options& common;
};

/// Prints the lines whose key may be there, in order, or their number, or with --json `about` and the numbers. Exit status
/// as grep.
///
/// @param filter  that the batches are hashed for
/// @param ask     sets the answers of a batch; called side by side
exit_status screen(const any_filter& filter, const screen_options& options, const std::function<void(key_batch&)>& ask,
                   nlohmann::ordered_json about);

}  // namespace bloomery::cli
