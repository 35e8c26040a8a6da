#include "cli/io/json_lines.hpp"

#include <bloomery/error.hpp>

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <type_traits>
#include <utility>

namespace bloomery::cli {
namespace {

namespace json = simdjson::ondemand;

// ---- paths ----------------------------------------------------------------------------------------------------------

// Parses paths from left to right.
class path_parser {
 public:
  path_parser(std::string_view text, const std::string& option) : all_(text), rest_(text), option_(option) {}

  std::vector<json_path> parse() {
    std::vector<json_path> paths;
    do {
      const std::string_view before = rest_;
      json_path& path = paths.emplace_back();
      do {
        step(path);
      } while (!rest_.empty() && rest_.front() != ',');
      path.text = before.substr(0, before.size() - rest_.size());
    } while (take(','));
    return paths;
  }

 private:
  [[noreturn]] void refuse() const {
    throw error(errc::invalid_argument,
                {"invalid JSON path", option_, "names and indices as in jq: .user.id or .tags[0] or .\"odd name\"",
                 "'" + std::string(all_) + "'", ""});
  }

  bool take(char wanted) {
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void step(json_path& path) {
    if (take('.')) {
      if (rest_.starts_with('[') && path.steps.empty()) return index(path);
      path.steps.emplace_back(rest_.starts_with('"') ? quoted() : name());
    } else {
      index(path);
    }
  }

  void index(json_path& path) {
    if (!take('[')) refuse();
    if (rest_.starts_with('"')) {
      path.steps.emplace_back(quoted());
    } else {
      std::uint64_t number = 0;
      const auto [end, problem] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
      if (problem != std::errc()) refuse();
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      path.steps.emplace_back(number);
    }
    if (!take(']')) refuse();
  }

  // Any text without special characters.
  std::string name() {
    const std::string result(rest_.substr(0, rest_.find_first_of(".,[]\"")));
    if (result.empty()) refuse();
    rest_.remove_prefix(result.size());
    return result;
  }

  // In quotes, \" and \\ are a quote and a backslash.
  std::string quoted() {
    std::string result;
    for (take('"'); !take('"');) {
      if (rest_.empty()) refuse();
      if (take('\\') && !rest_.starts_with('"') && !rest_.starts_with('\\')) refuse();
      result += rest_.front();
      rest_.remove_prefix(1);
    }
    return result;
  }

  std::string_view all_;
  std::string_view rest_;
  const std::string& option_;
};

// ---- values ---------------------------------------------------------------------------------------------------------

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// The grammar of RFC 8259: -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
bool is_number(std::string_view text) {
  const auto digits = [&] {
    const std::size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(count);
    return count > 0;
  };
  const auto take = [&](std::string_view any) {
    if (text.empty() || any.find(text.front()) == std::string_view::npos) return false;
    text.remove_prefix(1);
    return true;
  };
  take("-");
  if (!take("0") && !digits()) return false;
  if (take(".") && !digits()) return false;
  if (take("eE")) {
    take("+-");
    if (!digits()) return false;
  }
  return text.empty();
}

bool is_word_or_number(std::string_view text) {
  return text == "true" || text == "false" || text == "null" || is_number(text);
}

struct malformed {
  simdjson::error_code code;
  const char* string = nullptr;  // for STRING_ERROR: after the quote that opens the string
};

const std::string not_json = "invalid JSON: ";

// The code unit of an escape \uXXXX at the start of the text.
std::optional<unsigned> unit_of(std::string_view text) {
  unsigned unit = 0;
  if (text.size() < 6 || !text.starts_with("\\u")) return std::nullopt;
  const auto [end, problem] = std::from_chars(text.data() + 2, text.data() + 6, unit, 16);
  return problem == std::errc() && end == text.data() + 6 ? std::optional(unit) : std::nullopt;
}

// Why a string is not valid UTF-8. @param text  starts after its opening quote
std::string reason_of_string(std::string_view text) {
  while (!text.empty() && text.front() != '"') {
    if (text.front() != '\\') {
      text.remove_prefix(1);
      continue;
    }
    const std::optional<unsigned> unit = unit_of(text);
    const bool is_surrogate = unit && *unit >> 11 == 0xD800 >> 11;
    if (is_surrogate) {
      const std::optional<unsigned> low = unit_of(text.substr(6));
      const bool is_pair = *unit >> 10 == 0xD800 >> 10 && low && *low >> 10 == 0xDC00 >> 10;
      if (!is_pair) return "invalid JSON string: " + std::string(text.substr(0, 6)) + " is half of a surrogate pair";
      text.remove_prefix(12);
    } else if (unit) {
      text.remove_prefix(6);
    } else {
      constexpr std::string_view short_escapes = "\"\\/bfnrt";
      if (text.size() < 2 || short_escapes.find(text[1]) == std::string_view::npos)
        return not_json + std::string(text.substr(0, 2)) + " is not an escape sequence";
      text.remove_prefix(2);
    }
  }
  return not_json + "a string is damaged";
}

// The value, or an exception.
template <class Value>
Value checked(simdjson::simdjson_result<Value> result) {
  Value value;
  if (const auto code = std::move(result).get(value); code != simdjson::SUCCESS) throw malformed{code};
  return value;
}

// Follows the paths through a value. A set of paths is a word with one bit per path.
class walker {
 public:
  using path_set = std::uint64_t;
  using step = std::variant<std::string, std::uint64_t>;

  walker(const std::vector<const json_path*>& paths, std::vector<json_reader::value>& values)
      : paths_(paths), values_(values) {}

