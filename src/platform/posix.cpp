// POSIX file operations: opening, locking, syncing and replacing files.
#include "platform/posix.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

namespace bloomery::posix {

descriptor& descriptor::operator=(descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

descriptor::~descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

int descriptor::release() noexcept { return std::exchange(fd_, -1); }

void fail(const std::string& verb, const std::string& path) {
  const int number = errno;
  errc code = errc::io;
  hint to_do = hint::none;
  if (number == ENOENT || number == ENOTDIR) code = errc::not_found;
  if (number == EACCES || number == EPERM || number == EROFS) code = errc::not_permitted;
  if (number == ENOSPC || number == EDQUOT) to_do = hint::free_space;
  if (number == EFBIG) to_do = hint::raise_file_size_limit;
  throw error(code, {"cannot " + verb + ": " + std::strerror(number), path, "", "", to_do});
}

opened open_regular(const std::string& path, bool writable) {
  // O_NONBLOCK: opening a pipe without a writer must not block. It has no effect on regular files.
  descriptor file(::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno != EISDIR) fail("open", path);
  struct stat status {};
  if (file && ::fstat(file.get(), &status) != 0) fail("read the state of", path);
  if (!file || !S_ISREG(status.st_mode)) {
    const bool directory = !file || S_ISDIR(status.st_mode);
    throw error(errc::not_a_filter, {"not a bloomery filter", path, "a regular file",
                                     directory ? "a directory" : "a device or pipe", hint::name_regular_file});
  }
  return {std::move(file), static_cast<std::uint64_t>(status.st_size)};
}

bool try_lock(int fd, const std::string& path, locking how) {
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int number = errno;
    if (number == EINTR) continue;
    if (number == EWOULDBLOCK) return false;
    const bool unsupported = number == ENOLCK || number == EOPNOTSUPP || number == ENOSYS || number == EINVAL;
    if (!unsupported) fail("lock", path);
    if (how == locking::if_possible) return true;
    throw error(errc::io, {std::string("this file system has no locks: ") + std::strerror(number), path, "", "",
                           hint::allow_no_lock});
  }
  return true;
}

opened open_locked(const std::string& path, function_ref<void(const std::string& path)> waiting, locking how) {
  for (;;) {
    opened result = open_regular(path, true);
    while (!try_lock(result.file.get(), path, how)) {
      if (!waiting) {
        throw error(errc::locked, {"another process is writing this filter", path, "", "", hint::wait_for_writer});
      }
      waiting(path);
      // Not a blocking flock, which would miss a signal that arrives just before the call.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    if (!same_file(result.file.get(), path)) continue;
    struct stat status {};
    if (::fstat(result.file.get(), &status) != 0) fail("read the state of", path);
    result.bytes = static_cast<std::uint64_t>(status.st_size);
    return result;
  }
}

void write_all(int fd, std::span<const std::uint8_t> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", path);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void write_at(int fd, std::span<const std::uint8_t> bytes, std::uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", path);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

std::size_t read_at(int fd, std::span<std::uint8_t> bytes, std::uint64_t offset, const std::string& path) {
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::pread(fd, bytes.data() + filled, bytes.size() - filled, static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

void sync(int fd, const std::string& path) {
  while (::fdatasync(fd) != 0) {
    if (errno == EINTR) continue;
    if (errno == EINVAL || errno == EROFS) return;  // pipes and devices cannot be synced
    fail("sync", path);
  }
}

bool same_file(int fd, const std::string& path) {
  struct stat held {};
  struct stat named {};
  return ::fstat(fd, &held) == 0 && ::stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

namespace {

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// Sets the owner if permitted; only root needs to succeed.
void keep_owner_and_mode(int fd, const struct stat& old, const std::string& path) {
  [[maybe_unused]] const int ignored = ::fchown(fd, old.st_uid, old.st_gid);
  if (::fchmod(fd, old.st_mode & 0777) != 0) fail("set the mode of", path);
}

error exists(const std::string& path) {
  return {errc::already_exists, {"the file already exists", path, "", "", hint::choose_another_name}};
}

// Unnamed files are named through /proc.
descriptor unnamed_file(const std::string& path, std::uint32_t mode) {
  descriptor file(::open(folder_of(path).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
  const std::string self = "/proc/self/fd/" + std::to_string(file.get());
  if (file && ::access(self.c_str(), F_OK) != 0) return {};
  return file;
}

// Whether `name` itself, not the target of a link, is the open file.
bool is_name_of(int fd, const std::string& name) {
  struct stat held {};
  struct stat named {};
  return ::fstat(fd, &held) == 0 && ::lstat(name.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

}  // namespace

std::string unfinished_name(const std::string& path) { return path + ".unfinished"; }

bool remove_abandoned(const std::string& name, locking how) noexcept {
  struct stat status {};
  if (::lstat(name.c_str(), &status) != 0) return errno == ENOENT;
  if (!S_ISREG(status.st_mode)) return false;  // opening a device may have side effects
  // On NFS, a lock requires a file opened for writing. O_NONBLOCK: the name may belong to a pipe by now.
  const descriptor file(::open(name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return errno == ENOENT;
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  try {
    if (!try_lock(file.get(), name, how)) return false;
  } catch (const std::exception&) {
    return false;
  }
  // Only the owner of this lock may remove or rename the file, so the name cannot change between the two calls.
  return !is_name_of(file.get(), name) || ::unlink(name.c_str()) == 0;
}

void free_name(const std::string& name, const std::string& path, locking how) {
  remove_abandoned(unfinished_name(name), how);  // left by a process that could not create a nameless file
  // A process that removes the file locks it, too, for a moment.
  constexpr int tries = 20;
  for (int i = 1; !remove_abandoned(name, how); ++i) {
    struct stat status {};
    if (::lstat(name.c_str(), &status) != 0) return;
    const bool is_file = S_ISREG(status.st_mode);
    if (!is_file || ::access(name.c_str(), R_OK | W_OK) != 0) {
      if (is_file && errno == ENOENT) return;  // its owner has just renamed it
      throw error(errc::already_exists,
                  {"the temporary name of the new file is in use", name, "", "", hint::move_file_away});
    }
    if (i == tries)
      throw error(errc::locked, {"another process is creating this file", path, "", "", hint::wait_for_writer});
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

bool has_locks(const std::string& path) {
  const std::string real = behind_links(path);
  struct stat status {};
  if (::stat(real.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) return true;  // it is written directly
  descriptor file = unnamed_file(real, 0600);
  const std::string name = unfinished_name(unfinished_name(real));  // does not block a new file
  const bool named = !file;
  if (named) file = descriptor(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return true;
  bool works = true;
  bool is_own = true;  // false: another process has locked the file, and removes it
  try {
    is_own = try_lock(file.get(), real, locking::required);
  } catch (const error&) {
    works = false;
  }
  if (named && is_own && is_name_of(file.get(), name)) ::unlink(name.c_str());
  return works;
}

void sync_folder_of(const std::string& path) {
  const descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  while (folder && ::fsync(folder.get()) != 0) {
    if (errno == EINTR) continue;
    if (errno == EINVAL) return;
    fail("sync the directory of", path);
  }
}

void take_mode_of(const std::string& from, const std::string& to) {
  struct stat old {};
  if (::stat(from.c_str(), &old) != 0) return;
  const descriptor file(::open(to.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) fail("open", to);
  keep_owner_and_mode(file.get(), old, to);
}

// Replace the file that a symbolic link points to, not the link.
std::string behind_links(const std::string& path) {
  std::error_code missing;
  const auto real = std::filesystem::canonical(path, missing);
  return missing ? path : real.string();
}

void rename_over(const std::string& from, const std::string& to, bool synced) {
  take_mode_of(to, from);
  if (::rename(from.c_str(), to.c_str()) != 0) fail("rename a new file to", to);
  if (synced) sync_folder_of(to);
}

bool rename_if_free(const std::string& from, const std::string& to) {
#if defined(RENAME_NOREPLACE)
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST) return false;
  if (errno != EINVAL && errno != ENOSYS) fail("rename a new file to", to);
#endif
  if (::link(from.c_str(), to.c_str()) != 0) {
    if (errno != EEXIST) fail("rename a new file to", to);
    return false;
  }
  ::unlink(from.c_str());
  return true;
}

replacement::replacement(const std::string& path, const replacement_options& options)
    : path_(behind_links(path)), lock_(options.lock), mode_(options.mode) {
  struct stat status {};
  if (::stat(path_.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) {
      throw error(errc::not_permitted, {"cannot write a filter here", path_, "the name of a file", "a directory", ""});
    }
    if (!S_ISREG(status.st_mode)) {
      in_place_ = true;
      file_ = descriptor(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
      if (!file_) fail("open", path_);
      return;
    }
    if (!options.replace) throw exists(path_);
    if (::access(path_.c_str(), W_OK) != 0) fail("replace", path_);
    do {
      old_ = descriptor(::open(path_.c_str(), O_RDWR | O_CLOEXEC));  // NFS locks only files that are open for writing
      if (!old_) fail("open", path_);
      if (!try_lock(old_.get(), path_, lock_)) {
        throw error(errc::locked,
                    {"this filter is open for writing", path_, "", "", hint::wait_or_choose_another_name});
      }
    } while (!same_file(old_.get(), path_));  // replaced by the previous lock holder
  }
  make_beside();
}

replacement::replacement(const std::string& path, descriptor locked, locking how)
    : path_(behind_links(path)), lock_(how), old_(std::move(locked)) {
  if (::access(path_.c_str(), W_OK) != 0) fail("replace", path_);
  make_beside();
}

void replacement::make_beside() {
  file_ = unnamed_file(path_, mode_);
  if (!file_)
    claim_name();
  else if (!try_lock(file_.get(), path_, lock_))  // before it has a name
    fail("lock", path_);
  struct stat status {};
  if (!old_) return;
  if (::fstat(old_.get(), &status) != 0) fail("read the state of", path_);
  keep_owner_and_mode(file_.get(), status, path_);
}

// Creates the new file under its fixed name, and locks it.
void replacement::claim_name() {
  const std::string name = unfinished_name(path_);
  for (;;) {
    file_ = descriptor(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode_));
    if (!file_ && errno != EEXIST) fail("create", path_);
    if (!file_) {
      free_name(name, path_, lock_);
      continue;
    }
    // A process that finds the file before it is locked considers it abandoned; it holds the lock while it removes the
    // file.
    while (is_name_of(file_.get(), name)) {
      if (try_lock(file_.get(), path_, lock_) && is_name_of(file_.get(), name)) {
        temporary_ = name;
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

replacement::~replacement() {
  if (!temporary_.empty() && is_name_of(file_.get(), temporary_)) ::unlink(temporary_.c_str());
}

void replacement::sync_now() {
  sync(file_.get(), path_);
  is_synced_ = true;
}

descriptor replacement::publish(bool synced) {
  if (synced && !is_synced_) sync_now();
  if (in_place_) return std::move(file_);
  if (old_)
    take_place_of_old();
  else
    name_new_file();
  temporary_.clear();
  if (synced) sync_folder_of(path_);
  return std::move(file_);
}

bool replacement::link_as(const std::string& name) const {
  const std::string self = "/proc/self/fd/" + std::to_string(file_.get());
  return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

// There was no file to replace: do not overwrite a file that another process has created since.
void replacement::name_new_file() {
  if (!temporary_.empty()) {
    check_temporary();
    if (!rename_if_free(temporary_, path_)) throw exists(path_);
  } else if (!link_as(path_)) {
    if (errno == EEXIST) throw exists(path_);
    fail("name", path_);
  }
}

// linkat cannot replace a file: give the new file its temporary name first, then rename it.
void replacement::take_place_of_old() {
  const std::string name = unfinished_name(path_);
  while (temporary_.empty()) {
    if (link_as(name))
      temporary_ = name;
    else if (errno == EEXIST)
      free_name(name, path_, lock_);
    else
      fail("name", name);
  }
  if (!same_file(old_.get(), path_)) throw exists(path_);
  check_temporary();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename a new file to", path_);
}

// The name belongs to this file unless someone removed the file.
void replacement::check_temporary() const {
  if (is_name_of(file_.get(), temporary_)) return;
  throw error(errc::not_found,
              {"another process has removed the unfinished file", temporary_, "", "", hint::try_again});
}

}  // namespace bloomery::posix
