#include "formats/rdb.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace bloomery::rdb {
namespace {

static_assert(std::endian::native == std::endian::little);

// tables[j][b]: CRC of byte b followed by j zero bytes.
using crc_tables = std::array<std::array<std::uint64_t, 256>, 8>;

const crc_tables& tables() noexcept {
  static const crc_tables computed = [] {
    crc_tables t{};
    for (unsigned b = 0; b < 256; ++b) {
      std::uint64_t crc = b;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x95AC9329AC4BC9B5u : 0);
      t[0][b] = crc;
    }
    for (std::size_t j = 1; j < t.size(); ++j) {
      for (unsigned b = 0; b < 256; ++b) t[j][b] = t[0][t[j - 1][b] & 0xFF] ^ t[j - 1][b] >> 8;
    }
    return t;
  }();
  return computed;
}

constexpr std::uint8_t length_of_14_bits = 0x40;
constexpr std::uint8_t length_of_32_bits = 0x80;
constexpr std::uint8_t length_of_64_bits = 0x81;

}  // namespace

std::uint64_t crc64(std::uint64_t crc, std::span<const std::uint8_t> bytes) noexcept {
  const crc_tables& t = tables();
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    word ^= crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= t[7 - i][word >> 8 * i & 0xFF];
  }
  for (; at < bytes.size(); ++at) crc = t[0][(crc ^ bytes[at]) & 0xFF] ^ crc >> 8;
  return crc;
}

std::size_t bytes_of_length(std::uint64_t length) noexcept {
  return length < 1u << 6 ? 1 : length < 1u << 14 ? 2 : length <= 0xFFFF'FFFF ? 5 : 9;
}

void append_length(std::vector<std::uint8_t>& bytes, std::uint64_t length) {
  const std::size_t size = bytes_of_length(length);
  if (size == 5) bytes.push_back(length_of_32_bits);
  if (size == 9) bytes.push_back(length_of_64_bits);
  const std::size_t first = bytes.size();
  for (std::size_t i = size <= 2 ? size : size - 1; i-- > 0;)
    bytes.push_back(static_cast<std::uint8_t>(length >> 8 * i & 0xFF));
  if (size == 2) bytes[first] |= length_of_14_bits;
}

std::uint64_t reader::number(std::size_t bytes) noexcept {
  if (!valid_ || bytes_.size() - at_ < bytes) {
    valid_ = false;
    return 0;
  }
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | bytes_[at_++];
  return value;
}

std::uint8_t reader::byte() noexcept { return static_cast<std::uint8_t>(number(1)); }

std::uint64_t reader::length() noexcept {
  const std::size_t before = at_;
  const std::uint8_t first = byte();
  std::uint64_t value = 0;
  if (first < length_of_14_bits)
    value = first;
  else if (first < length_of_32_bits)
    value = std::uint64_t{first & 0x3Fu} << 8 | byte();
  else if (first == length_of_32_bits)
    value = number(4);
  else if (first == length_of_64_bits)
    value = number(8);
  else
    valid_ = false;
  if (valid_ && at_ - before != bytes_of_length(value)) valid_ = false;
  return valid_ ? value : 0;
}

std::span<const std::uint8_t> reader::bytes(std::uint64_t count) noexcept {
  if (!valid_ || bytes_.size() - at_ < count) {
    valid_ = false;
    return {};
  }
  const std::span<const std::uint8_t> taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
  at_ += taken.size();
  return taken;
}

// Runs of bytes: a control byte below 32 begins as many literal bytes, and one more. Others begin a copy of earlier
// output: 3 bits of its length less 2 (7: a byte with the rest follows), and 13 bits of its distance less 1.
bool expand_lzf(std::span<const std::uint8_t> from, std::span<std::uint8_t> into) noexcept {
  std::size_t at = 0;
  std::size_t done = 0;
  while (at < from.size()) {
    const std::size_t control = from[at++];
    std::size_t length = control < 32 ? control + 1 : control / 32 + 2;
    if (length == 9 && control >= 32) {
      if (at == from.size()) return false;
      length += from[at++];
    }
    if (into.size() - done < length) return false;
    if (control < 32) {
      if (from.size() - at < length) return false;
      std::copy_n(from.data() + at, length, into.data() + done);
      at += length;
    } else {
      if (at == from.size()) return false;
      const std::size_t distance = (control % 32) * 256 + from[at++] + 1;
      if (distance > done) return false;
      for (std::size_t i = 0; i < length; ++i) into[done + i] = into[done + i - distance];
    }
    done += length;
  }
  return done == into.size();
}

}  // namespace bloomery::rdb
