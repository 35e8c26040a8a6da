#include "cli/io/whole_file.hpp"

#include "cli/io/output.hpp"
#include "cli/io/system_error.hpp"

#include <bloomery/error.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <random>
#include <utility>

namespace bloomery::cli {
namespace {

// Follows links: the target of a link is replaced, not the link.
std::string behind_links(const std::string& path) {
  std::error_code missing;
  const auto real = std::filesystem::canonical(path, missing);
  return missing ? path : real.string();
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// A temporary file next to its final path, removed unless it is renamed to that path.
class beside {
 public:
  explicit beside(const std::string& path) : path_(path) {
    std::random_device random;
    do {
      name_ = path + "." + std::to_string(random()) + ".new";
      fd_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (fd_ < 0 && errno == EEXIST);
    if (fd_ < 0) fail("create", path_);
  }
  beside(const beside&) = delete;
  ~beside() {
    if (fd_ >= 0) ::close(fd_);
    if (!name_.empty()) ::unlink(name_.c_str());
  }

  int fd() const noexcept { return fd_; }

  void take_place() {
    struct stat old {};
    if (::stat(path_.c_str(), &old) == 0 && ::fchmod(fd_, old.st_mode & 0777) != 0) fail("set the mode of", path_);
    if (::close(std::exchange(fd_, -1)) != 0) fail("write", path_);
    if (::rename(name_.c_str(), path_.c_str()) != 0) fail("replace", path_);
    name_.clear();
  }

 private:
  std::string path_;
  std::string name_;
  int fd_ = -1;
};

}  // namespace

void check_can_write(const std::string& path) {
  const std::string real = behind_links(path);
  struct stat status {};
  if (::stat(real.c_str(), &status) == 0) {
    if (!S_ISREG(status.st_mode)) {
      throw error(errc::not_permitted,
                  {"cannot write here", path, "a file's name",
                   S_ISDIR(status.st_mode) ? "a directory" : "no plain file", "choose another name"});
    }
    if (::access(real.c_str(), W_OK) != 0) fail("replace", path);
  } else if (errno != ENOENT) {
    fail("create", path);
  }
  if (::access(folder_of(real).c_str(), W_OK | X_OK) != 0) fail("create", path);
}

void write_whole(const std::string& path, std::string_view bytes) {
  check_can_write(path);
  beside file(behind_links(path));
  output to(file.fd(), path);
  to.write(bytes);
  to.sync();
  file.take_place();
}

}  // namespace bloomery::cli
