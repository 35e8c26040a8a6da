// Formats of other systems that a program adds to those of the library.
//
// The library has no parser of JSON, for example. A program that has one adds the formats: then open_filter(),
// import_filter(), export_filter() and file_formats() have them like those of the library.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/formats.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

/// The filter in a file.
struct added_filter {
  std::string_view format;  ///< its name in added_formats::formats
  params parameters;        ///< a scheme and a geometry at least
  heap_storage bits;        ///< as in a filter of bloomery; unused bits of the last byte are 0
};

/// Formats whose files are read and written as a whole.
struct added_formats {
  std::span<const file_format> formats;
  std::uint64_t most_file_bytes = 0;  ///< longer files are refused before they are read

  /// Whether a file with these first bytes, up to 4096, may have one of the formats. Others are not read as a whole.
  bool (*may_read)(std::span<const std::uint8_t> beginning) = nullptr;

  /// Reads a file of any of the formats, or of the named one. Takes memory in proportion to the length of the file.
  /// @throws error  damaged, not_a_filter: not a file of these formats. The error has `path`.
  added_filter (*read)(std::span<const std::uint8_t> file, std::string_view format, const std::string& path) = nullptr;

  /// The file. Requires a scheme of the format. @throws error  incompatible
  std::string (*write)(std::string_view format, const params& p, std::span<const std::uint8_t> bits) = nullptr;
};

/// Adds formats, instead of those added before. Not for use while other threads use formats: call it once, first.
void add_formats(const added_formats& formats);

}  // namespace bloomery
