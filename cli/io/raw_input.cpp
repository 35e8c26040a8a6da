#include "cli/io/raw_input.hpp"

#include "app/signals.hpp"
#include "cli/io/system_error.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace bloomery::cli {

using namespace app;

raw_input::raw_input(const std::string& name, std::atomic<std::uint64_t>& bytes_read, int cancelled)
    : name_(name), bytes_read_(bytes_read), cancelled_(cancelled), owned_(name != standard_input) {
  fd_ = owned_ ? ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK) : STDIN_FILENO;
  if (fd_ < 0) fail("open", shown_input(name));
  struct stat status {};
  regular_ = ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
  if (regular_) ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
}

raw_input::~raw_input() {
  if (owned_ && fd_ >= 0) ::close(fd_);
}

std::size_t raw_input::read(std::span<char> to) {
  if (taken_ == peeked_.size()) return read_file(to);
  const std::size_t count = std::min(to.size(), peeked_.size() - taken_);
  std::copy_n(peeked_.data() + taken_, count, to.data());
  taken_ += count;
  return count;
}

bool raw_input::peek_more() {
  constexpr std::size_t piece = std::size_t{64} << 10;
  peeked_.erase(0, taken_);
  taken_ = 0;
  const std::size_t before = peeked_.size();
  peeked_.resize(before + piece);
  const std::size_t got = read_file({peeked_.data() + before, piece});
  peeked_.resize(before + got);
  return got > 0;
}

std::size_t raw_input::read_file(std::span<char> to) {
  for (;;) {
    if (!wait()) return 0;
    const ssize_t got = ::read(fd_, to.data(), to.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) fail("read", shown_input(name_));
    bytes_read_.fetch_add(static_cast<std::uint64_t>(got), std::memory_order_relaxed);
    return static_cast<std::size_t>(got);
  }
}

// Waits for input; false if a signal or cancel() ended the wait.
bool raw_input::wait() const {
  while (!regular_ && stop_signal() == 0) {
    std::array<pollfd, 3> ready{pollfd{fd_, POLLIN, 0}, pollfd{stop_descriptor(), POLLIN, 0},
                                pollfd{cancelled_, POLLIN, 0}};
    if (::poll(ready.data(), ready.size(), -1) <= 0) continue;
    if (ready[2].revents != 0) return false;
    if (ready[0].revents != 0) break;
  }
  return stop_signal() == 0;
}

}  // namespace bloomery::cli
