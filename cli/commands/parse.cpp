// The parser of the command line. CLI11 separates the words of a verb into options with values and other words; no
// other file includes it.
#include "cli/commands/parse.hpp"

#include "cli/commands/shared_filter.hpp"
#include "cli/text/suggest.hpp"

#include <bloomery/error.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>

namespace bloomery::cli {
namespace {

const std::vector<std::string> help_flags = {"-h", "--help"};
const std::vector<std::string> version_flags = {"-V", "--version"};

// A word in quotes without a password; only the beginning of a very long one.
std::string quoted(const std::string& text) {
  const std::string word = without_passwords(text);  // before an address is cut, and would not be recognized any more
  constexpr std::size_t most = 60;
  if (word.size() <= most) return "'" + word + "'";
  std::size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80) --end;  // not within a UTF-8 character
  return "'" + word.substr(0, end) + "...'";
}

bool is_one_of(const std::string& word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// ---- verbs ----------------------------------------------------------------------------------------------------------

}  // namespace

command& subcommand_of(command& c, const std::string& word) {
  std::vector<std::string> names;
  std::string all;
  for (command& sub : c.subcommands()) {
    if (sub.name() == word) return sub;
    names.push_back(sub.name());
    all += (all.empty() ? "" : ", ") + sub.name();
  }
  if (names.empty()) c.refuse("has no subcommands", c.path(), "", quoted(word));
  const std::string meant = nearest(word, names);
  c.refuse("unknown command", "", "one of " + all, quoted(word),
           meant.empty() ? "" : "did you mean '" + c.path() + " " + meant + "'?");
}

// ---- words of a verb ------------------------------------------------------------------------------------------------

namespace {

struct sorted_words {
  std::vector<std::pair<const argument*, std::string>> options;  // with values, in the order of the grammar
  std::vector<std::string> others;                               // positional arguments
  std::vector<std::string> unknown;                              // options that the verb does not have
  bool help = false;
};

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ",") + name;
  return all;
}

// CLI11 reports a missing value only as text; the option can only be the last word.
[[noreturn]] void refuse_missing_value(const command& verb, const std::string& last) {
  const argument* const option = verb.find(last.starts_with("--") ? last : std::string("-") + last.back());
  verb.refuse("missing value", option == nullptr ? last : option->name(), option == nullptr ? "" : option->value_name,
              "");
}

// Splits "--output=" into the option and an empty value, because CLI11 would take the next word as the value.
std::vector<std::string> with_empty_values(const command& verb, const std::vector<std::string>& words) {
  std::vector<std::string> all;
  bool only_others = false;
  for (const std::string& word : words) {
    only_others = only_others || word == "--";
    const std::size_t equals = only_others || !word.starts_with("--") ? std::string::npos : word.find('=');
    const std::string name = word.substr(0, equals);
    const argument* const option = equals == std::string::npos ? nullptr : verb.find(name);
    if (option != nullptr && option->is_flag())
      verb.refuse("takes no value", name, "", quoted(word.substr(equals + 1)));
    if (option != nullptr && equals + 1 == word.size()) {
      all.push_back(name);
      all.emplace_back();
    } else {
      all.push_back(word);
    }
  }
  return all;
}

bool asks_for_help(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::find_first_of(words.begin(), end, help_flags.begin(), help_flags.end()) != end;
}

