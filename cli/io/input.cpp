#include "cli/io/input.hpp"

#include "app/pipeline.hpp"
#include "app/signals.hpp"
#include "cli/io/open_input.hpp"
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

constexpr std::size_t chunk_bytes = std::size_t{256} << 10;  // fits into the L2 cache with its keys and hashes

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

// Sums short runs in bytes, which the compiler vectorises, sixteen at a time.
std::uint64_t count_of(std::string_view text, char wanted) {
  std::uint64_t total = 0;
  while (!text.empty()) {
    const std::size_t length = std::min<std::size_t>(text.size(), 255);
    std::uint8_t found = 0;
    for (std::size_t i = 0; i < length; ++i) found = static_cast<std::uint8_t>(found + (text[i] == wanted ? 1 : 0));
    total += found;
    text.remove_prefix(length);
  }
  return total;
}

}  // namespace

void check(const input_options& options) {
  if (options.delimiter.size() > 1) {
    throw error(errc::invalid_argument, {"cannot separate fields by this", "-d", "one character",
                                         "'" + options.delimiter + "'", "for a TAB leave -d out"});
  }
  if (!options.delimiter.empty() && options.field == 0) {
    throw error(errc::invalid_argument,
                {"a separator of fields says nothing by itself", "-d", "", "", "name the field: -f 1"});
  }
  if (options.crlf && options.nul_separated) {
    throw error(errc::invalid_argument, {"lines end with CR LF or with NUL", "--crlf", "", "", "drop --crlf or -0"});
  }
}

reader::reader(const input_options& options) : options_(options), names_(names_of(options)) {
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
  if (!options_.as_text) check_.emplace(name, options_.nul_separated);
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
      // A line longer than the chunk: doubles the buffer, so that copying stays cheap.
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
      if (to.size > 0) return true;
      continue;
    }
    const char* fresh = to.buffer.get() + to.size;
    if (check_) check_->look_at({fresh, got});
    to.size += got;
    const void* last = ::memrchr(fresh, options_.line_end(), got);
    if (last == nullptr) continue;
    const auto whole = static_cast<std::size_t>(static_cast<const char*>(last) - to.buffer.get()) + 1;
    carry_.assign(to.buffer.get() + whole, to.size - whole);
    to.size = whole;
    return true;
  }
}

void cut_lines(std::string_view text, char line_end, std::vector<std::string_view>& lines) {
  lines.clear();
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    const void* found = std::memchr(at, line_end, static_cast<std::size_t>(end - at));
    const char* const stop = found == nullptr ? end : static_cast<const char*>(found);
    lines.emplace_back(at, static_cast<std::size_t>(stop - at));
    at = stop + 1;
  }
}

void cut_keys(std::span<const std::string_view> lines, const input_options& options,
              std::vector<std::string_view>& keys) {
  const char delimiter = options.delimiter.empty() ? '\t' : options.delimiter[0];
  keys.clear();
  for (std::string_view line : lines) {
    if (options.crlf && line.ends_with('\r')) line.remove_suffix(1);
    if (options.field > 0) {
      for (std::uint64_t skipped = 1; skipped < options.field && !line.empty(); ++skipped) {
        const std::size_t at = line.find(delimiter);
        line.remove_prefix(at == std::string_view::npos ? line.size() : at + 1);
      }
      line = line.substr(0, line.find(delimiter));
    }
    keys.push_back(line);
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
      [&](counted_chunk& some) {
        const std::string_view text = some.piece.text();
        some.lines = count_of(text, options.line_end()) + (text.back() != options.line_end() ? 1 : 0);
      },
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
