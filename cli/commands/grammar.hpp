// The grammar of the command line, described with CLI11. Each command describes its own part, in its own file.
#pragma once

#include "cli/commands/options.hpp"

#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bloomery::cli {

/// The command line: its grammar, and what the words of the user ask for once they are parsed.
struct command_line {
  CLI::App& app;
  std::function<exit_status()> run = {};          ///< the command that was parsed
  std::vector<const input_options*> inputs = {};  ///< of all commands, to be checked before `run`

  /// The options of `command`, which are passed to `act` if the command is the one that was parsed.
  template <class Options>
  Options& options_of(CLI::App& command, exit_status (*act)(const Options&)) {
    const auto options = std::make_shared<Options>();
    command.callback([this, options, act] { run = [options, act] { return act(*options); }; });
    return *options;
  }
};

/// An option whose text is turned into a value by `parse`, which names the option when it refuses.
template <class Value, class Parse>
void parsed(CLI::App& app, const std::string& flags, Value& value, Parse parse, const std::string& help) {
  const std::string name = flags.substr(0, flags.find(','));
  app.add_option_function<std::string>(
      flags, [&value, parse, name](const std::string& text) { value = parse(text, name); }, help);
}

}  // namespace bloomery::cli
