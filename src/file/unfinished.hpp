// Files that a killed process leaves beside a filter: unfinished ones, and the second half of a pair of renames.
//
//   FILTER.unfinished      a new filter before it is renamed to FILTER
//   FILTER.log.unfinished  a new log before it is renamed to FILTER.log, or an old log while a filter without a log
//                          replaces its filter
//   FILTER.rebuild         the next filter of a rebuilding filter, and FILTER.log.rebuild its next log
//
// The process that makes one of these files holds its lock, so that other processes tell it from an abandoned file.
#pragma once

#include <bloomery/detail/key_log.hpp>

#include "platform/posix.hpp"

#include <optional>
#include <string>

namespace bloomery::format {

/// The path of a filter's log, for a path without links.
inline std::string log_name(const std::string& path) { return path + ".log"; }

/// The name of the next filter, or the next log, while it is made.
inline std::string rebuilt_name(const std::string& path) { return path + ".rebuild"; }

inline posix::locking locking_of(bool no_lock) {
  return no_lock ? posix::locking::if_possible : posix::locking::required;
}

/// Gives a new filter its name if a killed process renamed only its log, or an old log its name back if a killed process
/// did not get to replace the old filter. Does nothing while another process is at work.
///
/// @param has_log_lock  the caller has locked FILTER.log
/// @return              false: another process is about to do this
/// @throws error        not_permitted, io
bool finish_renames(const std::string& path, posix::locking how, bool has_log_lock = false);

/// finish_renames(), then removes unfinished files that no process has locked.
/// @throws error  not_permitted, io
void clean_up(const std::string& path, posix::locking how);

/// Removes the files of a rebuild that was killed. Requires the lock of the filter's log.
void remove_rebuild(const std::string& path, posix::locking how) noexcept;

/// The log of a filter that is about to be replaced by one without a log. It is set aside before the replacement and
/// removed after it; a kill in between is repaired by clean_up().
class retired_log {
 public:
  /// Sets aside the log that belongs to the filter at `path`; nothing if there is none.
  /// @throws error  locked, io; damaged, wrong_version, not_permitted: the log cannot be read, so that nothing says
  ///                whose it is
  retired_log(const std::string& path, posix::locking how);
  retired_log(const retired_log&) = delete;
  retired_log& operator=(const retired_log&) = delete;

  /// Brings the log back unless remove() was called.
  ~retired_log();

  void remove() noexcept;

 private:
  std::string name_;
  std::optional<key_log> log_;
};

}  // namespace bloomery::format
