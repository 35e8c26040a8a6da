// The SQL functions of the extension, for the entry point that registers them. docs/sqlite.md describes them.
#pragma once

#include "sqlite/calls.hpp"

#include <span>

namespace bloomery::sqlite {

/// A row of a table of SQL functions.
struct sql_function {
  const char* name;
  int argument_count;
  int flags;  ///< SQLITE_DIRECTONLY: never in views, triggers and schemas; SQLITE_INNOCUOUS: also in untrusted schemas
  void (*scalar)(sqlite3_context*, int, sqlite3_value**);  ///< null: an aggregate function
  void (*step)(sqlite3_context*, int, sqlite3_value**) = nullptr;
  void (*finish)(sqlite3_context*) = nullptr;
};

inline constexpr int of_files = SQLITE_DIRECTONLY;
inline constexpr int of_values = SQLITE_INNOCUOUS | SQLITE_DETERMINISTIC;

std::span<const sql_function> lookup_functions();     ///< their user data is a std::shared_ptr<connection>
std::span<const sql_function> aggregate_functions();  ///< bloom_build, bloom_union
std::span<const sql_function> blob_functions();       ///< bloom_save, bloom_load, bloom_overlap, bloomery_version

/// Registers the table-valued function bloom_info. Returns a result code of SQLite.
int add_info_table(sqlite3* database);

}  // namespace bloomery::sqlite
