// Values from JSON Lines, by paths as in jq: .user.id, .tags[0], ."odd name".
//
// A string is its text, a number is its digits, true, false and null are these words, and an object or array is its
// JSON text. If a name occurs twice in an object, the last one counts, as in jq. simdjson reads each line once, from
// its first byte to its last. Values that no path leads to are checked for closed strings and brackets only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace bloomery::cli {

/// From the value of a line to a value in it: names of fields and indices of arrays.
struct json_path {
  std::vector<std::variant<std::string, std::uint64_t>> steps;
  std::string text;  ///< as it was given

  friend bool operator==(const json_path&, const json_path&) = default;
};

/// ".user.id,.tags[0]" @throws error invalid_argument
std::vector<json_path> parse_json_paths(const std::string& text, const std::string& option);

/// Reads lines. Reuses its memory: one object per thread.
class json_reader {
 public:
  static constexpr std::size_t most_paths = 64;

  /// @param paths  at most most_paths; they must outlive the object
  explicit json_reader(std::vector<const json_path*> paths);
  ~json_reader();

  using value = std::optional<std::string_view>;

  /// The values at the paths; empty where a line has none. They are valid until the next call.
  ///
  /// @param readable  bytes that may be read from the line's first on; with 64 more than the line has, it is not copied
  /// @return  why the line cannot be read, for an error; then the values have no meaning. Empty if it can
  std::string read(std::string_view line, std::size_t readable);
  std::span<const value> values() const noexcept { return values_; }

 private:
  struct parser;
  std::vector<const json_path*> paths_;
  std::vector<value> values_;
  std::unique_ptr<parser> parser_;
  std::string padded_;
};

}  // namespace bloomery::cli
