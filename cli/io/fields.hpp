// Fields of lines: the list of -f, the separator of -d, and the key made of several fields.
//
// The key of one field is the field itself. The key of several fields is the fields in the order of the list, joined by
// the unit separator, byte 1F; within a field, each byte 1F or 1B is preceded by 1B. Therefore no two tuples have the
// same key, whatever bytes they contain, and a tuple has the same key in text, CSV and JSON Lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::cli {

/// Neighboring fields, counted from 1, or a column of a CSV file by its name.
struct field_range {
  static constexpr std::uint64_t open = std::numeric_limits<std::uint64_t>::max();  ///< `last` of "2-"

  std::uint64_t first = 1;
  std::uint64_t last = 1;
  std::string name = {};  ///< then the numbers have no meaning

  bool is_single() const noexcept { return !name.empty() || first == last; }

  friend bool operator==(const field_range&, const field_range&) = default;
};

/// "1,3-5,7-", or names as in a CSV header: "user,\"first,last\"". A number in quotes is a name.
/// @throws error invalid_argument
std::vector<field_range> parse_fields(const std::string& text, const std::string& option);

/// A separator of fields. \t \n \r \0 \\ and \xHH stand for bytes; a single backslash is itself.
/// @throws error invalid_argument: empty, or another escape
std::string parse_delimiter(const std::string& text, const std::string& option);

/// Splits a line into its first `most` fields.
void split_fields(std::string_view line, std::string_view delimiter, std::uint64_t most,
                  std::vector<std::string_view>& fields);

/// The text from the first field of a range to the last, with the separators between; empty if the line has none.
std::string_view text_of_range(std::string_view line, std::string_view delimiter, const field_range& range);

/// Keys that do not occur in the input literally: joined or unescaped ones.
class made_keys {
 public:
  void clear() {
    bytes_.clear();
    made_.clear();
  }

  /// Appends the key of these fields to `keys`. A key of one field points to the field. Other keys are complete after
  /// settle().
  void join(std::span<const std::string_view> fields, std::vector<std::string_view>& keys);

  /// Appends a copy of a field as the key.
  void copy(std::string_view field, std::vector<std::string_view>& keys);

  /// To be called after the last key of a batch: makes keys point to their bytes.
  void settle(std::vector<std::string_view>& keys) const;

 private:
  struct made {
    std::size_t key;  // its place in keys
    std::size_t first;
    std::size_t size;
  };
  std::string bytes_;
  std::vector<made> made_;
};

}  // namespace bloomery::cli
