// Values of Redis modules as DUMP returns them:
//
//   u8 7: a value of a module;  u8 0x81, u64: the name of its type in 9 x 6 bits, and a version in 10 bits
//   parts:  2, integer;  4, f64;  5, bytes
//   u8 0: end;  u16 version of RDB;  u64 CRC-64 of all bytes before
//
// Integers have 1, 2, 5 or 9 bytes, see rdb.hpp. Bytes are their length and themselves, or 0xC3, the compressed length,
// the length and LZF data. f64, u16 and the checksum are little-endian. redis-cli --raw appends a newline.
#pragma once

#include "formats/format_row.hpp"
#include "formats/rdb.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace bloomery::formats {

/// The type of a module's values: its name, 9 letters of 6 bits, and the version of its encoding.
struct module_type {
  std::string_view name;
  std::uint64_t version;

  static constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  static constexpr std::uint64_t version_bits = 10;

  /// The number at offset 2 of a value.
  constexpr std::uint64_t identity() const {
    std::uint64_t number = 0;
    for (const char letter : name) number = number << 6 | alphabet.find(letter);
    return number << version_bits | version;
  }

  /// Whether a file begins as a value of this type, of any version.
  bool has_signature(const head& file) const;
};

/// Reads a value part by part. @throws error  damaged, by all functions
class module_value_reader {
 public:
  /// @param bytes  those of the file, or its beginning
  module_value_reader(const head& file, std::span<const std::uint8_t> bytes) : file_(file), bytes_(bytes), in_(bytes) {}

  /// Reads the signature. @throws error  damaged: another type; incompatible: another version
  void begin(const module_type& type);

  std::uint64_t integer();
  double floating();

  /// Bytes as they are stored.
  struct stored_bytes {
    std::uint64_t stored = 0;    ///< their length
    std::uint64_t expanded = 0;  ///< after decompression: at most rdb::most_expansion times as many
    bool is_compressed = false;
  };

  /// The lengths of bytes, which follow.
  stored_bytes lengths();

  /// The bytes that follow lengths(), as stored.
  std::span<const std::uint8_t> stored(const stored_bytes& of);

  /// Expands stored(). Requires `into.size() == of.expanded`.
  void expand(const stored_bytes& of, std::span<const std::uint8_t> data, std::span<std::uint8_t> into) const;

  /// Reads the end, and compares the checksum and the length of the file.
  void end();

  std::uint64_t at() const { return in_.at(); }

 private:
  template <class T>
  T checked(T value) const {
    if (!in_.is_valid()) refuse_truncated();
    return value;
  }
  [[noreturn]] void refuse_truncated() const;
  void expect(std::uint8_t kind);

  const head& file_;
  std::span<const std::uint8_t> bytes_;
  rdb::reader in_;
};

/// Bytes after the last part of a value.
inline constexpr std::size_t module_value_end = 11;

/// Writes a value.
class module_value_writer {
 public:
  void begin(const module_type& type);
  void integer(std::uint64_t number);
  void floating(double number);
  void begin_bytes(std::uint64_t length);  ///< the caller writes the bytes

  /// @param crc  of all bytes before those in this writer
  void end(std::uint64_t crc);

  std::vector<std::uint8_t> bytes;
};

}  // namespace bloomery::formats
