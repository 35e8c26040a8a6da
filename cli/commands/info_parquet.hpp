// bloomery info FILE.parquet: the columns of a Parquet file, or the filters of one column.
#pragma once

#include "cli/commands/container.hpp"

namespace bloomery::cli {

exit_status info_of_parquet(const container_info_options& options);

}  // namespace bloomery::cli
