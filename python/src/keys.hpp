// A Python object as one key: str, bytes-like objects and integers in the form that a filter accepts.
#pragma once

#include <bloomery/params.hpp>

#include <pybind11/pybind11.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace bloomery::python {

/// Throws TypeError: a filter of this kind does not accept the key.
[[noreturn]] void refuse_key(pybind11::handle key, key_kind kind);

/// The number that an integer object stands for, modulo 2^64, as for all integer keys of the library.
/// Throws OverflowError: less than -2^63 or more than 2^64 - 1.
std::uint64_t integer_of(pybind11::handle integer);

/// The text of a str in UTF-8, or the bytes of a bytes object. Valid as long as the object. Throws UnicodeEncodeError:
/// the str has a lone surrogate.
inline std::string_view text_of_str(PyObject* key) {
  if (PyUnicode_IS_COMPACT_ASCII(key)) {
    return {static_cast<const char*>(PyUnicode_DATA(key)), static_cast<std::size_t>(PyUnicode_GET_LENGTH(key))};
  }
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(key, &size);
  if (text == nullptr) throw pybind11::error_already_set();
  return {text, static_cast<std::size_t>(size)};
}

inline std::string_view text_of_bytes(PyObject* key) {
  return {PyBytes_AS_STRING(key), static_cast<std::size_t>(PyBytes_GET_SIZE(key))};
}

/// Characters of the decimal text of a 64-bit integer, with its sign.
inline constexpr std::size_t most_digits = 20;

/// Writes the decimal text of an integer object of at most 64 bits to `digits`, which has room for most_digits. Empty:
/// it has more bits.
std::string_view decimal_of(pybind11::handle integer, char* digits);

/// Any key for a filter of bytes that is not a str, bytes or 64-bit integer: the decimal text of a larger integer, or
/// the bytes of a bytearray or memoryview. Throws TypeError for all other objects.
std::string rare_text_of(pybind11::handle key);

/// Calls `with` with a key as std::string_view, or as std::uint64_t for a filter of integers.
template <class With>
auto with_key(PyObject* key, key_kind kind, With with) {
  if (kind == key_kind::u64le) {
    if (!PyIndex_Check(key)) refuse_key(key, kind);
    return with(integer_of(key));
  }
  if (PyUnicode_Check(key)) return with(text_of_str(key));
  if (PyBytes_Check(key)) return with(text_of_bytes(key));
  if (PyLong_Check(key)) {
    char digits[most_digits];
    if (const std::string_view text = decimal_of(key, digits); !text.empty()) return with(text);
  }
  const std::string text = rare_text_of(key);
  return with(std::string_view(text));
}

}  // namespace bloomery::python
