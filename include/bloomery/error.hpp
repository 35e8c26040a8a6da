// The one exception bloomery throws, from the places where the outside world can say no: sizing, making, opening,
// saving. In memory, insert and may_contain cannot fail.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace bloomery {

/// What went wrong, for a program. error::what() says it to a person.
enum class errc : std::uint8_t {
  invalid_argument,  ///< a number outside its range, a name that no table knows
  too_large,         ///< a size beyond 64 bits, this machine's memory or a layout's limit
  not_found,         ///< no such file
  not_permitted,     ///< the system refuses to read or write it
  not_a_filter,      ///< the bytes are not a bloomery file
  wrong_version,     ///< a bloomery file of a format this library does not know
  damaged,           ///< a bloomery file whose bytes contradict each other
  incompatible,      ///< two filters, or a filter and a type, whose parameters differ
  already_exists,    ///< a file that was to be new
  locked,            ///< another process is writing
  io,                ///< reading or writing failed: full disk, broken device
  unavailable,       ///< a server could not be reached in time; what was asked may be done or not
};

/// The parts of an error's sentence; empty parts are left out.
struct error_text {
  std::string what;      ///< what happened: "not a bloomery filter"
  std::string where;     ///< the file, option or field: "users.bloom"
  std::string expected;  ///< what would have been right
  std::string found;     ///< what was there
  std::string way_out;   ///< what the reader can do now
};

/// An error with a code for programs and a sentence for people:
/// "users.bloom: file is cut short: expected 8192 bytes, found 5000; restore it or build it again".
///
/// Example:
///     try {
///       filter<> impossible(1'000'000, 1.5);
///     } catch (const error& e) {
///       assert(e.code() == errc::invalid_argument);
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
