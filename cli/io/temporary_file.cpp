#include "cli/io/temporary_file.hpp"

#include "cli/io/system_error.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace bloomery::cli {
namespace {

constexpr std::size_t most_gathered = std::size_t{32}
                                      << 10;  // small, because there are hundreds of files, one per partition

[[noreturn]] void fail_to(const std::string& verb) {
  const std::string hint = "set TMPDIR to a directory with more space";
  fail(verb + " a temporary file", temporary_file::folder(), hint, hint);
}

}  // namespace

std::string temporary_file::folder() {
  const char* chosen = std::getenv("TMPDIR");
  return chosen == nullptr || *chosen == '\0' ? "/tmp" : chosen;
}

std::uint64_t temporary_file::room() {
  struct statvfs status {};
  if (::statvfs(folder().c_str(), &status) != 0) fail_to("make");
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

temporary_file::temporary_file() {
  fd_ = ::open(folder().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd_ >= 0) return;
  std::string name = folder() + "/bloomery.XXXXXX";
  fd_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd_ < 0) fail_to("make");
  ::unlink(name.c_str());
}

temporary_file::temporary_file(temporary_file&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      reading_(other.reading_),
      gathered_(std::move(other.gathered_)),
      taken_(other.taken_) {}

temporary_file::~temporary_file() {
  if (fd_ >= 0) ::close(fd_);
}

void temporary_file::append(std::span<const char> bytes) {
  gathered_.append(bytes.data(), bytes.size());
  size_ += bytes.size();
  if (gathered_.size() >= most_gathered) write_out();
}

void temporary_file::write_out() {
  for (std::size_t done = 0; done < gathered_.size();) {
    const ssize_t written = ::write(fd_, gathered_.data() + done, gathered_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_to("write");
    done += static_cast<std::size_t>(written);
  }
  gathered_.clear();
}

void temporary_file::rewind() {
  if (!reading_) write_out();
  reading_ = true;
  gathered_.clear();
  taken_ = 0;
  if (::lseek(fd_, 0, SEEK_SET) != 0) fail_to("read");
}

std::size_t temporary_file::read(std::span<char> to) {
  std::size_t filled = 0;
  while (filled < to.size()) {
    if (taken_ == gathered_.size() && !read_ahead()) break;
    const std::size_t count = std::min(to.size() - filled, gathered_.size() - taken_);
    std::memcpy(to.data() + filled, gathered_.data() + taken_, count);
    taken_ += count;
    filled += count;
  }
  return filled;
}

bool temporary_file::read_ahead() {
  gathered_.resize(most_gathered);
  taken_ = 0;
  for (;;) {
    const ssize_t got = ::read(fd_, gathered_.data(), gathered_.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_to("read");
    gathered_.resize(static_cast<std::size_t>(got));
    return got > 0;
  }
}

void temporary_file::discard() {
  ::close(std::exchange(fd_, -1));
  gathered_ = {};
}

std::string temporary_file::path() const { return "/proc/self/fd/" + std::to_string(fd_); }

}  // namespace bloomery::cli
