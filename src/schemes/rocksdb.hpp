// Common parts of the schemes rocksdb and rocksdb_4: filters in lines of 512 bits.
#pragma once

#include <bloomery/detail/geometry.hpp>

#include <cstdint>

namespace bloomery::rocksdb {

constexpr std::uint32_t line_bits = 512;
constexpr std::uint32_t most_probes = 30;
constexpr std::uint64_t most_bits_per_key = 100;  // RocksDB reduces larger numbers to this

/// @throws error  invalid_argument: not whole lines, or probes outside 1 .. 30; too_large
void check(const geometry& g, std::uint64_t most_bits);

/// The most bits per key, up to 100, of a filter of at most `most_bits`.
/// @throws error  invalid_argument: no keys, or a target outside (0, 1); too_large: less than a bit per key
std::uint64_t most_bits_per_key_for(std::uint64_t capacity, double target_fpr, std::uint64_t most_bits);

/// @throws error  too_large, always
[[noreturn]] void refuse_target(std::uint64_t most_bits);

}  // namespace bloomery::rocksdb
