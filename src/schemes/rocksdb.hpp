// Common parts of the schemes rocksdb and rocksdb_4: filters in lines of 512 bits.
#pragma once

#include <bloomery/detail/geometry.hpp>
#include <bloomery/scheme.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace bloomery::rocksdb {

constexpr std::uint64_t line_bits = 512;
constexpr std::uint64_t line_bytes = line_bits / 8;
constexpr std::uint32_t most_probes = 30;
constexpr std::uint64_t most_bits_per_key = 100;  // RocksDB reduces larger numbers to this

using line = std::array<std::uint64_t, 8>;

inline std::uint32_t ones(const line& bits) {
  int sum = 0;
  for (const std::uint64_t word : bits) sum += std::popcount(word);
  return static_cast<std::uint32_t>(sum);
}

/// The mean of rate(bits) over the lines of seen.beginning, at least one.
template <class Rate>
double mean_of_lines(const scheme_bits& seen, Rate rate) {
  const std::size_t lines = seen.beginning.size() / line_bytes;
  double sum = 0;
  for (std::size_t i = 0; i < lines; ++i) {
    line bits;
    std::memcpy(bits.data(), seen.beginning.data() + i * line_bytes, line_bytes);
    sum += rate(bits);
  }
  return sum / static_cast<double>(lines);
}

/// @throws error  invalid_argument: not whole lines, or probes outside 1 .. 30; too_large
void check(const geometry& g, std::uint64_t most_bits);

/// The most bits per key, up to 100, of a filter of at most `most_bits`.
/// @throws error  invalid_argument: no keys, or a target outside (0, 1); too_large: less than a bit per key
std::uint64_t most_bits_per_key_for(std::uint64_t capacity, double target_fpr, std::uint64_t most_bits);

/// @throws error  too_large, always
[[noreturn]] void refuse_target();

}  // namespace bloomery::rocksdb
