// geometry: the number of bits m and the number of probes k of a filter.
#pragma once

#include <bloomery/detail/export.hpp>

#include <cstdint>

namespace BLOOMERY_EXPORT bloomery {

/// The size of a filter: m and k of the textbooks.
struct geometry {
  std::uint64_t bits = 0;    ///< m; for blocked layouts a multiple of the block size
  std::uint32_t probes = 0;  ///< k, probes per key; 1 .. 255

  friend bool operator==(const geometry&, const geometry&) = default;
};

/// Maximum number of probes per key in any layout or scheme.
inline constexpr std::uint32_t max_probes = 255;

/// Bytes needed for `bits` bits; unused bits of the last byte stay 0.
constexpr std::uint64_t bytes_for(std::uint64_t bits) noexcept { return bits / 8 + (bits % 8 != 0); }

}  // namespace bloomery
