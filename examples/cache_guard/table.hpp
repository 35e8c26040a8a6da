// The guarded table: rows (key, value), in SQLite or PostgreSQL.
//
//   CREATE TABLE users (key TEXT PRIMARY KEY, value TEXT NOT NULL)
//
// A user_table is one connection, for one thread at a time. Failures are std::runtime_error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cache_guard {

class user_table {
 public:
  virtual ~user_table() = default;

  virtual std::optional<std::string> find(const std::string& key) = 0;

  /// Adds a row or replaces its value; committed on return.
  virtual void put(const std::string& key, const std::string& value) = 0;

  /// The number of rows.
  virtual std::uint64_t size() = 0;

  /// Calls back for each key, streamed: the table need not fit in memory. Includes all rows committed before the call.
  virtual void for_each_key(const std::function<void(std::string_view key)>& take) = 0;
};

/// Opens connections to one table.
using table_opener = std::function<std::unique_ptr<user_table>()>;

/// @param path  of the database; created if missing
table_opener sqlite_table(const std::string& path);

/// @param conninfo  in the format of libpq: "host=db dbname=shop"
/// @throws std::runtime_error  built without libpq
table_opener postgres_table(const std::string& conninfo);

}  // namespace cache_guard
