// storable_object: the fields of an object in a file of Perl's Storable.
//
//   "pst0" | head | value        of store() and nstore(); without "pst0" what freeze() and nfreeze() return
//   head   4 | minor version | length and text of the byte order | sizes of int, long, pointers, floating point
//          5 | minor version                   network order, of nstore() and nfreeze()
//   value  a code and its data; the value of a hash is before its key
//
// The file is untrusted. It is read without a tree of values, so it takes memory only for the fields that are wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::formats {

/// The codes of values that a writer needs.
enum class storable_code : std::uint8_t {
  long_text = 1,  // length u32, bytes
  array = 2,      // number u32, values
  hash = 3,       // number u32, and for each: value, length u32 and bytes of the key
  reference = 4,  // value
  byte = 8,       // integer + 128
  integer = 9,    // i32, big-endian
  text = 10,      // length u8, bytes
  object = 17,    // length u8 and bytes of the name of the class, value
};

class storable_object {
 public:
  /// Reads the beginning of a file, up to the name of the class.
  /// @param file  the file, or its first bytes
  /// @param path  for errors; must outlive the object
  /// @throws error  damaged: not a file of Storable; incompatible: one whose value is not an object of this class
  storable_object(std::span<const std::uint8_t> file, std::string_view class_name, const std::string& path);

  /// Finds these fields of the object, which must be a hash and end the file. Other fields are ignored. Requires the
  /// whole file, and names that outlive the object.
  /// @throws error  damaged: a field is missing or occurs twice; incompatible: a value that only code can restore
  void find(std::span<const std::string_view> names);

  /// The value of a field that is a string, in the file. @throws error  damaged, incompatible
  std::span<const std::uint8_t> bytes(std::string_view name) const;

  /// The value of a field that is a number, or a string with a number. @throws error  damaged, incompatible
  double number(std::string_view name) const;

  /// The strings and numbers of the array to which a field refers. @throws error  damaged: not `least` to `most` of
  /// them; incompatible
  std::vector<std::string> texts(std::string_view name, std::uint32_t least, std::uint32_t most) const;

  /// @throws error  damaged
  [[noreturn]] void refuse(std::string what, std::string expected, std::string found) const;

 private:
  class cursor;

  std::span<const std::uint8_t> file_;
  const std::string& path_;
  bool is_big_endian_ = true;
  std::size_t integer_bytes_ = 0;  // 0: network order, which has integers of 32 bits only
  std::size_t double_bytes_ = 0;
  std::size_t hash_at_ = 0;  // after the name of the class
  std::map<std::string_view, std::size_t> values_;
};

/// Number as a text that Perl and number() read: the shortest of 15 digits or more.
std::string storable_number(double number);

}  // namespace bloomery::formats
