// Filter cascades [Larisch et al. 2017, "CRLite: A Scalable System for Pushing All TLS Revocations to All Browsers"]:
// static filters of two levels that answer correctly for each key of two lists. Keys of neither list have an FPR.
//
//   payload:  | first level | second level |
//
//   first level    a ribbon filter of w bits of the keys that are present (ribbon.hpp); its head also has the offset of
//                  the second level, 8 bytes after the first 16
//   second level   the slots of a ribbon filter of 1 bit, which give a bit for each key that the first level reports: 1
//                  for present keys, 0 for those of the list of absent keys. So 2^-w of the absent keys take space
//
// The second level computes places from hash64 without its lowest bit, which contains the bit of a key while it is
// built.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/detail/ribbon.hpp>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

namespace cascade {

/// The bits of hash64, and of the hashes of further layers, from which the second level computes places.
inline constexpr std::uint64_t place_bits = ~std::uint64_t{1};

/// The place in the head of the offset of the second level.
inline constexpr std::uint64_t offset_at = 16;

/// The offset of the second level in a payload of 64 bytes or more.
inline std::uint64_t second_in(const std::uint8_t* payload) noexcept {
  std::uint64_t offset;
  std::memcpy(&offset, payload + offset_at, sizeof offset);
  return offset;
}

/// Whether the key with this hash may be present. The payload must have been checked.
bool has(const std::uint8_t* payload, std::uint64_t hash64) noexcept;

/// Looks up many keys: bit i%64 of bitmap[i/64] is the answer for key i.
void has_batch(const std::uint8_t* payload, const hash_span& keys, std::uint64_t* bitmap) noexcept;

/// The exact share of random hashes that the filter reports.
long double share_of_hits(const std::uint8_t* payload) noexcept;

}  // namespace cascade

/// "cascade1" to "cascade32". @throws error invalid_argument: another width
std::string_view cascade_layout_name(std::uint64_t width);

/// The exact FPR for keys of neither list: 2^-(w+1), plus the collisions of 64-bit hashes; 0 without keys. This is
/// static_rate() of w + 1 bits.
double cascade_rate(unsigned width, std::uint64_t keys);

/// The size of the first level of `keys` keys, and of a second level of the same keys.
geometry cascade_geometry(unsigned width, std::uint64_t keys);

/// Checks the sizes, positions and sums in an untrusted payload. After this, lookups stay within the payload, whatever
/// its other words contain.
/// @throws error  damaged: names the field
void check_cascade(unsigned width, std::span<const std::uint8_t> payload, const std::string& where);

}  // namespace bloomery
