// Files of other systems that contain many filters: Parquet files and tables of LevelDB.
#pragma once

#include "cli/commands/common.hpp"
#include "cli/commands/open_handle.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace bloomery::cli {

struct container_info_options {
  std::string file;
  std::string column;          ///< empty: list the columns
  std::optional<double> rate;  ///< target FPR of the writer, which the file does not state
  bool json = false;
};

/// A line of the output of info.
std::string line_of(std::string_view name, std::string_view value);

/// A kind of such files.
struct container_kind {
  const char* format;
  const char* name;  ///< with its article, for messages
  bool has_columns;  ///< --column selects filters
  bool (*is_one)(const std::string& path);

  /// Opens it for lookups. @throws error  as the library; incompatible: the command cannot work on many filters
  std::unique_ptr<filter_handle> (*open)(const named_filter& wanted);

  /// Prints facts about the filters. The exit status is target_missed if a filter exceeds the target FPR.
  exit_status (*info)(const container_info_options& options);
};

/// The kind of a file, by its content; null for all other files.
/// @throws error  not_found, not_permitted, not_a_filter (a directory, a device), io
const container_kind* container_of(const std::string& path);

}  // namespace bloomery::cli
