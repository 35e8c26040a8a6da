// A stream of bytes from a file, a pipe or a decoder.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace bloomery::cli {

class byte_source {
 public:
  virtual ~byte_source() = default;
  /// Reads at least one byte; returns 0 at the end or after a signal. @throws error
  virtual std::size_t read(std::span<char> to) = 0;
};

/// The name of an input that is standard input.
inline constexpr const char* standard_input = "-";

/// The name of an input, for messages.
inline std::string shown_input(const std::string& name) { return name == standard_input ? "standard input" : name; }

}  // namespace bloomery::cli
