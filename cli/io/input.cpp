#include "cli/io/input.hpp"

#include "app/signals.hpp"
#include "cli/io/record_frame.hpp"
#include "cli/io/records.hpp"
#include "cli/io/system_error.hpp"

#include <bloomery/error.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace bloomery::cli {

using namespace app;

namespace {

constexpr std::size_t chunk_bytes = std::size_t{256} << 10;  // fits into the L2 cache with its keys and hashes
constexpr std::size_t packed_bytes = std::size_t{64} << 10;

const std::string standard_input = "-";

std::string shown(const std::string& name) { return name == standard_input ? "standard input" : name; }

// Uncompressed input from a descriptor.
class plain_source final : public byte_source {
 public:
  plain_source(const std::string& name, std::atomic<std::uint64_t>& bytes_read, int cancelled)
      : name_(name), bytes_read_(bytes_read), cancelled_(cancelled), owned_(name != standard_input) {
    fd_ = owned_ ? ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK) : STDIN_FILENO;
    if (fd_ < 0) fail("open", shown(name));
    struct stat status {};
    regular_ = ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
    if (regular_) ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
  }
  plain_source(const plain_source&) = delete;
  plain_source& operator=(const plain_source&) = delete;
  ~plain_source() override {
    if (owned_) ::close(fd_);
  }

  std::size_t read(std::span<char> to) override {
    if (!peeked_.empty()) {
      const std::size_t count = std::min(to.size(), peeked_.size());
      std::copy_n(peeked_.begin(), count, to.begin());
      peeked_.erase(0, count);
      return count;
    }
    for (;;) {
      if (!wait()) return 0;
      const ssize_t got = ::read(fd_, to.data(), to.size());
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got < 0) fail("read", shown(name_));
      bytes_read_.fetch_add(static_cast<std::uint64_t>(got), std::memory_order_relaxed);
      return static_cast<std::size_t>(got);
    }
  }

  // Whether the input starts with `magic`. Stops reading at the first byte that differs, so that
  // interactive input does not block.
  bool starts_with(std::string_view magic) {
    while (peeked_.size() < magic.size() && magic.starts_with(peeked_)) {
      std::array<char, 4096> bytes;
      const std::string before = std::exchange(peeked_, {});
      const std::size_t got = read(bytes);
      peeked_ = before;
      if (got == 0) return false;
      peeked_.append(bytes.data(), got);
    }
    return std::string_view(peeked_).starts_with(magic);
  }

  bool regular() const { return regular_; }

 private:
  // Waits for input; false if a signal or cancel() ended the wait.
  bool wait() const {
    while (!regular_ && stop_signal() == 0) {
      std::array<pollfd, 3> ready{pollfd{fd_, POLLIN, 0}, pollfd{stop_descriptor(), POLLIN, 0},
                                  pollfd{cancelled_, POLLIN, 0}};
      if (::poll(ready.data(), ready.size(), -1) <= 0) continue;
      if (ready[2].revents != 0) return false;
      if (ready[0].revents != 0) break;
    }
    return stop_signal() == 0;
  }

  std::string name_;
  std::atomic<std::uint64_t>& bytes_read_;
  int cancelled_;
  bool owned_;
  int fd_ = -1;
  bool regular_ = false;
  std::string peeked_;
};

[[noreturn]] void broken_data(const std::string& name, const std::string& why) {
  throw error(errc::damaged, {"compressed data is damaged or cut short: " + why, shown(name), "", "", ""});
}

class gzip_source final : public byte_source {
 public:
  gzip_source(std::string name, std::unique_ptr<byte_source> packed)
      : name_(std::move(name)), packed_(std::move(packed)) {
    constexpr int gzip_only = 16;
    if (inflateInit2(&stream_, MAX_WBITS + gzip_only) != Z_OK) broken_data(name_, "no memory");
  }
  gzip_source(const gzip_source&) = delete;
  gzip_source& operator=(const gzip_source&) = delete;
  ~gzip_source() override { inflateEnd(&stream_); }

