#include <bloomery/bits.hpp>

#include <bit>
#include <cstddef>
#include <cstring>

namespace bloomery {

std::uint64_t count_ones(std::span<const std::uint8_t> bytes) noexcept {
  std::uint64_t ones = 0;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, 8);
    ones += static_cast<std::uint64_t>(std::popcount(word));
  }
  for (; i < bytes.size(); ++i) ones += static_cast<std::uint64_t>(std::popcount(bytes[i]));
  return ones;
}

}  // namespace bloomery
