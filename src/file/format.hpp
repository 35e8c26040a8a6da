// Encoding and decoding of a filter file's header page. docs/format.md has the format.
#pragma once

#include <bloomery/mapped_storage.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace bloomery::format {

inline constexpr std::uint64_t page_bytes = 4096;
inline constexpr std::uint64_t header_bytes = page_bytes;
inline constexpr std::uint32_t version = 1;
inline constexpr std::uint32_t salts_version = 2;  // of a file whose header has salts, and only of such a file
inline constexpr std::uint64_t checksum_bytes = 8;
inline constexpr std::uint64_t most_metadata = std::uint64_t{1} << 20;

using page = std::array<std::uint8_t, page_bytes>;

/// Sizes and offsets of the parts of a file, in bytes.
struct extents {
  std::uint64_t payload_bytes = 0;  ///< bytes of the filter
  std::uint64_t pages = 0;          ///< pages of the payload, the last one padded with zeros
  std::uint64_t checksums_at = 0;   ///< one 8-byte XXH3-64 per page
  std::uint64_t metadata_at = 0;
  std::uint64_t metadata_bytes = 0;
  std::uint64_t file_bytes = 0;
};

/// Cannot overflow: a file of 2^64 - 1 bits has less than 2^62 bytes.
extents extents_for(std::uint64_t bits, std::uint64_t metadata_bytes);

/// The mutable part of the header, stored in two alternating slots.
struct slot {
  std::uint64_t sequence = 0;
  bool clean = true;
  key_counts counts;
};

inline constexpr std::size_t slot_at[2] = {512, 1024};
inline constexpr std::size_t slot_bytes = 64;

/// Sequence numbers count modulo 2^63: a file may be written without end.
inline constexpr std::uint64_t sequence_numbers = std::uint64_t{1} << 63;

constexpr std::uint64_t next_sequence(std::uint64_t sequence) noexcept {
  return (sequence + 1) & (sequence_numbers - 1);
}

/// Whether `a` comes after `b`: by less than half of all numbers.
constexpr bool is_later(std::uint64_t a, std::uint64_t b) noexcept {
  const std::uint64_t ahead = (a - b) & (sequence_numbers - 1);
  return ahead != 0 && ahead < sequence_numbers / 2;
}

std::array<std::uint8_t, slot_bytes> encode(const slot& s);

/// A header page with the slot in both places.
/// @throws error invalid_argument: a name or the metadata is too long
page encode(const params& parameters, const slot& s, const std::string& metadata);

struct decoded {
  file_info info;  ///< without the metadata
  extents parts;
  slot current;
  std::size_t current_slot = 0;
  std::uint64_t metadata_checksum = 0;
};

/// Checks all fields for consistency with each other and with the file's length.
/// @throws error  not_a_filter, wrong_version, damaged
decoded decode(std::span<const std::uint8_t> header, std::uint64_t file_bytes, const std::string& path);

/// XXH3-64: the checksum of header, slots and metadata.
std::uint64_t checksum(std::span<const std::uint8_t> bytes) noexcept;

/// Checksum of a page of the payload: its XXH3-64, xor that of a page of zeros. So the table of an empty filter is all
/// zeros, too, and both payload and table are holes in a sparse file.
std::uint64_t page_checksum(std::span<const std::uint8_t, page_bytes> bytes) noexcept;

}  // namespace bloomery::format