sorted_words sort_words(const command& verb, std::vector<std::string> words) {
  CLI::App app;
  app.allow_extras();
  app.set_help_flag();
  const CLI::Option* const help = app.add_flag(joined(help_flags));
  std::deque<std::vector<std::string>> values;
  std::vector<std::pair<const argument*, const CLI::Option*>> options;
  for (const argument& a : verb.arguments()) {
    if (a.is_positional()) continue;
    const std::string names = joined(a.names);
    options.emplace_back(
        &a, a.is_flag() ? app.add_flag(names) : app.add_option(names, values.emplace_back())->allow_extra_args(false));
  }
  words = with_empty_values(verb, words);
  const std::string last = words.empty() ? "" : words.back();
  const bool wants_help = asks_for_help(words);
  const std::vector<std::string> given = words;
  std::reverse(words.begin(), words.end());  // the order that CLI11 expects
  try {
    app.parse(std::move(words));
  } catch (const CLI::ArgumentMismatch&) {
    if (!wants_help) refuse_missing_value(verb, last);
    sorted_words help_alone;
    help_alone.help = true;
    return help_alone;
  } catch (const CLI::ParseError& e) {
    verb.refuse(e.what(), "", "", "");
  }

  sorted_words sorted;
  sorted.help = help->count() > 0;
  for (const auto& [a, option] : options) {
    for (const std::string& value : option->results()) {
      if (a->is_flag() && value != "true") verb.refuse("takes no value", a->name(), "", quoted(value));
      sorted.options.emplace_back(a, a->is_flag() ? "" : value);
    }
  }
  bool only_others = false;
  for (const std::string& word : app.remaining()) {
    // "-5" may be a key, but not if it is what CLI11 left of "-05" or "-q5".
    const bool is_number = word.size() > 1 && std::isdigit(static_cast<unsigned char>(word[1])) != 0;
    const bool is_option = word.size() > 1 && word[0] == '-' && !(is_number && is_one_of(word, given));
    if (only_others || !is_option)
      sorted.others.push_back(word);
    else if (word == "--")
      only_others = true;
    else
      sorted.unknown.push_back(word);
  }
  return sorted;
}

// Suggests an option if a long one is mistyped, and "--" if the word may be a key.
[[noreturn]] void refuse_unknown(const command& verb, const std::string& word) {
  std::vector<std::string> names = {"--help"};
  if (verb.parent() == nullptr) names.push_back("--version");
  std::string hint;
  for (const argument& a : verb.arguments()) {
    if (!a.is_positional()) names.push_back(a.name());
    if (!word.starts_with("--") && a.is_positional() && a.is_repeatable && !a.is_file && a.suggestions.empty())
      hint = "to pass a " + a.name() + " that begins with -, put -- before it";
  }
  const std::string meant = word.starts_with("--") ? nearest(word.substr(0, word.find('=')), names) : "";
  if (!meant.empty()) hint = "did you mean '" + meant + "'?";
  verb.refuse("unknown option", "", "", quoted(word), hint);
}

// The word of the command line that CLI11 reports as unknown: of "-0.5" it takes "-0" and reports "-.5". An unknown
// letter of several is reported alone.
std::string original_of(const std::string& unknown, const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  const auto at = std::find_if(words.begin(), end, [&](const std::string& word) {
    return word.starts_with('-') && !word.starts_with("--") && word.ends_with(unknown.substr(1));
  });
  const bool is_letter = unknown.size() == 2 && std::isalpha(static_cast<unsigned char>(unknown[1])) != 0;
  return unknown.starts_with("--") || at == end || is_letter ? unknown : *at;
}

void give_positionals(command& verb, const std::vector<std::string>& words) {
  auto word = words.begin();
  for (const argument& a : verb.arguments()) {
    if (!a.is_positional()) continue;
    for (; word != words.end(); ++word) {
      verb.give(a, *word);
      if (!a.is_repeatable) {
        ++word;
        break;
      }
    }
  }
  if (word != words.end()) verb.refuse("unexpected argument", "", "", quoted(*word));
}

}  // namespace

request parse(command& root, const std::vector<std::string>& words) {
  command* verb = &root;
  bool help = false;
  auto word = words.begin();
  for (; !verb->subcommands().empty(); ++word) {
    if (word == words.end()) return {help ? request::kind::help : request::kind::list, verb};
    if (is_one_of(*word, help_flags)) {
      help = true;
    } else if (verb == &root && is_one_of(*word, version_flags)) {
      return {request::kind::version, verb};
    } else if (word->starts_with('-')) {
      refuse_unknown(*verb, *word);
    } else {
      verb = &subcommand_of(*verb, *word);
    }
  }
  const sorted_words sorted = sort_words(*verb, {word, words.end()});
  if (help || sorted.help) return {request::kind::help, verb};
  if (!sorted.unknown.empty()) refuse_unknown(*verb, original_of(sorted.unknown.front(), {word, words.end()}));
  for (const auto& [option, value] : sorted.options) verb->give(*option, value);
  give_positionals(*verb, sorted.others);
  verb->finish();
  return {request::kind::run, verb};
}

}  // namespace bloomery::cli
