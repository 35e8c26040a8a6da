#include "cli/io/fields.hpp"

#include "cli/io/csv.hpp"

#include <bloomery/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace bloomery::cli {
namespace {

constexpr std::uint64_t last_field = 1'000'000;
constexpr std::uint64_t most_fields = 256;  // of a key: even empty fields need memory
constexpr char unit_separator = '\x1F';
constexpr char escape = '\x1B';

[[noreturn]] void refuse(const std::string& option, const std::string& found, const std::string& hint = "") {
  throw error(errc::invalid_argument, {"invalid list of fields", option,
                                       "numbers from 1 to 1,000,000 or ranges, such as 1,3-5, or names of CSV columns",
                                       "'" + found + "'", hint});
}

// "3", "3-5", "3-" or "-5"; false if the text does not look like one.
bool parse_range(std::string_view text, field_range& range) {
  if (text.empty() || text.find_first_not_of("0123456789-") != std::string_view::npos || text == "-") return false;
  const auto number = [](std::string_view digits, std::uint64_t& value) {
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return problem == std::errc() && end == digits.data() + digits.size();
  };
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    if (!number(text, range.first)) return false;
    range.last = range.first;
    return true;
  }
  const std::string_view from = text.substr(0, dash);
  const std::string_view to = text.substr(dash + 1);
  range.first = 1;
  range.last = field_range::open;
  return (from.empty() || number(from, range.first)) && (to.empty() || number(to, range.last));
}

}  // namespace

std::vector<field_range> parse_fields(const std::string& text, const std::string& option) {
  std::vector<field_range> result;
  std::string scratch;
  std::uint64_t count = 0;
  csv_cursor list(text, ',');
  if (text.empty() || !list.next() || list.record().size() != text.size()) refuse(option, text);
  for (const std::string_view raw : list.fields()) {
    field_range range;
    if (parse_range(raw, range)) {
      const bool has_end = range.last != field_range::open;
      if (range.first == 0 || range.first > last_field || (has_end && range.last > last_field)) refuse(option, text);
      if (range.last < range.first) refuse(option, text, "give the lower number of a range first");
    } else {
      range.name = csv_value(raw, scratch);
      if (range.name.empty()) refuse(option, text);
    }
    count += range.last == field_range::open ? 1 : range.last - range.first + 1;
    if (count > most_fields) refuse(option, text, "a key can have at most 256 fields");
    result.push_back(std::move(range));
  }
  return result;
}

std::string parse_delimiter(const std::string& text, const std::string& option) {
  const auto refuse_escape = [&] {
    throw error(errc::invalid_argument,
                {"invalid field separator", option, "text, in which \\t \\n \\r \\0 \\\\ and \\xHH are bytes",
                 "'" + text + "'", "write a backslash as \\\\"});
  };
  if (text.empty()) throw error(errc::invalid_argument, {"the field separator is empty", option, "", "", ""});
  if (text == "\\") return text;
  constexpr std::string_view letters = "tnr0\\";
  constexpr std::string_view bytes("\t\n\r\0\\", 5);
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      result += text[i];
      continue;
    }
    if (++i == text.size()) refuse_escape();
    if (const std::size_t at = letters.find(text[i]); at != std::string_view::npos) {
      result += bytes[at];
      continue;
    }
    unsigned value = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] != 'x' || text.size() - i < 3 || std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2)
      refuse_escape();
    result += static_cast<char>(value);
    i += 2;
  }
  return result;
}

void split_fields(std::string_view line, std::string_view delimiter, std::uint64_t most,
                  std::vector<std::string_view>& fields) {
  fields.clear();
  while (fields.size() < most) {
    const std::size_t at = delimiter.size() == 1 ? line.find(delimiter[0]) : line.find(delimiter);
    fields.push_back(line.substr(0, at));
    if (at == std::string_view::npos) return;
    line.remove_prefix(at + delimiter.size());
  }
}

std::string_view text_of_range(std::string_view line, std::string_view delimiter, const field_range& range) {
  for (std::uint64_t skipped = 1; skipped < range.first; ++skipped) {
    const std::size_t at = line.find(delimiter);
    if (at == std::string_view::npos) return {};
    line.remove_prefix(at + delimiter.size());
  }
  std::size_t end = line.find(delimiter);
  for (std::uint64_t field = range.first; field < range.last && end != std::string_view::npos; ++field)
    end = line.find(delimiter, end + delimiter.size());
  return line.substr(0, end);
}

void made_keys::join(std::span<const std::string_view> fields, std::vector<std::string_view>& keys) {
  if (fields.size() == 1) {
    keys.push_back(fields.front());
    return;
  }
  const std::size_t first = bytes_.size();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) bytes_ += unit_separator;
    const std::string_view field = fields[i];
    const bool is_plain = field.find(unit_separator) == std::string_view::npos && field.find(escape) == field.npos;
    if (is_plain) {
      bytes_ += field;
      continue;
    }
    for (const char byte : field) {
      if (byte == unit_separator || byte == escape) bytes_ += escape;
      bytes_ += byte;
    }
  }
  made_.push_back({keys.size(), first, bytes_.size() - first});
  keys.emplace_back();
}

void made_keys::copy(std::string_view field, std::vector<std::string_view>& keys) {
  made_.push_back({keys.size(), bytes_.size(), field.size()});
  bytes_ += field;
  keys.emplace_back();
}

void made_keys::settle(std::vector<std::string_view>& keys) const {
  for (const made& m : made_) keys[m.key] = std::string_view(bytes_).substr(m.first, m.size);
}

}  // namespace bloomery::cli
