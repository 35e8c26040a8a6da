#include "platform/machine.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

namespace bloomery {
namespace {

constexpr std::uint64_t usual_size = std::uint64_t{1} << 20;

// Parses a size such as "1024K", as Linux writes it; 0 for other texts.
std::uint64_t size_of(const std::string& text) {
  std::uint64_t number = 0;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9' && digits < 9; ++digits) {
    number = 10 * number + static_cast<std::uint64_t>(text[digits] - '0');
  }
  const std::string unit = text.substr(digits);
  return unit == "K" ? number << 10 : unit == "M" ? number << 20 : 0;
}

std::string first_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// Number of processors in a list: "0-3,8" has five.
std::uint64_t count_of(const std::string& list) {
  std::uint64_t count = 0;
  std::istringstream ranges(list);
  for (std::string range; std::getline(ranges, range, ',');) {
    unsigned from = 0;
    unsigned to = 0;
    const int read = std::sscanf(range.c_str(), "%u-%u", &from, &to);
    count += read == 2 && to >= from ? to - from + 1 : 1;
  }
  return std::max<std::uint64_t>(count, 1);
}

std::uint64_t read_size() {
  const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index";
  for (int index = 0; index < 8; ++index) {
    const std::string cache = folder + std::to_string(index) + "/";
    if (first_word(cache + "level") != "2") continue;
    if (const std::uint64_t bytes = size_of(first_word(cache + "size")); bytes > 0) {
      return bytes / count_of(first_word(cache + "shared_cpu_list"));
    }
  }
#if defined(_SC_LEVEL2_CACHE_SIZE)
  if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) return static_cast<std::uint64_t>(bytes);
#endif
  return usual_size;
}

}  // namespace

std::uint64_t own_cache_size() {
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
