// The text of --help, from the grammar, and bloomery help [COMMAND...], which prints it.
#include "cli/commands/parse.hpp"
#include "cli/io/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace bloomery::cli {
namespace {

constexpr std::size_t columns = 100;
constexpr std::size_t option_column = 31;
constexpr std::size_t verb_column = 14;

// "  -n, --capacity N             distinct keys to expect"
std::string entry(const std::string& left, const std::string& help, std::size_t column) {
  return fmt::format("  {:{}} {}\n", left, column - 3, help);
}

// "-n, --capacity N", "    --bits SIZE"
std::string flags_of(const argument& a) {
  const std::string names = a.names.size() > 1 ? a.names.front() + ", " + a.names.back() : "    " + a.names.back();
  return a.is_flag() ? names : names + " " + a.value_name;
}

std::string usage_of(const command& c) {
  std::string usage = "Usage: " + c.path();
  if (!c.subcommands().empty()) return usage + " COMMAND [OPTIONS] [ARGUMENTS]\n";
  for (const argument& a : c.arguments()) {
    if (a.is_required && !a.is_positional()) usage += " " + a.names.front() + " " + a.value_name;
  }
  usage += " [OPTIONS]";
  for (const argument& a : c.arguments()) {
    if (!a.is_positional()) continue;
    const std::string name = a.name() + (a.is_repeatable ? "..." : "");
    usage += a.is_required ? " " + name : " [" + name + "]";
  }
  return usage + "\n";
}

std::string examples_of(const command& c) {
  if (c.examples().empty()) return "";
  std::string text = c.examples().size() == 1 ? "\nExample:\n" : "\nExamples:\n";
  for (const std::string& line : c.examples()) text += "  " + line + "\n";
  return text;
}

std::string verbs_of(const command& c) {
  std::string text;
  const std::string* heading = nullptr;
  for (const command& sub : c.subcommands()) {
    if (heading == nullptr || *heading != sub.heading()) {
      heading = &sub.heading();
      text += "\n" + (heading->empty() ? "Commands" : *heading) + ":\n";
    }
    text += entry(sub.name(), sub.summary(), verb_column);
  }
  return text;
}

std::string arguments_of(const command& c) {
  std::string text;
  for (const argument& a : c.arguments()) {
    if (a.is_positional()) text += entry(a.name(), a.help, option_column);
  }
  return text.empty() ? "" : "\nArguments:\n" + text;
}

// The options by group: those of the verb first, common options last.
std::string options_of(const command& c) {
  std::vector<std::string> headings = {""};
  for (const argument& a : c.arguments()) {
    if (!a.is_positional() && a.heading != of_all_verbs &&
        std::find(headings.begin(), headings.end(), a.heading) == headings.end()) {
      headings.push_back(a.heading);
    }
  }
  headings.push_back(of_all_verbs);
  std::string text;
  for (const std::string& heading : headings) {
    std::string group;
    for (const argument& a : c.arguments()) {
      if (!a.is_positional() && a.heading == heading) group += entry(flags_of(a), a.help, option_column);
    }
    if (heading == of_all_verbs) group += entry("-h, --help", "show this help", option_column);
    if (heading == of_all_verbs && c.parent() == nullptr)
      group += entry("-V, --version", "show the version", option_column);
    if (!group.empty()) text += "\n" + (heading.empty() ? "Options" : heading) + ":\n" + group;
  }
  return text;
}

// The text wrapped at the last column.
std::string wrapped(const std::string& text) {
  std::string all;
  std::size_t column = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    if (column > 0 && column + 1 + end - at > columns) {
      all += "\n";
      column = 0;
    }
    all += (column > 0 ? " " : "") + text.substr(at, end - at);
    column += (column > 0 ? 1 : 0) + end - at;
    if (end < text.size() && text[end] == '\n') {
      all += "\n";
      column = 0;
    }
    at = end + 1;
  }
  return all + "\n";
}

}  // namespace

std::string help_of(const command& c) {
  const std::string footer = c.footer().empty() ? "" : "\n" + wrapped(c.footer());
  return c.summary() + "\n\n" + usage_of(c) + examples_of(c) + verbs_of(c) + arguments_of(c) + options_of(c) + footer;
}

void add_help(command_line& line) {
  command& c = line.root.subcommand("help", "show the help of a command");
  const auto words = std::make_shared<std::vector<std::string>>();
  std::string names;
  for (const command& verb : line.root.subcommands()) names += (names.empty() ? "" : ",") + verb.name();
  c.positional("COMMAND", *words, "a command, such as build or redis list; default: list all commands").suggest(names);
  c.example("bloomery help build");
  c.example("bloomery help redis list");
  c.runs([&root = line.root, words] {
    command* described = &root;
    for (const std::string& word : *words) described = &subcommand_of(*described, word);
    output out(STDOUT_FILENO, "standard output");
    out.write(help_of(*described));
    out.flush();
    return exit_status::found;
  });
}

}  // namespace bloomery::cli
