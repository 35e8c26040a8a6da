#include "cli/io/output.hpp"

#include "cli/io/system_error.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace bloomery::cli {
namespace {

int create(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) fail("create", path);
  return fd;
}

}  // namespace

output::output(int fd, std::string name) : fd_(fd), name_(std::move(name)), terminal_(::isatty(fd) != 0) {
  struct stat status {};
  regular_ = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  gathered_.reserve(most_gathered);
}

void output::write_now(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE) throw reader_gone{};
    if (written < 0 && errno == EAGAIN) {  // another process made the descriptor non-blocking
      pollfd room{fd_, POLLOUT, 0};
      ::poll(&room, 1, -1);
      continue;
    }
    if (written < 0) fail("write", name_, "free some space or write elsewhere");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void output::write_through(std::string_view bytes) {
  flush();
  // Text larger than the buffer is written directly.
  if (bytes.size() >= most_gathered) return write_now(bytes);
  gathered_.append(bytes);
}

void output::flush() {
  write_now(gathered_);
  gathered_.clear();
}

void output::sync() {
  flush();
  if (regular_ && ::fdatasync(fd_) != 0 && errno != EINVAL && errno != EROFS) fail("sync", name_);
}

output_file::output_file(const std::string& path) : fd_(create(path)), lines_(fd_, path) {}
output_file::~output_file() { ::close(fd_); }

}  // namespace bloomery::cli