  std::size_t read(std::span<char> to) override {
    stream_.next_out = reinterpret_cast<Bytef*>(to.data());
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(to.size(), 1u << 30));
    const uInt room = stream_.avail_out;
    while (stream_.avail_out == room) {
      if (stream_.avail_in == 0) {
        const std::size_t got = packed_->read(buffer_);
        if (got == 0) {
          if (!between_members_ && stop_signal() == 0) broken_data(name_, "unexpected end");
          return 0;
        }
        stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
        stream_.avail_in = static_cast<uInt>(got);
      }
      // Concatenated gzip files have several members.
      if (std::exchange(between_members_, false)) inflateReset(&stream_);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_STREAM_END)
        between_members_ = true;
      else if (result != Z_OK && result != Z_BUF_ERROR)
        broken_data(name_, stream_.msg == nullptr ? "gzip" : stream_.msg);
    }
    return room - stream_.avail_out;
  }

 private:
  std::string name_;
  std::unique_ptr<byte_source> packed_;
  z_stream stream_{};
  bool between_members_ = false;
  std::vector<char> buffer_ = std::vector<char>(packed_bytes);
};

class zstd_source final : public byte_source {
 public:
  zstd_source(std::string name, std::unique_ptr<byte_source> packed)
      : name_(std::move(name)), packed_(std::move(packed)), stream_(ZSTD_createDStream(), ZSTD_freeDStream) {
    if (!stream_) broken_data(name_, "no memory");
  }

  std::size_t read(std::span<char> to) override {
    ZSTD_outBuffer out{to.data(), to.size(), 0};
    while (out.pos == 0) {
      if (in_.pos == in_.size) {
        const std::size_t got = packed_->read(buffer_);
        if (got == 0) {
          if (inside_frame_ && stop_signal() == 0) broken_data(name_, "unexpected end");
          return 0;
        }
        in_ = {buffer_.data(), got, 0};
      }
      const std::size_t left = ZSTD_decompressStream(stream_.get(), &out, &in_);
      if (ZSTD_isError(left) != 0) broken_data(name_, ZSTD_getErrorName(left));
      inside_frame_ = left != 0;
    }
    return out.pos;
  }

 private:
  std::string name_;
  std::unique_ptr<byte_source> packed_;
  std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool inside_frame_ = false;
  std::vector<char> buffer_ = std::vector<char>(packed_bytes);
};

std::unique_ptr<byte_source> open_source(const std::string& name, std::atomic<std::uint64_t>& bytes_read,
                                         int cancelled) {
  auto plain = std::make_unique<plain_source>(name, bytes_read, cancelled);
  if (plain->starts_with("\x1F\x8B")) return std::make_unique<gzip_source>(name, std::move(plain));
  if (plain->starts_with("\x28\xB5\x2F\xFD")) return std::make_unique<zstd_source>(name, std::move(plain));
  for (const auto& [magic, tool] : {std::pair{std::string_view("\xFD"
                                                               "7zXZ\0",
                                                               6),
                                              "xzcat"},
                                    std::pair{std::string_view("BZh91AY&SY"), "bzcat"}}) {
    if (!plain->starts_with(magic)) continue;
    throw error(errc::invalid_argument,
                {"this kind of compression is not read", shown(name), "plain text, gzip or zstd", "",
                 std::string("unpack it: ") + tool + " FILE | bloomery ..."});
  }
  return plain;
}

std::vector<std::string> names_of(const input_options& options) {
  return options.files.empty() ? std::vector{standard_input} : options.files;
}

bool is_regular(const std::string& name, std::uint64_t* bytes = nullptr) {
  struct stat status {};
  const int result = name == standard_input ? ::fstat(STDIN_FILENO, &status) : ::stat(name.c_str(), &status);
  if (result != 0 || !S_ISREG(status.st_mode)) return false;
  if (bytes != nullptr) *bytes += static_cast<std::uint64_t>(status.st_size);
  return true;
}

}  // namespace

