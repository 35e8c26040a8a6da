// bloomery info FILE.parquet: the columns of a Parquet file, or the filters of one column.
#pragma once

#include "cli/commands/common.hpp"

#include <optional>
#include <string>

namespace bloomery::cli {

struct parquet_info_options {
  std::string file;
  std::string column;          ///< empty: list the columns
  std::optional<double> rate;  ///< target FPR of the writer, which the file does not state
  bool json = false;
};

/// Prints the facts. The exit status is target_missed if a filter exceeds the target FPR.
exit_status info_of_parquet(const parquet_info_options& options);

}  // namespace bloomery::cli
