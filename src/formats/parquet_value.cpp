// From the text of a key to the bytes that a Bloom filter of a Parquet file hashes.
#include "formats/parquet_value.hpp"

#include <bloomery/error.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <system_error>

namespace bloomery::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "plain encoding is little-endian");

[[noreturn]] void refuse(const parquet_chunk& column, std::string_view text, const std::string& expected) {
  constexpr std::size_t most_shown = 40;
  std::string shown(text.substr(0, most_shown));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7E) c = '?';
  }
  if (text.size() > most_shown) shown += "...";
  throw error(errc::invalid_argument,
              {"the key is not a value of the column", column.column,
               expected + " (type " + name_of(column.type) +
                   (column.annotation.empty() ? "" : ", " + std::string(column.annotation)) + ")",
               "'" + shown + "'", ""});
}

template <class Number>
std::span<const std::uint8_t> stored(Number value, std::span<std::uint8_t, plain_number_bytes> buffer) {
  std::memcpy(buffer.data(), &value, sizeof value);
  return buffer.first(sizeof value);
}

template <class Integer>
Integer integer_of(const parquet_chunk& column, std::string_view text) {
  Integer value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) {
    refuse(column, text,
           "an integer from " + std::to_string(std::numeric_limits<Integer>::min()) + " to " +
               std::to_string(std::numeric_limits<Integer>::max()));
  }
  return value;
}

// Not std::from_chars: libc++ has none for floating-point numbers before version 20. In the locale "C", the decimal
// separator is always a point.
locale_t c_locale() {
  static const locale_t c = ::newlocale(LC_ALL_MASK, "C", nullptr);
  return c;
}
void parse(const char* text, char** end, float& value) { value = ::strtof_l(text, end, c_locale()); }
void parse(const char* text, char** end, double& value) { value = ::strtod_l(text, end, c_locale()); }

template <class Float>
Float float_of(const parquet_chunk& column, std::string_view text) {
  const char* const expected = "a decimal number within the range of the type, inf or -inf";
  constexpr std::string_view infinity = "inf";
  if (text == infinity) return std::numeric_limits<Float>::infinity();
  if (text.size() == infinity.size() + 1 && text[0] == '-' && text.substr(1) == infinity) {
    return -std::numeric_limits<Float>::infinity();
  }
  // No spaces, hexadecimal digits or names, and no sign but a minus at the start.
  if (text.empty() || text[0] == '+' || text.find_first_not_of("0123456789.eE+-") != text.npos) {
    refuse(column, text, expected);
  }
  const std::string terminated(text);
  char* end = nullptr;
  Float value{};
  parse(terminated.c_str(), &end, value);
  const bool is_zero = text.substr(0, text.find_first_of("eE")).find_first_of("123456789") == text.npos;
  if (end != terminated.c_str() + terminated.size() || std::isinf(value) || (value == 0 && !is_zero)) {
    refuse(column, text, expected);
  }
  return value;
}

template <class Float>
bool flip(std::span<std::uint8_t, plain_number_bytes> buffer) noexcept {
  Float value{};
  std::memcpy(&value, buffer.data(), sizeof value);
  if (value != 0) return false;
  value = -value;
  std::memcpy(buffer.data(), &value, sizeof value);
  return true;
}

}  // namespace

std::span<const std::uint8_t> plain_value(const parquet_chunk& column, std::string_view text,
                                          std::span<std::uint8_t, plain_number_bytes> buffer) {
  switch (column.type) {
    case parquet_type::boolean:
      if (text != "true" && text != "false") refuse(column, text, "true or false");
      return stored(static_cast<std::uint8_t>(text == "true"), buffer);
    case parquet_type::int32:
      if (column.is_unsigned) return stored(integer_of<std::uint32_t>(column, text), buffer);
      return stored(integer_of<std::int32_t>(column, text), buffer);
    case parquet_type::int64:
      if (column.is_unsigned) return stored(integer_of<std::uint64_t>(column, text), buffer);
      return stored(integer_of<std::int64_t>(column, text), buffer);
    case parquet_type::int96:
      throw error(errc::incompatible, {"values of type INT96 have no text", column.column, "", "",
                                       "write the file with timestamps of type INT64"});
    case parquet_type::float32: return stored(float_of<float>(column, text), buffer);
    case parquet_type::float64: return stored(float_of<double>(column, text), buffer);
    case parquet_type::fixed_len_byte_array:
      if (text.size() != column.value_bytes) refuse(column, text, std::to_string(column.value_bytes) + " bytes");
      break;
    case parquet_type::byte_array: break;
  }
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

bool flip_zero(const parquet_chunk& column, std::span<std::uint8_t, plain_number_bytes> buffer) noexcept {
  if (column.type == parquet_type::float32) return flip<float>(buffer);
  if (column.type == parquet_type::float64) return flip<double>(buffer);
  return false;
}

}  // namespace bloomery::formats
