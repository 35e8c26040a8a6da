// byte_source: a file that is read at offsets, by the readers of containers of filters.
#pragma once

#include <bloomery/detail/function_ref.hpp>

#include "platform/posix.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace bloomery::formats {

/// A file that is read at offsets.
struct byte_source {
  std::string path;         ///< for errors
  std::uint64_t bytes = 0;  ///< length of the file
  /// Fills the span with the bytes from the offset on, and returns their number: less than the span's size at the end
  /// of the file.
  callback<std::size_t(std::uint64_t offset, std::span<std::uint8_t> into)> read;

  /// Fills the span. @throws error  damaged: the file ends before
  void read_all(std::uint64_t offset, std::span<std::uint8_t> into) const;
};

/// A source that reads an open file, which must outlive it.
byte_source source_of(const posix::opened& file, const std::string& path);

}  // namespace bloomery::formats
