// Cleanup after killed processes: unfinished files, and interrupted pairs of renames.
#include "file/unfinished.hpp"

#include <bloomery/error.hpp>
#include <bloomery/mapped_storage.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <thread>

namespace bloomery::format {
namespace {

bool is_there(const std::string& name) {
  struct stat status {};
  return ::lstat(name.c_str(), &status) == 0;
}

// False for a link, which could refer to a file of another user.
bool is_file(const std::string& name) {
  struct stat status {};
  return ::lstat(name.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

// The log_id of a filter's header; 0 if it cannot be read or the filter has no log.
std::uint64_t id_of_filter(const std::string& path) {
  const inspection found = inspect(path);
  return found.usable ? found.info.parameters.log_id() : 0;
}

std::uint64_t id_of_log(const std::string& path) {
  try {
    return key_log::open(path).parameters().log_id();
  } catch (const error&) {
    return 0;
  }
}

// Whether the log belongs to the filter with this log_id. False if there is no log, or if another file has its name.
// @throws error  the log cannot be read, so its owner is unknown
bool is_log_of(const std::string& log, std::uint64_t id) {
  try {
    return key_log::open(log).parameters().log_id() == id;
  } catch (const error& e) {
    if (e.code() == errc::not_found || e.code() == errc::not_a_filter) return false;
    throw error(e.code(), {"cannot read the log of the filter that would be replaced: " + e.text().what, log,
                           e.text().expected, e.text().found, hint::move_file_away});
  }
}

[[noreturn]] void refuse_other(const std::string& path) {
  throw error(errc::locked, {"another process is creating this filter", path, "", "", hint::wait_for_writer});
}

// The lock of a file; empty if another process has it or the file is gone. @throws error  not_permitted, io
posix::descriptor lock_of(const std::string& name, posix::locking how) {
  try {
    posix::opened opened = posix::open_regular(name, true);
    if (posix::try_lock(opened.file.get(), name, how) && posix::same_file(opened.file.get(), name)) {
      return std::move(opened.file);
    }
  } catch (const error& e) {
    if (e.code() != errc::not_found) throw;  // another process was faster
  }
  return {};
}

// Whether the filter at `path` has no log beside it, but owns the unfinished log.
bool lacks_log(const std::string& path) {
  const std::string log = log_name(path);
  const std::string next = posix::unfinished_name(log);
  if (!is_file(next) || is_there(log)) return false;
  const std::uint64_t id = id_of_log(next);
  return id != 0 && id == id_of_filter(path);
}

}  // namespace

bool needs_renames(const std::string& path) {
  const std::string next = posix::unfinished_name(path);
  if (!is_file(next)) return false;
  const std::uint64_t id = id_of_filter(next);
  return id != 0 && id == id_of_log(log_name(path)) && id != id_of_filter(path);
}

void check_no_renames(const std::string& path) {
  if (needs_renames(posix::behind_links(path))) refuse_other(path);
}

void wait_for_renames(const std::string& path, function_ref<void(const std::string& path)> waiting) {
  if (!waiting) refuse_other(path);
  waiting(path);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

bool finish_renames(const std::string& path, posix::locking how, bool has_log_lock) {
  const std::string log = log_name(path);
  if (needs_renames(path)) {
    const std::string next = posix::unfinished_name(path);
    posix::descriptor log_lock, old_lock;
    if (!has_log_lock && !(log_lock = lock_of(log, how))) return false;
    const bool is_new = !is_there(path);
    const bool is_dangling = !is_new && ::access(path.c_str(), F_OK) != 0;
    if (!is_new && !is_dangling && !(old_lock = lock_of(path, how))) return false;
    const posix::descriptor next_lock = lock_of(next, how);
    if (!next_lock) return false;
    if (!needs_renames(path)) return true;
    if (!is_new)
      posix::rename_over(next, path);
    else if (!posix::rename_if_free(next, path))
      return false;
    else
      posix::sync_folder_of(path);
  } else if (lacks_log(path)) {
    const std::string next = posix::unfinished_name(log);
    const posix::descriptor next_lock = lock_of(next, how);
    if (!next_lock) return false;
    if (lacks_log(path)) posix::rename_over(next, log);
  }
  return true;
}

void clean_up(const std::string& path, posix::locking how) {
  if (!finish_renames(path, how)) return;
  const std::string next = posix::unfinished_name(path);
  const std::string next_log = posix::unfinished_name(log_name(path));
  for (const std::string& name : {next, next_log, rebuilt_name(next_log)}) {
    posix::remove_abandoned(name, how);
    posix::remove_abandoned(posix::unfinished_name(name), how);
  }
}

void remove_rebuild(const std::string& path, posix::locking how) noexcept {
  for (const std::string& name : {rebuilt_name(path), rebuilt_name(log_name(path))}) {
    ::unlink(name.c_str());
    posix::remove_abandoned(posix::unfinished_name(name), how);
  }
}

retired_log::retired_log(const std::string& path, posix::locking how) : how_(how) {
  const std::string real = posix::behind_links(path);
  const std::uint64_t id = id_of_filter(real);
  if (id == 0 || !is_log_of(log_name(real), id)) return;
  name_ = log_name(real);
  key_log log = key_log::open(name_, {.mode = access::read_write, .no_lock = how == posix::locking::if_possible});
  if (log.parameters().log_id() == id) log_ = std::move(log);
}

void retired_log::retire() {
  if (!log_) return;
  const std::string aside = posix::unfinished_name(name_);
  posix::remove_abandoned(aside, how_);
  if (is_there(aside)) refuse_other(filter_name());
  try {
    log_->rename(aside);
  } catch (...) {  // the directory could not be synced, for example
    if (!is_there(name_)) ::rename(aside.c_str(), name_.c_str());
    throw;
  }
  is_renamed_ = true;
  remove_rebuild(filter_name(), how_);
}

retired_log::~retired_log() {
  if (!log_ || !is_renamed_) return;
  try {
    // The filter may have been replaced before the failure: then the log is no longer needed.
    if (id_of_filter(filter_name()) == log_->parameters().log_id())
      log_->rename(name_);
    else
      remove();
  } catch (const error&) {
    // clean_up() repairs this later.
  }
}

std::string retired_log::filter_name() const { return name_.substr(0, name_.size() - log_name("").size()); }

void retired_log::remove() noexcept {
  if (!log_) return;
  ::unlink(posix::unfinished_name(name_).c_str());
  log_.reset();
}

}  // namespace bloomery::format
