// The text of --help, from the grammar.
#include "cli/commands/parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace bloomery::cli {
namespace {

constexpr std::size_t columns = 100;
constexpr std::size_t indent = 2;
constexpr std::size_t help_column = 30;

// "  -n, --capacity N            distinct keys to expect", with the help on further lines if it is too long for one.
std::string entry(const std::string& left, const std::string& help) {
  std::string text = std::string(indent, ' ') + left;
  std::string line = fmt::format("{:{}}", text, help_column);
  if (text.size() + 1 > help_column) line += "  ";
  std::string all;
  for (std::size_t at = 0; at < help.size();) {
    const std::size_t end = std::min(help.find(' ', at + (help[at] == ' ' ? 1 : 0)), help.size());
    if (line.size() + end - at > columns) {
      all += line + "\n";
      line = std::string(help_column, ' ');
      at += help[at] == ' ' ? 1 : 0;
    }
    line += help.substr(at, end - at);
    at = end;
  }
  return all + line + "\n";
}

// "-n, --capacity N", "    --bits SIZE"
std::string flags_of(const argument& a) {
  const std::string names = a.names.size() > 1 ? a.names.front() + ", " + a.names.back() : "    " + a.names.back();
  return a.is_flag() ? names : names + " " + a.value_name;
}

std::string usage_of(const command& c) {
  std::string usage = "Usage: " + c.path();
  if (!c.subcommands().empty()) return usage + " COMMAND\n";
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

}  // namespace

std::string help_of(const command& c) {
  std::string text = c.summary() + "\n" + usage_of(c);
  if (!c.subcommands().empty()) text += "\nSubcommands:\n";
  for (const command& sub : c.subcommands()) text += entry(sub.name(), sub.summary());

  std::string arguments;
  std::vector<std::string> headings = {""};
  for (const argument& a : c.arguments()) {
    if (a.is_positional()) arguments += entry(a.name(), a.help);
    if (std::find(headings.begin(), headings.end(), a.heading) == headings.end()) headings.push_back(a.heading);
  }
  if (!arguments.empty()) text += "\nArguments:\n" + arguments;
  for (const std::string& heading : headings) {
    text += "\n" + (heading.empty() ? "Options" : heading) + ":\n";
    for (const argument& a : c.arguments()) {
      if (!a.is_positional() && a.heading == heading) text += entry(flags_of(a), a.help);
    }
    if (heading.empty()) text += entry("-h, --help", "this text");
    if (heading.empty() && c.parent() == nullptr) text += entry("    --version", "the version of this program");
  }
  return c.footer().empty() ? text : text + "\n" + c.footer() + "\n";
}

}  // namespace bloomery::cli
