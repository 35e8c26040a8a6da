// Checks of contradictory input options.
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
  if (!options.paths.empty())
    refuse("JSON Lines have no field separator", "--delimiter", "leave out --delimiter or --jsonl");
  if (options.csv) {
    if (delimiter.size() == 1 && delimiter.find_first_of("\"\r\n") == std::string::npos) return;
    refuse("invalid field separator for CSV", "--delimiter", "", "one byte, not a quote or a line break",
           "'" + delimiter + "'");
  }
  if (options.fields.empty() && !options.time.is_set()) refuse("requires --field", "--delimiter", "add --field 1");
  if (delimiter.find(options.line_end()) != std::string::npos)
    refuse("the field separator contains the line end", "--delimiter", "choose another separator, or add --null");
}

void check_time(const input_options& options) {
  const time_option& time = options.time;
  if (!time.is_set()) {
    if (options.format_is_set) refuse("requires --time-field", "--time-format", "add --time-field");
    return;
  }
  if (time.path && options.paths.empty())
    refuse("a path needs JSON Lines", "--time-field", "use the number of a field, or add --jsonl");
  if (time.field && !options.paths.empty())
    refuse("JSON Lines have paths, not fields", "--time-field", "use a path, such as .time");
  if (options.csv && time.field && !time.field->is_single())
    refuse("in CSV a time is a single field", "--time-field", "use one number or name");
}

}  // namespace

bool input_options::has_header() const {
  return csv &&
         (header || std::any_of(fields.begin(), fields.end(), has_name) || (time.field && has_name(*time.field)));
}

void check(const input_options& options) {
  if (!options.csv) {
    if (options.header) refuse("requires --csv", "--header", "add --csv, or leave out --header");
    if (std::any_of(options.fields.begin(), options.fields.end(), has_name)) {
      refuse("only CSV has column names", "--field", "use numbers, or add --csv", "numbers from 1",
             "'" + std::find_if(options.fields.begin(), options.fields.end(), has_name)->name + "'");
    }
    if (options.time.field && has_name(*options.time.field)) {
      refuse("only CSV has column names", "--time-field", "use a number, or add --csv", "a number from 1",
             "'" + options.time.field->name + "'");
    }
  }
  if (!options.paths.empty()) {
    if (options.csv) refuse("--csv and --jsonl exclude each other", "", "leave out --csv or --jsonl");
    if (!options.fields.empty()) refuse("JSON Lines have paths, not fields", "--field", "leave out --field or --jsonl");
  }
  if (options.csv && options.nul_separated) refuse("--csv and --null exclude each other", "", "leave out one of them");
  check_delimiter(options);
  check_time(options);
  if (options.crlf && options.nul_separated)
    refuse("--crlf and --null exclude each other", "", "leave out one of them");
}

}  // namespace bloomery::cli
