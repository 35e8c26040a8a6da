// Common to the fuzz targets of files: the input as a file, and calls that may fail.
#pragma once

#include "require.hpp"

#include <bloomery/error.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <span>
#include <string>

namespace bloomery_fuzz {

// An in-memory file with a path.
class memory_file {
 public:
  explicit memory_file(std::span<const std::uint8_t> content) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    require(fd_ >= 0 && ::write(fd_, content.data(), content.size()) == static_cast<ssize_t>(content.size()), "memfd");
    path_ = "/proc/self/fd/" + std::to_string(fd_);
  }
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;
  ~memory_file() { ::close(fd_); }

  const std::string& path() const { return path_; }

 private:
  int fd_;
  std::string path_;
};

// Runs an action that may throw only bloomery::error; returns whether it succeeded.
template <class Action>
bool works(Action action) {
  try {
    action();
    return true;
  } catch (const bloomery::error& e) {
    require(e.what()[0] != '\0', "an error has a message");
    return false;
  }
}

}  // namespace bloomery_fuzz
