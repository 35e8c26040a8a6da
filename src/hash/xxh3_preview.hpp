// The preview of XXH3 that RocksDB's filters use: 64 bits, seed 0.
#pragma once

#include <cstdint>
#include <string_view>

namespace bloomery::hashes {

/// Example:
///     assert(xxh3_preview("key-1") != bloomery::xxh3_64{}("key-1").hash64);  // the released XXH3
std::uint64_t xxh3_preview(std::string_view key) noexcept;

}  // namespace bloomery::hashes
