// The grammar of the command line: from words to a command's options and its deed.
#pragma once

#include "cli/commands/commands.hpp"

#include <CLI/CLI.hpp>

#include <functional>
#include <vector>

namespace bloomery::cli {

/// The options of every command; one of them is filled in.
struct all_options {
  plan_options plan;
  build_options build;
  add_options add;
  check_options check;
  dedup_options dedup;
  info_options info;
  verify_options verify;
  explain_options explain;
  analyze_options analyze;
  combine_options unite;
  combine_options intersect;
  overlap_options overlap;
  fold_options fold;
  keygen_options keygen;
  remove_options remove;
  rebuild_options rebuild;
  seal_options seal;
  noisy_split_options noisy_split;
  noisy_check_options noisy_check;
  pull_options pull;
  push_options push;
  doctor_options doctor;
  playground_options playground;
};

using command_handler = std::function<exit_status()>;

/// Adds all commands to `app`. When one of them has been parsed, `chosen` is what it does.
void add_commands(CLI::App& app, all_options& options, command_handler& chosen);

/// The inputs of the commands that read keys, to be checked once all is parsed.
std::vector<const input_options*> all_inputs(const all_options& options);

}  // namespace bloomery::cli
