// CSV according to RFC 4180: records whose quoted fields may contain separators, doubled quotes and line breaks.
//
// A quote at the beginning of a field opens it, and the next quote that is not doubled closes it. Elsewhere a quote is
// an ordinary byte, and so is text between a closing quote and the next separator. A record ends at LF or CR LF outside
// quotes; an empty line is a record with one empty field. Python's csv module reads the same fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::cli {

/// Finds the ends of records in a text that grows.
class csv_scanner {
 public:
  explicit csv_scanner(char delimiter) : delimiter_(delimiter) {}

  /// @param text  from the beginning of a record
  /// @param seen  bytes of it that were already passed to the last call
  /// @return  the end of the last complete record, or 0: the next call's text begins there
  std::size_t last_end(std::string_view text, std::size_t seen);

  /// Whether the text so far ends within quotes, and the place of the opening quote in the text of the next call.
  bool in_quotes() const noexcept { return state_ == state::quoted; }
  std::size_t quote_at() const noexcept { return quote_at_; }

 private:
  // after_quote: the last byte was a quote within quotes, which closes them or is the first of two.
  enum class state { plain, quoted, after_quote };

  bool opens(std::string_view text, std::size_t quote) const;

  char delimiter_;
  state state_ = state::plain;
  std::size_t quote_at_ = 0;
};

/// Goes through the records of a text and splits them.
class csv_cursor {
 public:
  /// @param most  fields that are split; the others are skipped
  csv_cursor(std::string_view text, char delimiter, std::uint64_t most = ~std::uint64_t{0});

  /// Goes to the next record; false at the end.
  bool next();

  /// The record without its LF.
  std::string_view record() const noexcept { return record_; }

  /// The fields as they are in the text, with their quotes.
  const std::vector<std::string_view>& fields() const noexcept { return fields_; }

 private:
  void split_unquoted(std::string_view record);
  const char* split_quoted();

  const char* at_;
  const char* end_;
  const char* next_quote_;
  char delimiter_;
  std::uint64_t most_;
  std::string_view record_;
  std::vector<std::string_view> fields_;
};

/// The value of a field: without its quotes. `scratch` holds it if it is not a part of the field's text.
std::string_view csv_value(std::string_view field, std::string& scratch);

/// The first record of a CSV file.
struct csv_header {
  std::string line;  ///< without its end
  std::vector<std::string> names;
};

csv_header parse_csv_header(std::string_view record, char delimiter);

}  // namespace bloomery::cli
