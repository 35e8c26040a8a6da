// thrift_reader: a decoder of the compact protocol of Apache Thrift, which encodes the metadata of Parquet files.
//
//   struct   fields, then 00
//   field    (difference to the previous field number) << 4 | type, or 0 | type and the field number; then the value
//   i16..64  a zigzag varint: 0, -1, 1, -2 are 0, 1, 2, 3; a varint has 7 bits per byte, the lowest bits first
//   bool     true and false are types of fields without a value; in lists, a value is one byte
//   binary   the length as a varint, then the bytes
//   list     size << 4 | element type, or F0 | element type and the size as a varint; then the elements
//   map      the size as a varint; if it is not 0: key type << 4 | value type, then the pairs
//
// https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
//
// The bytes are untrusted. The decoder takes no memory: text refers to the input. A declared size is compared with the
// remaining bytes first, and each element has at least one byte, so all loops are bounded by the length of the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace bloomery::formats {

enum class thrift_type : std::uint8_t {
  stop = 0,  ///< the end of a struct
  boolean_true = 1,
  boolean_false = 2,
  byte = 3,
  i16 = 4,
  i32 = 5,
  i64 = 6,
  float64 = 7,
  binary = 8,
  list = 9,
  set = 10,
  map = 11,
  structure = 12,
  uuid = 13,
};

struct thrift_field {
  std::int16_t id;
  thrift_type type;
};

struct thrift_list {
  std::uint32_t size;
  thrift_type elements;
};

class thrift_reader {
 public:
  static constexpr std::uint32_t most_depth = 64;  ///< of structs, lists and maps within each other

  /// @param subject  what the bytes are, for errors: "the footer"
  /// @param path     the file, for errors. Both must outlive the reader.
  thrift_reader(std::span<const std::uint8_t> bytes, std::string_view subject, const std::string& path) noexcept
      : bytes_(bytes), subject_(subject), path_(path) {}

  /// Calls each(thrift_field) for each field of a struct. It must consume the value with one of the functions below.
  template <class Each>
  void structure(Each&& each) {
    descend();
    for (thrift_field field{0, thrift_type::stop}; next(field);) each(std::as_const(field));
    --depth_;
  }
  /// The same, for a value of this type. @throws error  damaged: the type is not a struct
  template <class Each>
  void structure(thrift_type type, Each&& each) {
    expect(type, thrift_type::structure);
    structure(std::forward<Each>(each));
  }

  /// Values of fields and elements of the given type. @throws error  damaged: the type is another one, or the value is
  /// out of range or exceeds the input
  bool boolean(thrift_type type);
  std::int8_t byte(thrift_type type);
  std::int32_t i32(thrift_type type);
  std::int64_t i64(thrift_type type);
  std::string_view binary(thrift_type type);

  /// The header of a list. The caller then reads `size` elements. @throws error  damaged: more elements than bytes
  thrift_list list(thrift_type type, thrift_type elements);

  /// Calls each() for each element of a list. It must consume one element of the given type.
  template <class Each>
  void list(thrift_type type, thrift_type elements, Each&& each) {
    descend();
    for (std::uint32_t left = list(type, elements).size; left > 0; --left) each();
    --depth_;
  }

  /// Passes over the value of a field.
  void skip(thrift_type type);

  std::size_t position() const noexcept { return at_; }
  std::size_t left() const noexcept { return bytes_.size() - at_; }

  /// @throws error  damaged, with the position
  [[noreturn]] void fail(std::string expected, std::string found) const;

 private:
  bool next(thrift_field& field);
  void descend();
  void expect(thrift_type found, thrift_type expected) const;
  std::uint8_t octet();
  std::uint64_t varint();
  std::int64_t zigzag();
  std::span<const std::uint8_t> take(std::uint64_t count);
  thrift_list list_header();
  std::uint32_t size_of(std::uint64_t declared, std::uint64_t least_bytes) const;
  void skip_element(thrift_type type);

  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  std::uint32_t depth_ = 0;
  std::string_view subject_;
  const std::string& path_;
};

}  // namespace bloomery::formats
