// Plain encoding of values, the bytes that a Bloom filter of a Parquet file hashes.
//
//   BOOLEAN                           1 byte, 0 or 1
//   INT32, FLOAT                      4 bytes, little-endian
//   INT64, DOUBLE                     8 bytes, little-endian
//   BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY  the bytes themselves
//
// An annotation does not change the bytes: the key of a date is its number of days since 1970-01-01, and the key of the
// decimal number 3.00 is 300 if the scale of the column is 2.
//
// The format hashes bit patterns and mentions neither zeros nor NaN: 0 and -0 have different hashes, although they are
// equal. To find either zero, look up the value and, if flip_zero() returns true, also the flipped value. NaN has
// 2^53 - 2 bit patterns in a double. A lookup of one of them would miss the others, so NaN is refused.
#pragma once

#include "formats/parquet_footer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace bloomery::formats {

inline constexpr std::size_t plain_number_bytes = 8;

/// The plain encoding of a key: "42", "3.5", "true", or the bytes of an array. Refers to the buffer or to the text.
/// @throws error  invalid_argument: the text is not a value of the column; incompatible: int96 has no text
std::span<const std::uint8_t> plain_value(const parquet_chunk& column, std::string_view text,
                                          std::span<std::uint8_t, plain_number_bytes> buffer);

/// If the value of a floating-point column is 0 or -0, changes it to the other one and returns true.
bool flip_zero(const parquet_chunk& column, std::span<std::uint8_t, plain_number_bytes> buffer) noexcept;

}  // namespace bloomery::formats
