// Parts of the RDB format of Redis, in which DUMP returns values: lengths, compressed strings and the checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bloomery::rdb {

/// CRC-64 of Redis: reflected polynomial 0x95AC9329AC4BC9B5, start value 0.
/// @param crc  of the bytes before
std::uint64_t crc64(std::uint64_t crc, std::span<const std::uint8_t> bytes) noexcept;

/// Appends a number as RDB stores lengths: 6 bits in 1 byte, 14 bits in 2, 32 bits in 5 or 64 bits in 9, big-endian.
void append_length(std::vector<std::uint8_t>& bytes, std::uint64_t length);

/// The number of bytes that append_length() appends.
std::size_t bytes_of_length(std::uint64_t length) noexcept;

/// Reads numbers in sequence. After a read beyond the end or of an unexpected form, is_valid() is false and all reads
/// return 0.
class reader {
 public:
  explicit reader(std::span<const std::uint8_t> bytes) noexcept : bytes_(bytes) {}

  bool is_valid() const noexcept { return valid_; }
  std::size_t at() const noexcept { return at_; }

  std::uint8_t byte() noexcept;
  std::uint64_t length() noexcept;                   ///< in its shortest form, as Redis writes it
  std::uint64_t number(std::size_t bytes) noexcept;  ///< big-endian, of at most 8 bytes
  std::span<const std::uint8_t> bytes(std::uint64_t count) noexcept;

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool valid_ = true;
};

/// The most bytes that one byte of compressed data expands to: 264 bytes from 3.
inline constexpr std::uint64_t most_expansion = 88;

/// Expands data in the LZF format of LibLZF. Returns whether it fills `into` exactly and is valid.
bool expand_lzf(std::span<const std::uint8_t> from, std::span<std::uint8_t> into) noexcept;

}  // namespace bloomery::rdb
