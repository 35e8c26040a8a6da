// Reading values of SQL, with the errors for values of a wrong type.
#include "sqlite/values.hpp"

#include <bloomery/error.hpp>

namespace bloomery::sqlite {

const char* type_of(sqlite3_value* value) {
  switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER: return "INTEGER";
    case SQLITE_FLOAT: return "REAL";
    case SQLITE_TEXT: return "TEXT";
    case SQLITE_BLOB: return "BLOB";
    default: return "NULL";
  }
}

std::string_view bytes_of(sqlite3_value* value) {
  const bool is_text = sqlite3_value_type(value) == SQLITE_TEXT;
  const void* bytes = is_text ? sqlite3_value_text(value) : sqlite3_value_blob(value);
  const auto size = static_cast<std::size_t>(sqlite3_value_bytes(value));  // after the call that may convert to UTF-8
  if (bytes == nullptr) {
    if (is_text || size != 0) throw std::bad_alloc();
    return {};
  }
  return {static_cast<const char*>(bytes), size};
}

std::span<const std::uint8_t> blob_of(sqlite3_value* value, const char* where) {
  if (sqlite3_value_type(value) != SQLITE_BLOB) {
    throw error(errc::invalid_argument, {"wrong type", where, "a BLOB with the bytes of a filter file", type_of(value),
                                         "read a file with bloom_load(FILE)"});
  }
  const std::string_view bytes = bytes_of(value);
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

std::string path_of(sqlite3_value* value, const char* where) {
  if (sqlite3_value_type(value) != SQLITE_TEXT) {
    throw error(errc::invalid_argument, {"wrong type", where, "a file name as TEXT", type_of(value), ""});
  }
  const std::string_view path = bytes_of(value);
  if (path.empty() || path.find('\0') != std::string_view::npos) {
    throw error(
        errc::invalid_argument,
        {path.empty() ? "the file name is empty" : "the file name contains a NUL character", where, "", "", ""});
  }
  return std::string(path);
}

void refuse_key(sqlite3_value* key, key_kind kind) {
  const bool integers = kind == key_kind::u64le;
  throw error(
      errc::invalid_argument,
      {"wrong type", "key", integers ? "INTEGER for a filter of integers" : "TEXT, BLOB or INTEGER", type_of(key),
       integers ? "convert the key with CAST(key AS INTEGER)"
                : "convert the key with CAST(key AS INTEGER) or CAST(key AS TEXT)"});
}

}  // namespace bloomery::sqlite
