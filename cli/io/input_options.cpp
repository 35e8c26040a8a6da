// Which options of inputs go together.
#include "cli/io/input.hpp"

#include <bloomery/error.hpp>

#include <algorithm>

namespace bloomery::cli {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& option, const std::string& hint,
                         const std::string& expected = "", const std::string& found = "") {
  throw error(errc::invalid_argument, {what, option, expected, found, hint});
}

bool has_name(const field_range& range) { return !range.name.empty(); }

void check_delimiter(const input_options& options) {
  const std::string& delimiter = options.delimiter;
  if (delimiter.empty()) return;
  if (!options.paths.empty()) refuse("lines of JSON have no separator of fields", "-d", "leave out -d or --jsonl");
  if (options.csv) {
    if (delimiter.size() == 1 && delimiter.find_first_of("\"\r\n") == std::string::npos) return;
    refuse("cannot separate the fields of CSV by this", "-d", "", "one byte, not a quote or a line break",
           "'" + delimiter + "'");
  }
  if (options.fields.empty() && !options.time.is_set())
    refuse("a separator of fields says nothing by itself", "-d", "name the field: -f 1");
  if (delimiter.find(options.line_end()) != std::string::npos)
    refuse("lines end with a byte of the separator of fields", "-d", "choose another separator, or -0");
}

void check_time(const input_options& options) {
  const time_option& time = options.time;
  if (!time.is_set()) {
    if (options.format_is_set) refuse("a format of times needs their place", "--time-format", "add --time-field");
    return;
  }
  if (time.path && options.paths.empty())
    refuse("a path to a value is for JSON Lines", "--time-field", "use the number of a field, or add --jsonl");
  if (time.field && !options.paths.empty())
    refuse("lines of JSON have paths, not fields", "--time-field", "use a path, such as .time");
  if (options.csv && time.field && !time.field->is_single())
    refuse("a time is in one field of CSV", "--time-field", "use one number or name");
}

}  // namespace

bool input_options::has_header() const {
  return csv &&
         (header || std::any_of(fields.begin(), fields.end(), has_name) || (time.field && has_name(*time.field)));
}

void check(const input_options& options) {
  if (!options.csv) {
    if (options.header) refuse("a header is for CSV", "--header", "add --csv, or leave out --header");
    if (std::any_of(options.fields.begin(), options.fields.end(), has_name)) {
      refuse("columns have names in CSV only", "-f", "use numbers, or add --csv", "numbers from 1",
             "'" + std::find_if(options.fields.begin(), options.fields.end(), has_name)->name + "'");
    }
    if (options.time.field && has_name(*options.time.field)) {
      refuse("columns have names in CSV only", "--time-field", "use a number, or add --csv", "a number from 1",
             "'" + options.time.field->name + "'");
    }
  }
  if (!options.paths.empty()) {
    if (options.csv) refuse("input is CSV or JSON Lines", "--jsonl", "leave out --csv or --jsonl");
    if (!options.fields.empty()) refuse("lines of JSON have paths, not fields", "-f", "leave out -f or --jsonl");
  }
  if (options.csv && options.nul_separated)
    refuse("records of CSV end with a line break", "-0", "leave out -0 or --csv");
  check_delimiter(options);
  check_time(options);
  if (options.crlf && options.nul_separated) refuse("lines end with CR LF or with NUL", "--crlf", "drop --crlf or -0");
}

}  // namespace bloomery::cli
