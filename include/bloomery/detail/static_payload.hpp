// What the payloads of all static filters have in common (fuse.hpp, ribbon.hpp): a head and a table of partitions.
//
//   payload:  | head, 64 bytes: keys, P, w, zeros | P partitions | the rest, partition after partition |
//
//   partition = hi64(hash64 * P)          about a million keys, built independently, within the caches of one thread
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/geometry.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/layout.hpp>

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

/// Fingerprints of `Width` bits, 1 to 32: the FPR is 2^-Width.
template <unsigned Width>
struct fingerprint_bits {};

namespace sealed {

inline constexpr std::uint64_t header_bytes = 64;
inline constexpr std::uint64_t multiplier = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio, odd
inline constexpr unsigned most_width = 32;

/// Whether this build has ribbon filters. The web page does not, to stay small.
#if defined(__EMSCRIPTEN__)
inline constexpr bool has_ribbon = false;
#else
inline constexpr bool has_ribbon = true;
#endif

inline std::uint64_t keys_in(const std::uint8_t* payload) noexcept {
  std::uint64_t keys;
  std::memcpy(&keys, payload, sizeof keys);
  return keys;
}

inline std::uint64_t partitions_in(const std::uint8_t* payload) noexcept {
  std::uint32_t partitions;
  std::memcpy(&partitions, payload + 8, sizeof partitions);
  return partitions;
}

inline unsigned width_in(const std::uint8_t* payload) noexcept {
  std::uint32_t width;
  std::memcpy(&width, payload + 12, sizeof width);
  return width;
}

}  // namespace sealed

/// A finished payload.
struct static_bytes {
  heap_storage payload;
  std::uint64_t keys;  ///< distinct hashes
};

/// The smallest width whose FPR at `keys` keys is at most `target_fpr`; none if even 32 bits have a higher one.
/// Collisions of hashes may add a millionth of the target.
///
/// Example:
///     assert(static_width_for(0.001, 1'000'000) == 10);
std::optional<unsigned> static_width_for(double target_fpr, std::uint64_t keys);

/// The exact FPR of a static filter of `keys` keys: 2^-w plus the collisions of 64-bit hashes; 0 without keys.
///
/// The fingerprint of a random absent key is independent of what its lookup reads and combines, so it equals the result
/// with probability 2^-w.
///
/// Example:
///     assert(static_rate(8, 1'000'000) > 1 / 256.0 && static_rate(8, 1'000'000) < 1.0001 / 256);
///     assert(static_rate(8, 0) == 0);
double static_rate(unsigned width, std::uint64_t keys);

/// Called occasionally while a filter is built, by one thread at a time, with the number of processed keys. If it
/// throws, building stops.
using build_watch = std::function<void(std::uint64_t keys)>;

/// fuse_build() or ribbon_build().
static_bytes static_build(static_structure structure, std::span<std::uint64_t> hash64s, unsigned width,
                          unsigned threads = 0, const build_watch& watch = {});

/// "fuse8", "ribbon7". @throws error invalid_argument: another width than 1 to 32
std::string_view static_layout_name(static_structure structure, std::uint64_t width);

/// fuse_geometry() or ribbon_geometry().
geometry static_geometry(static_structure structure, unsigned width, std::uint64_t keys);

}  // namespace bloomery
