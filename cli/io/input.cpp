#include "cli/io/input.hpp"

#include "app/pipeline.hpp"
#include "app/signals.hpp"
#include "cli/io/open_input.hpp"
#include "cli/io/record_frame.hpp"
#include "cli/io/records.hpp"
#include "cli/io/system_error.hpp"

#include <bloomery/error.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace bloomery::cli {

using namespace app;

namespace {

constexpr std::size_t chunk_bytes = std::size_t{256} << 10;  // fits in the L2 cache, including its keys and hashes

std::vector<std::string> names_of(const input_options& options) {
  return options.files.empty() ? std::vector<std::string>{standard_input} : options.files;
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
    if (name != standard_input && ::access(name.c_str(), R_OK) != 0) fail("read", shown_input(name));
    struct stat status {};
    if (name != standard_input && ::stat(name.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
      errno = EISDIR;
      fail("read", shown_input(name));
    }
    all_regular &= is_regular(name, &bytes_total_);
  }
  if (!all_regular) bytes_total_ = 0;
  if (::pipe2(cancel_, O_CLOEXEC | O_NONBLOCK) != 0) fail("watch", shown_input(names_.front()));
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
  const std::string& name = names_[opened_++];
  source_ = open_input(name, {.as_text = options_.as_text, .quiet = options_.quiet}, bytes_read_, cancel_[0]);
  if (!options_.as_text) {
    // NUL may be a field separator.
    check_.emplace(name, options_.nul_separated || options_.delimiter.find('\0') != std::string::npos);
  }
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
    if (check_) check_->look_at({fresh, got});
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

text_size measure_text(const input_options& options, unsigned threads) {
  const off_t standard_input_at = ::lseek(STDIN_FILENO, 0, SEEK_CUR);
  struct counted_chunk {
    chunk piece;
    std::uint64_t lines = 0;
  };
  text_size total;
  reader inputs(options);
  run_pipeline<counted_chunk>(
      threads, [&](counted_chunk& some) { return inputs.next(some.piece); },
      [&](counted_chunk& some) { some.lines = count_records(some.piece.text(), options); },
      [&](counted_chunk& some) {
        total.bytes += some.piece.size;
        total.lines += some.lines;
        return true;
      },
      [&] { inputs.cancel(); });
  if (standard_input_at >= 0) ::lseek(STDIN_FILENO, standard_input_at, SEEK_SET);
  return total;
}

}  // namespace bloomery::cli
