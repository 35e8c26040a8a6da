// connection: the filters that the functions of one database connection keep open.
//
// SQLite serializes the calls of a connection, so nothing here is locked.
#pragma once

#include "sqlite/lookup_filter.hpp"

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace bloomery::sqlite {

/// Identifies a version of a file. A file that is replaced or written has another identity.
struct file_identity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t modified[2] = {};  ///< seconds and nanoseconds
  std::int64_t changed[2] = {};   ///< the same of the inode

  /// All zeros if there is no such file; opening it reports the error.
  static file_identity of(const std::string& path) noexcept;
  friend bool operator==(const file_identity&, const file_identity&) = default;
};

class connection {
 public:
  static constexpr std::size_t most_files = 16;  ///< more are closed, the one unused for the longest time first

  /// The filter of a file. A file that has changed since it was opened is opened again.
  /// @throws error  as open_filter()
  std::shared_ptr<lookup_filter> filter_in_file(const std::string& path);

  /// The filter of a BLOB. The last BLOB is kept, because an argument that is a column or a subquery comes with every
  /// row: comparing it takes less time than checking it again. @throws error  as any_filter::from_bytes
  std::shared_ptr<lookup_filter> filter_in_blob(sqlite3_value* blob);

 private:
  struct open_file {
    std::string path;
    file_identity identity;
    std::shared_ptr<lookup_filter> filter;
  };
  std::vector<open_file> files_;  // the last used one is the last element
  std::string last_blob_;
  std::shared_ptr<lookup_filter> filter_of_last_blob_;
};

}  // namespace bloomery::sqlite
