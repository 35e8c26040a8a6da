// An open file of another system, whose beginning has been read.
#pragma once

#include "formats/format_row.hpp"
#include "platform/posix.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

struct foreign_file {
  /// @param format  a name; empty: recognized by the content  @throws error  as import_filter()
  foreign_file(const std::string& path, std::string_view format);

  std::uint64_t bytes() const { return file.bytes; }

  /// All layers, for a row with read_layers. @throws error  damaged, too_large
  std::vector<formats::stored_layer> read_layers() const;

  posix::opened file;
  formats::head head;
  const formats::format_row* row;  ///< null: an added format, or a file that may have one
  formats::contents found;
};

}  // namespace bloomery
