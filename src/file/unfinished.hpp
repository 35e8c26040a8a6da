// Files that a killed process leaves beside a filter: unfinished files, and files of an interrupted pair of renames.
//
//   FILTER.unfinished      a new filter before it is renamed to FILTER
//   FILTER.log.unfinished  a new log before it is renamed to FILTER.log, or an old log while a filter without a log
//                          replaces its filter
//   FILTER.rebuild         the next filter of a rebuilding filter, and FILTER.log.rebuild its next log
//
// The process that creates one of these files holds its lock, by which other processes distinguish it from an abandoned
// file.
#pragma once

#include <bloomery/detail/function_ref.hpp>
#include <bloomery/detail/key_log.hpp>

#include "platform/posix.hpp"

#include <optional>
#include <string>

namespace bloomery::format {

/// The path of a filter's log, for a path without links.
inline std::string log_name(const std::string& path) { return path + ".log"; }

/// The name of the next filter, or the next log, during a rebuild.
inline std::string rebuilt_name(const std::string& path) { return path + ".rebuild"; }

inline posix::locking locking_of(bool no_lock) {
  return no_lock ? posix::locking::if_possible : posix::locking::required;
}

/// Completes an interrupted pair of renames: gives a new filter its name if a killed process renamed only its log, or
/// gives an old log its name back if a killed process did not replace the old filter. Does nothing while another
/// process is active.
///
/// @param has_log_lock  the caller has locked FILTER.log
/// @return              false: another process is about to do this, or is writing FILTER
/// @throws error        not_permitted, io
bool finish_renames(const std::string& path, posix::locking how, bool has_log_lock = false);

/// Whether the log beside `path` belongs to the unfinished filter and not to the filter at `path`: finish_renames()
/// would replace the filter, unless the process that is creating it does so itself.
bool needs_renames(const std::string& path);

/// @throws error  locked: needs_renames(), so another process is creating the filter
void check_no_renames(const std::string& path);

/// Waits a moment for the process that is to call finish_renames(). @param waiting  called once, unless it is null
/// @throws error  locked: `waiting` is null
void wait_for_renames(const std::string& path, function_ref<void(const std::string& path)> waiting);

/// finish_renames(), then removes unfinished files that no process has locked.
/// @throws error  not_permitted, io
void clean_up(const std::string& path, posix::locking how);

/// Removes the files of a killed rebuild. Requires the lock of the filter's log.
void remove_rebuild(const std::string& path, posix::locking how) noexcept;

/// The log of a filter that is about to be replaced by a filter without a log. It is renamed before the replacement and
/// removed after it; clean_up() repairs an interruption in between.
class retired_log {
 public:
  /// Locks the log that belongs to the filter at `path`, if there is one.
  /// @throws error  locked, io; damaged, wrong_version, not_permitted: the log cannot be read, so its owner is unknown
  retired_log(const std::string& path, posix::locking how);
  retired_log(const retired_log&) = delete;
  retired_log& operator=(const retired_log&) = delete;

  /// Restores the name of the log unless remove() was called.
  ~retired_log();

  /// Renames the log. @throws error  locked, io
  void retire();

  void remove() noexcept;

 private:
  std::string filter_name() const;

  std::string name_;
  posix::locking how_;
  std::optional<key_log> log_;
  bool is_renamed_ = false;
};

}  // namespace bloomery::format
