// The last five bytes of a Bloom filter of RocksDB, after its lines of 64 bytes.
#pragma once

#include <bloomery/params.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace bloomery::formats {

constexpr std::size_t rocksdb_end_bytes = 5;

/// Scheme and geometry of a filter of `bytes` bytes of lines; empty: another kind of filter, or sizes that contradict
/// each other.
std::optional<params> params_of_rocksdb(std::uint64_t bytes, std::span<const std::uint8_t, rocksdb_end_bytes> end);

/// The last bytes for a filter of scheme rocksdb or rocksdb_4.
std::array<std::uint8_t, rocksdb_end_bytes> rocksdb_end_of(const params& p);

}  // namespace bloomery::formats
