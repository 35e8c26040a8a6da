// Values of SQL as C++ values: bytes, paths, and keys in the form that a filter accepts.
#pragma once

#include "sqlite/calls.hpp"

#include <bloomery/params.hpp>

#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace bloomery::sqlite {

/// "INTEGER", "REAL", "TEXT", "BLOB" or "NULL".
const char* type_of(sqlite3_value* value);

/// The bytes of a BLOB, or of a TEXT in UTF-8. Valid until the next call on the value. @throws std::bad_alloc
std::string_view bytes_of(sqlite3_value* value);

/// The bytes of a filter file. @param where  for messages: the function and the argument
/// @throws error  invalid_argument: the value is not a BLOB
std::span<const std::uint8_t> blob_of(sqlite3_value* value, const char* where);

/// The path of a file. @throws error  invalid_argument: the value is not TEXT, is empty or contains NUL
std::string path_of(sqlite3_value* value, const char* where);

/// @throws error  invalid_argument: a filter of this kind does not accept the key
[[noreturn]] void refuse_key(sqlite3_value* key, key_kind kind);

/// Calls `with` with a key as std::string_view, or as std::uint64_t for an INTEGER and a filter of integers. In a
/// filter of bytes, an INTEGER is its decimal text, which is the same key as a line of the command's input.
/// @throws error  invalid_argument: the key is a REAL, or is TEXT or BLOB for a filter of integers
template <class With>
auto with_key(sqlite3_value* key, key_kind kind, With with) {
  switch (sqlite3_value_type(key)) {
    case SQLITE_TEXT:
    case SQLITE_BLOB:
      if (kind == key_kind::u64le) refuse_key(key, kind);
      return with(bytes_of(key));
    case SQLITE_INTEGER: {
      const std::int64_t integer = sqlite3_value_int64(key);
      if (kind == key_kind::u64le) return with(static_cast<std::uint64_t>(integer));
      char digits[20];  // "-9223372036854775808"
      const char* end = std::to_chars(digits, digits + sizeof digits, integer).ptr;
      return with(std::string_view(digits, static_cast<std::size_t>(end - digits)));
    }
    default: refuse_key(key, kind);
  }
}

}  // namespace bloomery::sqlite
