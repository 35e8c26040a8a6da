// The magic numbers of the library's files, by which other programs can recognize them (docs/format.md).
#pragma once

#include <bloomery/detail/export.hpp>

#include <array>
#include <cstdint>

namespace bloomery {

using file_magic = std::array<std::uint8_t, 8>;

inline constexpr file_magic filter_magic = {0x89, 'B', 'L', 'M', 'R', '\r', '\n', 0x1A};
inline constexpr file_magic layers_magic = {0x89, 'B', 'L', 'M', 'G', '\r', '\n', 0x1A};
inline constexpr file_magic key_log_magic = {0x89, 'B', 'L', 'M', 'L', '\r', '\n', 0x1A};

}  // namespace bloomery
