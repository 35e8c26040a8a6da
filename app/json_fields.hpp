// json_fields: the fields of a small JSON object whose values may be long.
//
// The text is untrusted. It is parsed without a tree of values, and takes memory in proportion to its length.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace bloomery::app {

class json_fields {
 public:
  /// Reads an object whose values are non-negative integers, strings, arrays of 32-bit integers, or objects of these.
  /// Field "b" of object "a" is called "a.b", and "a" is a field, too.
  /// @throws error  damaged: not such an object, or a field occurs twice. All errors have `path`, which must outlive
  ///                the fields.
  json_fields(std::span<const std::uint8_t> text, const std::string& path);

  /// Whether the object has exactly these fields.
  bool has_exactly(std::span<const std::string_view> names) const;
  /// @throws error  damaged, unless it has. The error names a field that is missing or unknown.
  void check_names(std::span<const std::string_view> names) const;

  /// The value of a field. @throws error  damaged: another type, or not in least .. most
  std::uint64_t number(const std::string& name, std::uint64_t least, std::uint64_t most) const;
  const std::string& text(const std::string& name) const;
  const std::vector<std::uint32_t>& numbers(const std::string& name) const;

  /// @throws error  damaged
  [[noreturn]] void refuse(std::string what, std::string expected, std::string found) const;

 private:
  class handler;
  using any_value = std::variant<std::monostate, std::uint64_t, std::string, std::vector<std::uint32_t>>;

  template <class T>
  const T& value_of(const std::string& name, const char* type) const;

  std::map<std::string, any_value, std::less<>> fields_;
  const std::string& path_;
};

}  // namespace bloomery::app
