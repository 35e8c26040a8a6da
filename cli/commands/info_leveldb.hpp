// bloomery info FILE.ldb: the filters of a table of LevelDB or RocksDB.
#pragma once

#include "cli/commands/container.hpp"

namespace bloomery::cli {

exit_status info_of_leveldb(const container_info_options& options);

}  // namespace bloomery::cli
