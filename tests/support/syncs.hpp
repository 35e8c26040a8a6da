// Syncs of the whole test program, observed or made to fail: programs that include this file have their own fsync and
// fdatasync.
#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <utility>

namespace bloomery_tests {

/// Calls a function before each sync, while the object exists. The function returns 0, or the errno value with which
/// the sync must fail.
class watched_syncs {
 public:
  explicit watched_syncs(std::function<int(int fd)> watch) { before_sync_ = std::move(watch); }
  watched_syncs(const watched_syncs&) = delete;
  watched_syncs& operator=(const watched_syncs&) = delete;
  ~watched_syncs() { before_sync_ = nullptr; }

  static int sync(long call, int fd) {
    if (const int failure = before_sync_ ? before_sync_(fd) : 0; failure != 0) {
      errno = failure;
      return -1;
    }
    return static_cast<int>(::syscall(call, fd));
  }

 private:
  static inline std::function<int(int fd)> before_sync_;
};

/// The inode number of a file; 0 if there is none of this name.
inline ino_t number_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

}  // namespace bloomery_tests

// Weak: several files of a program may include this one.
extern "C" [[gnu::weak]] int fdatasync(int fd) { return bloomery_tests::watched_syncs::sync(SYS_fdatasync, fd); }
extern "C" [[gnu::weak]] int fsync(int fd) { return bloomery_tests::watched_syncs::sync(SYS_fsync, fd); }
