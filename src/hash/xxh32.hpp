// XXH32, the checksum of older tables of RocksDB.
#pragma once

#include <cstdint>
#include <span>

namespace bloomery::hashes {

/// The hash with seed 0.
std::uint32_t xxh32(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace bloomery::hashes
