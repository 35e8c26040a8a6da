#include "cli/commands/container.hpp"

#include "cli/commands/common.hpp"
#include "cli/commands/info_leveldb.hpp"
#include "cli/commands/info_parquet.hpp"

#include <bloomery/error.hpp>
#include <bloomery/leveldb.hpp>
#include <bloomery/parquet.hpp>

#include <fmt/format.h>

namespace bloomery::cli {
namespace {

std::unique_ptr<filter_handle> open_column(const named_filter& wanted) {
  if (!wanted.column.empty()) return make_handle(parquet_filters::open(wanted.name, wanted.column));
  throw error(errc::incompatible, {"a Parquet file has a filter per column and row group", wanted.name, "", "",
                                   fmt::format("use 'bloomery info {0}', which lists the columns, 'bloomery check "
                                               "--column NAME {0}', or 'bloomery import --column NAME'",
                                               wanted.name)});
}

std::unique_ptr<filter_handle> open_table(const named_filter& wanted) {
  leveldb_table table = leveldb_table::open(wanted.name);
  if (!wanted.takes_layers && !table.of_rocksdb()) {
    throw error(errc::incompatible, {"a LevelDB table has a filter per range of its data", wanted.name, "", "",
                                     "use it with check, info or verify"});
  }
  if (!wanted.quiet && !table.all_filters_because().empty())
    say(wanted.name + ": note: keys are looked up in all filters of the table: " + table.all_filters_because());
  if (!wanted.quiet && !table.has_checksums())
    say(wanted.name + ": note: the table has no checksums, so damage is not detected");
  return make_handle(std::move(table));
}

constexpr container_kind kinds[] = {{.format = "parquet",
                                     .name = "a Parquet file",
                                     .has_columns = true,
                                     .is_one = is_parquet,
                                     .open = open_column,
                                     .info = info_of_parquet},
                                    {.format = "leveldb_table",
                                     .name = "a table of LevelDB or RocksDB",
                                     .has_columns = false,
                                     .is_one = is_leveldb_table,
                                     .open = open_table,
                                     .info = info_of_leveldb}};

}  // namespace

std::string line_of(std::string_view name, std::string_view value) { return fmt::format("{:<14}{}\n", name, value); }

const container_kind* container_of(const std::string& path) {
  for (const container_kind& kind : kinds) {
    if (kind.is_one(path)) return &kind;
  }
  return nullptr;
}

}  // namespace bloomery::cli
