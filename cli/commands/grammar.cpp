#include "cli/commands/grammar.hpp"

#include <bloomery/error.hpp>

#include <algorithm>
#include <charconv>
#include <climits>
#include <sstream>
#include <system_error>
#include <utility>

namespace bloomery::cli {

// ---- arguments ------------------------------------------------------------------------------------------------------

argument& argument::required() {
  is_required = true;
  return *this;
}

argument& argument::not_empty() {
  may_be_empty = false;
  return *this;
}

argument& argument::file() {
  is_file = true;
  return not_empty();
}

argument& argument::suggest(const std::string& values) {
  suggestions.clear();
  std::istringstream stream(values);
  for (std::string value; std::getline(stream >> std::ws, value, ',');) suggestions.push_back(value);
  return *this;
}

argument& argument::one_of(std::vector<std::string> values) {
  choices = std::move(values);
  suggestions = choices;
  return *this;
}

argument& argument::excludes(const argument& other) {
  excluded.push_back(&other);
  return *this;
}

argument& argument::needs(const argument& other) {
  needed = &other;
  return *this;
}

argument& argument::group(const std::string& title) {
  heading = title;
  return *this;
}

argument& argument::describe(const std::string& text) {
  help = text;
  return *this;
}

// ---- definition of a command ----------------------------------------------------------------------------------------

command::command(std::string name, std::string summary) : name_(std::move(name)), summary_(std::move(summary)) {}

command& command::subcommand(const std::string& name, const std::string& summary) {
  command& added = subcommands_.emplace_back(name, summary);
  added.parent_ = this;
  added.heading_ = next_heading_;
  return added;
}

argument& command::add(const std::string& names, const std::string& value_name, const std::string& help,
                       argument::taker take) {
  argument& added = arguments_.emplace_back();
  const std::size_t comma = names.find(',');
  if (comma != std::string::npos) added.names.push_back(names.substr(0, comma));
  added.names.push_back(comma == std::string::npos ? names : names.substr(comma + 1));
  added.value_name = value_name;
  added.help = help;
  added.take = std::move(take);
  return added;
}

argument& command::option(const std::string& flags, argument::taker take, const std::string& value_name,
                          const std::string& help) {
  return add(flags, value_name, help, std::move(take));
}

argument& command::option(const std::string& flags, std::string& to, const std::string& value_name,
                          const std::string& help) {
  return add(flags, value_name, help, [&to](const std::string& text) { to = text; });
}

argument& command::option(const std::string& flags, std::vector<std::string>& to, const std::string& value_name,
                          const std::string& help) {
  argument& added = add(flags, value_name, help, [&to](const std::string& text) { to.push_back(text); });
  added.is_repeatable = true;
  return added;
}

std::uint64_t command::number_of(const std::string& text, number_range of, const std::string& name) const {
  const bool is_hexadecimal = text.starts_with("0x");
  const char* const stop = text.data() + text.size();
  std::uint64_t number = 0;
  const auto [end, failure] =
      std::from_chars(text.data() + (is_hexadecimal ? 2 : 0), stop, number, is_hexadecimal ? 16 : 10);
  if (failure != std::errc() || end != stop || number < of.least || number > of.most) {
    refuse("invalid value", name, "a whole number from " + std::to_string(of.least) + " to " + std::to_string(of.most),
           "'" + text + "'");
  }
  return number;
}

argument& command::option(const std::string& flags, std::uint64_t& to, number_range of, const std::string& value_name,
                          const std::string& help) {
  const std::string name = flags.substr(flags.find(',') + 1);  // all of it if there is no comma
  return add(flags, value_name, help,
             [this, &to, of, name](const std::string& text) { to = number_of(text, of, name); });
}

argument& command::option(const std::string& flags, unsigned& to, number_range of, const std::string& value_name,
                          const std::string& help) {
  const std::string name = flags.substr(flags.find(',') + 1);
  of.most = std::min<std::uint64_t>(of.most, UINT_MAX);
  return add(flags, value_name, help,
             [this, &to, of, name](const std::string& text) { to = static_cast<unsigned>(number_of(text, of, name)); });
}

argument& command::flag(const std::string& flags, bool& to, const std::string& help) {
  return flag(
      flags, [&to] { to = true; }, help);
}

argument& command::flag(const std::string& flags, std::function<void()> act, const std::string& help) {
  return add(flags, "", help, [act = std::move(act)](const std::string&) { act(); });
}

argument& command::positional(const std::string& name, argument::taker take, const std::string& help) {
  return add(name, name, help, std::move(take));
}

argument& command::positional(const std::string& name, std::string& to, const std::string& help) {
  return option(name, to, name, help);
}

argument& command::positional(const std::string& name, std::vector<std::string>& to, const std::string& help) {
  return option(name, to, name, help);
}

// ---- properties -----------------------------------------------------------------------------------------------------

const argument* command::find(const std::string& name) const {
  const auto has_name = [&](const argument& a) {
    return std::find(a.names.begin(), a.names.end(), name) != a.names.end();
  };
  const auto at = std::find_if(arguments_.begin(), arguments_.end(), has_name);
  return at == arguments_.end() ? nullptr : &*at;
}

argument* command::find(const std::string& name) { return const_cast<argument*>(std::as_const(*this).find(name)); }

std::string command::path() const { return parent_ == nullptr ? name_ : parent_->path() + " " + name_; }

std::string command::see_help() const { return "see " + path() + " --help"; }

// ---- values ---------------------------------------------------------------------------------------------------------

void command::refuse(const std::string& what, const std::string& where, const std::string& expected,
                     const std::string& found, const std::string& hint) const {
  throw error(errc::invalid_argument, {what, where, expected, found, hint.empty() ? see_help() : hint});
}

void command::give(const argument& to, const std::string& value) {
  if (given(to) && !to.is_repeatable && !to.is_flag())
    refuse("option given more than once", to.name(), "", "", "give it once");
  if (value.empty() && !to.may_be_empty) refuse("empty value", to.name(), "a name", "''");
  if (!to.choices.empty() && std::find(to.choices.begin(), to.choices.end(), value) == to.choices.end()) {
    std::string all;
    for (const std::string& one : to.choices)
      all += (all.empty() ? "" : &one == &to.choices.back() ? " or " : ", ") + one;
    refuse("invalid value", to.name(), all, "'" + value + "'");
  }
  try {
    if (to.take) to.take(value);
  } catch (const error& e) {
    error_text text = e.text();
    if (text.hint.empty()) text.hint = see_help();
    throw error(e.code(), std::move(text));
  }
  given_.push_back(&to);
}

bool command::given(const argument& which) const {
  return std::find(given_.begin(), given_.end(), &which) != given_.end();
}

void command::finish() {
  for (const argument& a : arguments_) {
    if (!given(a)) {
      if (a.is_required && a.is_positional()) refuse("missing argument", a.name(), "", "");
      if (a.is_required) refuse("missing required option", a.name(), a.name() + " " + a.value_name, "");
      continue;
    }
    if (a.needed != nullptr && !given(*a.needed)) {
      refuse("requires " + a.needed->name(), a.name(), "", "",
             "add " + a.needed->name() + ", or leave " + a.name() + " out");
    }
    for (const argument* other : a.excluded) {
      if (given(*other))
        refuse(other->name() + " and " + a.name() + " exclude each other", "", "", "", "give one of them");
    }
  }
  for (const auto& act : when_parsed_) act(*this);
}

}  // namespace bloomery::cli