  template <class Value>
  void read(Value& value, path_set through, std::size_t depth) {
    const path_set ending = subset(through, [&](const json_path& path) { return path.steps.size() == depth; });
    const path_set further = through & ~ending;
    switch (checked<json::json_type>(value.type())) {
      case json::json_type::object: {
        json::object object = checked<json::object>(value.get_object());
        if (ending != 0) {
          set(ending, trimmed(checked<std::string_view>(object.raw_json())));
          if (further == 0) return;
          checked<bool>(object.reset());
        }
        return fields(object, further, depth);
      }
      case json::json_type::array: {
        json::array array = checked<json::array>(value.get_array());
        if (ending != 0) {
          set(ending, trimmed(checked<std::string_view>(array.raw_json())));
          if (further == 0) return;
          checked<bool>(array.reset());
        }
        return elements(array, further, depth);
      }
      case json::json_type::string: {
        std::string_view text;
        if (const auto code = value.get_string().get(text); code != simdjson::SUCCESS)
          throw malformed{code, code == simdjson::STRING_ERROR ? token_of(value).data() + 1 : nullptr};
        return set(ending, text);
      }
      default:
        if constexpr (std::is_same_v<Value, json::value>) scalar(value, ending);
    }
  }

 private:
  template <class Test>
  path_set subset(path_set of, Test test) const {
    path_set result = 0;
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      const path_set bit = path_set{1} << i;
      if ((of & bit) != 0 && test(*paths_[i])) result |= bit;
    }
    return result;
  }

  template <class Step, class Given>
  path_set next(path_set through, std::size_t depth, const Given& given) const {
    return subset(through, [&](const json_path& path) {
      const Step* const wanted = std::get_if<Step>(&path.steps[depth]);
      return wanted != nullptr && *wanted == given;
    });
  }

  static std::string_view token_of(json::value& value) { return value.raw_json_token(); }
  static std::string_view token_of(json::document& value) { return checked<std::string_view>(value.raw_json_token()); }

  void set(path_set which, const json_reader::value& value) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if ((which >> i & 1) != 0) values_[i] = value;
    }
  }

  void fields(json::object& object, path_set through, std::size_t depth) {
    for (auto result : object) {
      json::field field = checked<json::field>(std::move(result));
      const char* const raw_name = field.key().raw();
      std::string_view name;
      if (const auto code = field.unescaped_key().get(name); code != simdjson::SUCCESS) throw malformed{code, raw_name};
      const path_set on = next<std::string>(through, depth, name);
      if (on == 0) continue;
      set(on, std::nullopt);  // a second field of this name
      read(field.value(), on, depth + 1);
    }
  }

  void elements(json::array& array, path_set through, std::size_t depth) {
    std::uint64_t index = 0;
    for (auto result : array) {
      json::value element = checked<json::value>(std::move(result));
      const path_set on = next<std::uint64_t>(through, depth, index++);
      if (on != 0) read(element, on, depth + 1);
    }
  }

  void scalar(json::value& value, path_set ending) {
    const std::string_view text = trimmed(value.raw_json_token());
    if (!is_word_or_number(text)) throw malformed{simdjson::TAPE_ERROR};
    set(ending, text);
  }

  const std::vector<const json_path*>& paths_;
  std::vector<json_reader::value>& values_;
};

}  // namespace

std::vector<json_path> parse_json_paths(const std::string& text, const std::string& option) {
  std::vector<json_path> paths = path_parser(text, option).parse();
  if (paths.size() < json_reader::most_paths) return paths;
  throw error(errc::invalid_argument, {"too many paths", option, "at most 63", std::to_string(paths.size()), ""});
}

struct json_reader::parser {
  json::parser parser;
};

json_reader::json_reader(std::vector<const json_path*> paths)
    : paths_(std::move(paths)), values_(paths_.size()), parser_(std::make_unique<parser>()) {}

json_reader::~json_reader() = default;

std::string json_reader::read(std::string_view line, std::size_t readable) {
  std::fill(values_.begin(), values_.end(), std::nullopt);
  if (trimmed(line).empty()) return {};
  if (readable < line.size() + simdjson::SIMDJSON_PADDING) {
    padded_.reserve(line.size() + simdjson::SIMDJSON_PADDING);
    padded_ = line;
    padded_.append(simdjson::SIMDJSON_PADDING, ' ');
    line = std::string_view(padded_).substr(0, line.size());
    readable = padded_.size();
  }
  try {
    json::document document;
    const simdjson::padded_string_view padded(line.data(), line.size(), readable);
    if (const auto code = parser_->parser.iterate(padded).get(document); code != simdjson::SUCCESS)
      throw malformed{code};
    const auto all = paths_.size() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << paths_.size()) - 1;
    const json::json_type type = checked<json::json_type>(document.type());
    if (type != json::json_type::object && type != json::json_type::array && type != json::json_type::string) {
      return is_word_or_number(trimmed(line)) ? "" : not_json + "not a value";
    }
    walker(paths_, values_).read(document, all, 0);
    const char* behind = nullptr;
    if (document.current_location().get(behind) == simdjson::SUCCESS) return not_json + "text after the value";
  } catch (const malformed& problem) {
    if (problem.code == simdjson::STRING_ERROR && problem.string != nullptr)
      return reason_of_string({problem.string, static_cast<std::size_t>(line.data() + line.size() - problem.string)});
    std::string why = simdjson::error_message(problem.code);
    if (why.ends_with('.')) why.pop_back();
    return not_json + why;
  }
  return {};
}

}  // namespace bloomery::cli
