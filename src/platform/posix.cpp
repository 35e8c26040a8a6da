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
#include <random>
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
  if (file && ::fstat(file.get(), &status) != 0) fail("look at", path);
  if (!file || !S_ISREG(status.st_mode)) {
    const bool directory = !file || S_ISDIR(status.st_mode);
    throw error(errc::not_a_filter, {"not a bloomery filter", path, "a regular file",
                                     directory ? "a directory" : "a device or pipe", hint::name_regular_file});
  }
  return {std::move(file), static_cast<std::uint64_t>(status.st_size)};
}

opened open_locked(const std::string& path, function_ref<void(const std::string& path)> waiting) {
  for (;;) {
    opened result = open_regular(path, true);
    while (::flock(result.file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) fail("lock", path);
      if (!waiting) {
        throw error(errc::locked, {"another process is writing this filter", path, "", "", hint::wait_for_writer});
      }
      waiting(path);
      // Not a blocking flock, which would miss a signal that arrives just before the call.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    if (!same_file(result.file.get(), path)) continue;
    struct stat status {};
    if (::fstat(result.file.get(), &status) != 0) fail("look at", path);
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
  // Pipes and devices cannot be synced and return EINVAL.
  if (::fdatasync(fd) != 0 && errno != EINVAL && errno != EROFS) fail("sync", path);
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

// Sets the owner if permitted; root can, other users need not.
void keep_owner_and_mode(int fd, const struct stat& old, const std::string& path) {
  [[maybe_unused]] const int ignored = ::fchown(fd, old.st_uid, old.st_gid);
  if (::fchmod(fd, old.st_mode & 0777) != 0) fail("set the mode of", path);
}

// A name in the directory of `path` that is unique among threads and processes.
std::string unused_name(const std::string& path) {
  std::random_device random;
  return path + "." + std::to_string(random()) + ".new";
}

error exists(const std::string& path) {
  return {errc::already_exists, {"there is a file already", path, "", "", hint::choose_another_name}};
}

}  // namespace

void sync_folder_of(const std::string& path) {
  const descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder && ::fsync(folder.get()) != 0 && errno != EINVAL) fail("sync the folder of", path);
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

replacement::replacement(const std::string& path, bool replace) : path_(behind_links(path)) {
  struct stat status {};
  if (::stat(path_.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) {
      throw error(errc::not_permitted, {"cannot write a filter here", path_, "a file's name", "a directory", ""});
    }
    if (!S_ISREG(status.st_mode)) {
      in_place_ = true;
      file_ = descriptor(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
      if (!file_) fail("open", path_);
      return;
    }
    if (!replace) throw exists(path_);
    old_ = descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!old_) fail("open", path_);
    if (::access(path_.c_str(), W_OK) != 0) fail("replace", path_);
    if (::flock(old_.get(), LOCK_EX | LOCK_NB) != 0) {
      throw error(errc::locked, {"this filter is open for writing", path_, "", "", hint::wait_or_choose_another_name});
    }
  }
  make_beside();
}

replacement::replacement(const std::string& path, descriptor locked)
    : path_(behind_links(path)), old_(std::move(locked)) {
  if (::access(path_.c_str(), W_OK) != 0) fail("replace", path_);
  make_beside();
}

// An unnamed file disappears if the process is killed, but not every file system supports it.
void replacement::make_beside() {
  const auto keep_what_was = [this] {
    struct stat status {};
    if (!old_) return;
    if (::fstat(old_.get(), &status) != 0) fail("look at", path_);
    keep_owner_and_mode(file_.get(), status, path_);
  };
  const std::string folder = folder_of(path_);
  file_ = descriptor(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666));
  if (file_) return keep_what_was();
  do {
    temporary_ = unused_name(path_);
    file_ = descriptor(::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  } while (!file_ && errno == EEXIST);
  if (!file_) {
    temporary_.clear();
    fail("create", path_);
  }
  keep_what_was();
}

replacement::~replacement() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

descriptor replacement::publish(bool synced) {
  if (synced) sync(file_.get(), path_);
  if (in_place_) return std::move(file_);
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) fail("lock", path_);
  const std::string self = temporary_.empty() ? "/proc/self/fd/" + std::to_string(file_.get()) : temporary_;
  const auto name_it = [&](const std::string& name) {
    return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  if (!old_) {
    // There was no file to replace: do not overwrite a file that another process has created since.
    if (!name_it(path_)) {
      if (errno == EEXIST) throw exists(path_);
      fail("name", path_);
    }
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  } else {
    // linkat cannot replace a file: link a temporary name first, then rename it.
    if (temporary_.empty()) {
      std::string name = unused_name(path_);
      while (!name_it(name)) {
        if (errno != EEXIST) fail("name", name);
        name = unused_name(path_);
      }
      temporary_ = name;
    }
    if (!same_file(old_.get(), path_)) throw exists(path_);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename a new file to", path_);
  }
  temporary_.clear();
  if (synced) sync_folder_of(path_);
  return std::move(file_);
}

}  // namespace bloomery::posix
