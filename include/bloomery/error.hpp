// bloomery::error, the only exception type of the library. Sizing, creating, opening, saving and network operations
// throw it. In memory, insert and may_contain cannot fail.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/hint.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace BLOOMERY_EXPORT bloomery {

/// The class of an error, for programs.
enum class errc : std::uint8_t {
  invalid_argument,  ///< a number outside its range, or an unknown name
  too_large,         ///< a size beyond 64 bits, this machine's memory or a layout's limit
  not_found,         ///< no such file
  not_permitted,     ///< the system denies reading or writing
  not_a_filter,      ///< the bytes are not a bloomery file
  wrong_version,     ///< a bloomery file of a format this library does not know
  damaged,           ///< a bloomery file whose bytes contradict each other
  incompatible,      ///< two filters, or a filter and a type, whose parameters differ
  already_exists,    ///< a file that should be created exists
  locked,            ///< another process is writing
  io,                ///< reading or writing failed: full disk, broken device
  unavailable,       ///< a server could not be reached in time; the operation may or may not have been executed
};

/// The name of the enumerator: "invalid_argument".
const char* name_of(errc code) noexcept;

/// The parts of an error message. what() omits empty parts.
struct error_text {
  std::string what;      ///< what failed: "not a bloomery filter"
  std::string where;     ///< the file, address or field: "users.bloom"
  std::string expected;  ///< the expected value, where a value was read and compared
  std::string found;     ///< the value found instead
  error_hint hint;       ///< what the caller can do
};

/// An error with codes for programs and what(), one English sentence without options of any command line:
/// "users.bloom: file is cut short: expected 8192 bytes, found 5000; restore the file from a copy or build it again".
///
/// Example:
///     try {
///       filter<> impossible(1'000'000, 1.5);
///     } catch (const error& e) {
///       assert(e.code() == errc::invalid_argument && e.text().where == "rate" && e.text().hint.empty());
///     }
class error : public std::runtime_error {
 public:
  error(errc code, error_text text);

  errc code() const noexcept { return code_; }
  const error_text& text() const noexcept { return text_; }

 private:
  errc code_;
  error_text text_;
};

}  // namespace bloomery
