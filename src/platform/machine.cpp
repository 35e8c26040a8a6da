// Properties of the machine, read from /sys and the processor.
#include "platform/machine.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>

namespace bloomery {
namespace {

constexpr std::uint64_t usual_size = std::uint64_t{1} << 20;

// A short file of /sys. It allocates no memory, because callers need the size where an exception would terminate the
// process.
class short_text {
 public:
  short_text(int index, const char* name) noexcept {
    std::array<char, 80> path{};
    std::snprintf(path.data(), path.size(), "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const ssize_t size = ::read(file, text_.data(), text_.size() - 1);
    ::close(file);
    text_[size < 0 ? 0 : static_cast<std::size_t>(size)] = 0;
  }

  const char* words() const noexcept { return text_.data(); }

 private:
  std::array<char, 512> text_{};
};

// The number at the start of a text, or 0, and what follows it.
std::pair<unsigned, const char*> leading_number(const char* text) noexcept {
  unsigned number = 0;
  const char* const end = std::from_chars(text, text + std::strlen(text), number).ptr;
  return {number, end};
}

// Parses a size such as "1024K", as Linux writes it; 0 for other texts.
std::uint64_t size_of(const short_text& text) noexcept {
  const auto [number, unit] = leading_number(text.words());
  return *unit == 'K' ? std::uint64_t{number} << 10 : *unit == 'M' ? std::uint64_t{number} << 20 : 0;
}

// Number of processors in a list: "0-3,8" has five.
std::uint64_t count_of(const short_text& list) noexcept {
  std::uint64_t count = 0;
  for (const char* range = list.words(); range != nullptr; range = std::strchr(range, ',')) {
    if (*range == ',') ++range;
    const auto [from, after] = leading_number(range);
    const unsigned to = *after == '-' ? leading_number(after + 1).first : from;
    count += to >= from ? to - from + 1 : 1;
  }
  return count;
}

std::uint64_t read_size() noexcept {
  for (int index = 0; index < 8; ++index) {
    if (std::strcmp(short_text(index, "level").words(), "2\n") != 0) continue;
    if (const std::uint64_t bytes = size_of(short_text(index, "size")); bytes > 0) {
      return bytes / count_of(short_text(index, "shared_cpu_list"));
    }
  }
#if defined(_SC_LEVEL2_CACHE_SIZE)
  if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) return static_cast<std::uint64_t>(bytes);
#endif
  return usual_size;
}

}  // namespace

std::uint64_t own_cache_size() noexcept {
  static const std::uint64_t bytes = read_size();
  return bytes;
}

bool is_amd() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd") != 0;
#else
  return false;
#endif
}

}  // namespace bloomery
