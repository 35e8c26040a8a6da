// Checks that the payloads of all static filters share.
#pragma once

#include <bloomery/detail/static_payload.hpp>
#include <bloomery/error.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace bloomery {

/// The names of a structure's layouts, by width: for "fuse", those of "fuse1" to "fuse32", each with a final zero.
template <std::size_t Length>
constexpr auto static_names(std::string_view structure) {
  std::array<std::array<char, Length + 3>, sealed::most_width> names{};
  for (unsigned width = 1; width <= sealed::most_width; ++width) {
    auto& name = names[width - 1];
    std::copy_n(structure.begin(), Length, name.begin());
    name[Length] = static_cast<char>('0' + (width < 10 ? width : width / 10));
    if (width >= 10) name[Length + 1] = static_cast<char>('0' + width % 10);
  }
  return names;
}

/// @throws error  invalid_argument, unless `width` is 1 to 32
inline void check_width(std::uint64_t width) {
  if (width != 0 && width <= sealed::most_width) return;
  throw error(errc::invalid_argument,
              {"invalid number of bits of a fingerprint", "width", "1 to 32", std::to_string(width), ""});
}

/// @throws error  damaged, always
[[noreturn]] inline void refuse_static(const std::string& where, const std::string& what, const std::string& expected,
                                       std::uint64_t found) {
  throw error(errc::damaged, {"the static filter contradicts itself: " + what, where, expected, std::to_string(found),
                              hint::seal_again});
}

/// Checks the head of a payload and returns the number of its partitions, whose descriptors are in the payload.
/// @param unchecked  where zeros begin
/// @throws error     damaged
inline std::uint64_t check_head(unsigned width, std::span<const std::uint8_t> payload, std::uint64_t partition_bytes,
                                const std::string& where, std::uint64_t unchecked = 16) {
  if (payload.size() < sealed::header_bytes + partition_bytes || payload.size() % 64 != 0)
    refuse_static(where, "its size", "a multiple of 64 bytes, at least 128", payload.size());
  if (const unsigned written = sealed::width_in(payload.data()); written != width)
    refuse_static(where, "bits of a fingerprint", std::to_string(width), written);
  for (std::uint64_t at = unchecked; at < sealed::header_bytes; ++at) {
    if (payload[at] != 0) refuse_static(where, "reserved bytes", "zeros", payload[at]);
  }
  const std::uint64_t partitions = sealed::partitions_in(payload.data());
  const std::uint64_t most = (payload.size() - sealed::header_bytes) / partition_bytes;
  if (partitions == 0 || partitions > most)
    refuse_static(where, "partitions", "1 to " + std::to_string(most), partitions);
  return partitions;
}

/// @throws error  damaged, unless the head says that there are this many keys
inline void check_keys(std::span<const std::uint8_t> payload, std::uint64_t keys, const std::string& where) {
  if (const std::uint64_t written = sealed::keys_in(payload.data()); written != keys)
    refuse_static(where, "keys", std::to_string(keys), written);
}

}  // namespace bloomery
