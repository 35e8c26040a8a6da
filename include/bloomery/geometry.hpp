// The size of a filter, as every layout understands it.
#pragma once

#include <bloomery/export.hpp>

#include <cstdint>

namespace BLOOMERY_EXPORT bloomery {

/// m and k of the textbooks.
struct geometry {
  std::uint64_t bits = 0;    ///< m; a blocked layout wants a multiple of its block
  std::uint32_t probes = 0;  ///< k, bits set by a key; 1 .. 255

  friend bool operator==(const geometry&, const geometry&) = default;
};

/// The most probes a key may have in any layout or scheme.
inline constexpr std::uint32_t max_probes = 255;

/// Bytes that hold `bits` bits; the last byte's unused bits stay 0.
constexpr std::uint64_t bytes_for(std::uint64_t bits) noexcept { return bits / 8 + (bits % 8 != 0); }

}  // namespace bloomery
