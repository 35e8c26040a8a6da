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

/// Fingerprints of `Width` bits, 1 to 32, in a filter of this structure: the FPR is 2^-Width.
template <unsigned Width, static_structure Structure = static_structure::fuse>
struct fingerprint_bits {};

namespace sealed {

inline constexpr std::uint64_t header_bytes = 64;
inline constexpr std::uint64_t multiplier = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio, odd
inline constexpr unsigned most_width = 32;

/// The width and the structure of a static filter, given by a type: by an unsigned integer, for fuse filters, or by
/// fingerprint_bits. A width of 0: another type.
template <class F>
inline constexpr unsigned width_of = 0;
template <>
inline constexpr unsigned width_of<std::uint8_t> = 8;
template <>
inline constexpr unsigned width_of<std::uint16_t> = 16;
template <>
inline constexpr unsigned width_of<std::uint32_t> = 32;
template <unsigned Width, static_structure Structure>
inline constexpr unsigned width_of<fingerprint_bits<Width, Structure>> = Width <= most_width ? Width : 0;

template <class F>
inline constexpr static_structure structure_of = static_structure::fuse;
template <unsigned Width, static_structure Structure>
inline constexpr static_structure structure_of<fingerprint_bits<Width, Structure>> = Structure;

/// The lookups of a structure (fuse.hpp, ribbon.hpp), made of a checked payload, which may move later, but not change:
///
///   check(width, payload, where)             check_fuse() or check_ribbon()
///   has<width>(payload, hash64)              whether the key with this hash may be present
///   has_batch(payload, bits, keys, bitmap)   the same for many keys; `bits` is the size of the payload
template <static_structure Structure>
struct lookups;

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

/// The types of fingerprints of a static filter: std::uint8_t, std::uint16_t, std::uint32_t, and fingerprint_bits of 1
/// to 32 bits.
template <class F>
concept static_fingerprint = sealed::width_of<F>
!= 0;

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
