// A block is its uncompressed length, a varint, and elements. The lowest two bits of an element's first byte are its
// kind, and the other six bits are:
//
//   0  literal: length - 1, or 59 + the number of bytes (1 to 4, little-endian) that have it; then the bytes
//   1  copy:    length - 4 in 3 bits; 3 high bits of the offset, and a byte with its 8 low bits
//   2  copy:    length - 1; an offset of 2 bytes, little-endian
//   3  copy:    length - 1; an offset of 4 bytes, little-endian
//
// A copy repeats bytes that begin `offset` bytes before the end of the output, and may repeat its own bytes.
//
// https://github.com/google/snappy/blob/main/format_description.txt
#include "formats/snappy.hpp"

#include "formats/varint.hpp"

#include <cstddef>

namespace bloomery::formats {
namespace {

constexpr std::uint64_t most_expansion = 22;  // 3 bytes copy up to 64

// Removes a little-endian number of `bytes` bytes from the beginning of `from`, which has that many.
std::uint64_t take_number(std::span<const std::uint8_t>& from, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= std::uint64_t{from[i]} << 8 * i;
  from = from.subspan(bytes);
  return value;
}

}  // namespace

std::optional<std::vector<std::uint8_t>> decompress_snappy(std::span<const std::uint8_t> from) {
  const std::uint64_t most = most_expansion * from.size();
  const std::optional<std::uint64_t> size = take_varint(from);
  if (!size || *size > most) return std::nullopt;
  std::vector<std::uint8_t> out;
  out.reserve(*size);
  while (!from.empty()) {
    const std::uint8_t tag = from[0];
    const unsigned kind = tag & 3u;
    from = from.subspan(1);
    std::uint64_t length = (tag >> 2) + 1u;
    std::uint64_t offset = 0;
    std::size_t more = kind == 3 ? 4 : kind;
    if (kind == 0 && length > 60) more = static_cast<std::size_t>(length - 60);
    if (from.size() < more) return std::nullopt;
    const std::uint64_t number = take_number(from, more);
    if (kind == 0) {
      if (more > 0) length = number + 1;
      if (length > from.size()) return std::nullopt;
    } else if (kind == 1) {
      length = (tag >> 2 & 7u) + 4u;
      offset = (tag & 0xE0u) << 3 | number;
    } else {
      offset = number;
    }
    if (length > *size - out.size()) return std::nullopt;
    if (kind == 0) {
      out.insert(out.end(), from.begin(), from.begin() + static_cast<std::ptrdiff_t>(length));
      from = from.subspan(length);
      continue;
    }
    if (offset == 0 || offset > out.size()) return std::nullopt;
    for (; length > 0; --length) out.push_back(out[out.size() - offset]);
  }
  if (out.size() != *size) return std::nullopt;
  return out;
}

}  // namespace bloomery::formats