reader::reader(const input_options& options)
    : options_(options), names_(names_of(options)), frame_(record_frame::make(options)) {
  bool all_regular = true;
  for (const std::string& name : names_) {
    if (name != standard_input && ::access(name.c_str(), R_OK) != 0) fail("read", shown(name));
    struct stat status {};
    if (name != standard_input && ::stat(name.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
      errno = EISDIR;
      fail("read", shown(name));
    }
    all_regular &= is_regular(name, &bytes_total_);
  }
  if (!all_regular) bytes_total_ = 0;
  if (::pipe2(cancel_, O_CLOEXEC | O_NONBLOCK) != 0) fail("watch", shown(names_.front()));
}

reader::~reader() {
  for (const int end : cancel_) {
    if (end >= 0) ::close(end);
  }
}

void reader::cancel() noexcept {
  const char byte = 0;
  [[maybe_unused]] const ssize_t ignored = ::write(cancel_[1], &byte, 1);
}

bool reader::open_next() {
  if (opened_ == names_.size() || stop_signal() != 0) return false;
  source_ = open_source(names_[opened_++], bytes_read_, cancel_[0]);
  if (frame_) frame_->begin_source(names_[opened_ - 1]);
  return true;
}

bool reader::next(chunk& to) {
  to.size = 0;
  for (;;) {
    if (!source_ && !open_next()) return false;
    if (to.size == 0 && !carry_.empty()) {
      if (to.room < carry_.size() + chunk_bytes) {
        to.room = carry_.size() + chunk_bytes;
        to.buffer = std::make_unique_for_overwrite<char[]>(to.room);
      }
      std::memcpy(to.buffer.get(), carry_.data(), carry_.size());
      to.size = std::exchange(carry_, {}).size();
    }
    if (to.room - to.size < chunk_bytes) {
      // A record longer than the chunk: doubles the buffer, so that copying stays cheap.
      const std::size_t room = std::max(2 * to.size, to.size + chunk_bytes);
      auto larger = std::make_unique_for_overwrite<char[]>(room);
      if (to.size > 0) std::memcpy(larger.get(), to.buffer.get(), to.size);
      to.buffer = std::move(larger);
      to.room = room;
    }
    const std::size_t got = source_->read({to.buffer.get() + to.size, chunk_bytes});
    if (stop_signal() != 0) return false;
    to.source = &names_[opened_ - 1];
    to.may_wait = got < chunk_bytes;
    if (got == 0) {
      source_.reset();
      if (frame_) frame_->end_source(to.text());
      if (to.size > 0 && (!frame_ || frame_->deliver(to))) return true;
      continue;
    }
    const char* fresh = to.buffer.get() + to.size;
    to.size += got;
    std::size_t whole = 0;
    if (frame_) {
      whole = frame_->last_end(to.text());
    } else if (const void* last = ::memrchr(fresh, options_.line_end(), got)) {
      whole = static_cast<std::size_t>(static_cast<const char*>(last) - to.buffer.get()) + 1;
    }
    if (whole == 0) continue;
    carry_.assign(to.buffer.get() + whole, to.size - whole);
    to.size = whole;
    if (!frame_ || frame_->deliver(to)) return true;
  }
}

bool can_reread(const input_options& options) {
  const auto names = names_of(options);
  return std::all_of(names.begin(), names.end(), [](const std::string& name) { return is_regular(name); });
}

bool name_standard_input(input_options& options) {
  if (!can_reread(options)) return false;
  options.files = names_of(options);
  for (std::string& name : options.files) {
    if (name != standard_input) continue;
    if (::lseek(STDIN_FILENO, 0, SEEK_CUR) != 0) return false;  // another process has read the beginning
    name = "/proc/self/fd/0";
  }
  return true;
}

text_size measure_text(const input_options& options) {
  const off_t standard_input_at = ::lseek(STDIN_FILENO, 0, SEEK_CUR);
  text_size total;
  reader inputs(options);
  for (chunk piece; inputs.next(piece);) {
    total.bytes += piece.size;
    total.lines += count_records(piece.text(), options);
  }
  if (standard_input_at >= 0) ::lseek(STDIN_FILENO, standard_input_at, SEEK_SET);
  return total;
}

}  // namespace bloomery::cli
