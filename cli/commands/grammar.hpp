// Grammar of the command line: commands with their options and arguments, as data for the parser, the help and the
// shell completions. Each command adds its own part, in its own file.
#pragma once

#include "cli/commands/options.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

namespace bloomery::cli {

/// An option, a flag or a positional argument of a command.
struct argument {
  using taker = std::function<void(const std::string&)>;

  std::vector<std::string> names;  ///< {"-n", "--capacity"}; for a positional argument {"FILTER"}
  std::string value_name;          ///< "RATE"; empty: a flag
  std::string help;                ///< the text in --help
  std::string heading;             ///< title of its group in --help; empty: the first group
  taker take;                      ///< called with each value, for a flag with ""; throws to refuse a value
  bool is_required = false;
  bool is_repeatable = false;             ///< the option may be given several times; the argument is a list
  bool may_be_empty = true;               ///< false: an empty value is refused, such as an unset shell variable
  bool is_file = false;                   ///< the value is a file name, perhaps also an address
  std::vector<std::string> choices;       ///< all accepted values; empty: any
  std::vector<std::string> suggestions;   ///< values for completion; others may be accepted as well
  std::vector<const argument*> excluded;  ///< options that exclude this one
  const argument* needed = nullptr;       ///< an option that this one requires

  argument& required();
  argument& not_empty();
  argument& file();
  argument& one_of(std::vector<std::string> values);
  /// Suggests values for completion. Other values may be accepted, too.
  /// @param values  separated by commas
  argument& suggest(const std::string& values);
  argument& excludes(const argument& other);
  argument& needs(const argument& other);
  argument& group(const std::string& title);
  argument& describe(const std::string& text);

  bool is_flag() const { return value_name.empty(); }
  bool is_positional() const { return !names.front().starts_with('-'); }
  const std::string& name() const { return names.back(); }  ///< the long one: "--capacity"
};

/// The whole numbers that an option accepts.
struct number_range {
  std::uint64_t least = 0;
  std::uint64_t most = UINT64_MAX;
};

/// A command: `bloomery` itself, a verb, or a verb of a verb.
class command {
 public:
  command(std::string name, std::string summary);
  command(const command&) = delete;
  command& operator=(const command&) = delete;

  /// A subcommand in the group of the heading that was set last.
  command& subcommand(const std::string& name, const std::string& summary);
  void heading(const std::string& title) { next_heading_ = title; }

  /// @param flags  "-n,--capacity" or "--capacity"
  argument& option(const std::string& flags, argument::taker take, const std::string& value_name,
                   const std::string& help);
  argument& option(const std::string& flags, std::string& to, const std::string& value_name, const std::string& help);
  /// May be given several times; `to` collects the values.
  argument& option(const std::string& flags, std::vector<std::string>& to, const std::string& value_name,
                   const std::string& help);
  /// A whole number in the range `of`.
  argument& option(const std::string& flags, std::uint64_t& to, number_range of, const std::string& value_name,
                   const std::string& help);
  argument& option(const std::string& flags, unsigned& to, number_range of, const std::string& value_name,
                   const std::string& help);
  argument& flag(const std::string& flags, bool& to, const std::string& help);
  argument& flag(const std::string& flags, std::function<void()> act, const std::string& help);
  /// Positional arguments, in the order in which they are added.
  argument& positional(const std::string& name, argument::taker take, const std::string& help);
  argument& positional(const std::string& name, std::string& to, const std::string& help);
  /// All remaining arguments.
  argument& positional(const std::string& name, std::vector<std::string>& to, const std::string& help);

  /// The argument of this name, "--output" or "INPUT"; nullptr if there is none.
  argument* find(const std::string& name);
  const argument* find(const std::string& name) const;

  void example(const std::string& line) { examples_.push_back(line); }
  /// Appends text below the options.
  void footer(const std::string& text) { footer_ += text; }
  /// `act` is called after parsing, before the command runs.
  void when_parsed(std::function<void(const command&)> act) { when_parsed_.push_back(std::move(act)); }
  void runs(std::function<exit_status()> act) { act_ = std::move(act); }

  const std::string& name() const { return name_; }
  const std::string& summary() const { return summary_; }
  const std::string& heading() const { return heading_; }
  const std::vector<std::string>& examples() const { return examples_; }
  const std::string& footer() const { return footer_; }
  /// The full name: "bloomery redis list".
  std::string path() const;
  std::string see_help() const;  ///< "see bloomery redis list --help"
  const command* parent() const { return parent_; }
  const std::list<command>& subcommands() const { return subcommands_; }
  std::list<command>& subcommands() { return subcommands_; }
  const std::deque<argument>& arguments() const { return arguments_; }

  /// Passes a value to the argument and records that it was given. @throws error invalid_argument
  void give(const argument& to, const std::string& value);
  bool given(const argument& which) const;
  /// Must be called after all values. @throws error invalid_argument: a required argument is missing, or options
  /// exclude each other
  void finish();
  exit_status run() const { return act_(); }

  /// An error of the command line.
  /// @param hint  empty: the command's --help
  [[noreturn]] void refuse(const std::string& what, const std::string& where, const std::string& expected,
                           const std::string& found, const std::string& hint = "") const;

 private:
  std::uint64_t number_of(const std::string& text, number_range of, const std::string& name) const;
  argument& add(const std::string& names, const std::string& value_name, const std::string& help, argument::taker take);

  std::string name_;
  std::string summary_;
  std::string heading_;
  std::string next_heading_;
  std::vector<std::string> examples_;
  std::string footer_;
  const command* parent_ = nullptr;
  std::list<command> subcommands_;  // a list: references to elements stay valid
  std::deque<argument> arguments_;
  std::vector<const argument*> given_;
  std::vector<std::function<void(const command&)>> when_parsed_;
  std::function<exit_status()> act_;
};

/// The command line: its grammar, and the inputs of all commands.
struct command_line {
  command& root;
  std::vector<const input_options*> inputs = {};  ///< checked before the command runs

  /// Creates the options of `verb`, which are passed to `act` when the verb runs.
  template <class Options>
  Options& options_of(command& verb, exit_status (*act)(const Options&)) {
    const auto options = std::make_shared<Options>();
    verb.runs([options, act] { return act(*options); });
    return *options;
  }
};

/// An option whose value is parsed by `parse`, which gets the name of the option for its error messages.
template <class Value, class Parse>
argument& parsed(command& c, const std::string& flags, Value& value, Parse parse, const std::string& value_name,
                 const std::string& help) {
  return c.option(
      flags,
      [&value, parse, name = flags.substr(flags.find(',') + 1)](const std::string& text) { value = parse(text, name); },
      value_name, help);
}

}  // namespace bloomery::cli
