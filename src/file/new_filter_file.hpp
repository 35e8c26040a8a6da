// A new filter file that replaces an old filter and its log at once.
#pragma once

#include <bloomery/mapped_storage.hpp>

#include "file/unfinished.hpp"
#include "platform/posix.hpp"

#include <string>

namespace bloomery::format {

/// A file that gets its name in publish(). Until then, a filter of that name and its log remain.
class new_filter_file {
 public:
  /// Cleans up after killed processes, and locks the old file and its log. Of the options it uses `replace`, `expected`
  /// and `no_lock`.
  /// @throws error  as posix::replacement; as retired_log; locked: another process is creating a filter of this name,
  ///                or has changed the file of which `expected` is the version
  new_filter_file(const std::string& path, const create_options& options);

  int fd() const noexcept { return file_.fd(); }

  /// Syncs the file and gives it its name. The log of the old filter is removed.
  /// @throws error  as posix::replacement::publish; as retired_log::retire; locked: another process is creating a
  ///                filter of this name
  void publish();

 private:
  std::string path_;
  posix::locking lock_;
  posix::replacement file_;
  retired_log old_log_;
};

}  // namespace bloomery::format
