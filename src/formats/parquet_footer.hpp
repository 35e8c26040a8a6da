// The Bloom filters of a Parquet file: where they are, and of which columns.
//
//   PAR1 | row groups: pages of columns ... | Bloom filters, indexes ... | footer | u32 length of the footer | PAR1
//                                             |                            |
//                                             filter: header | bitset      FileMetaData, in Thrift's compact protocol
//
// A column chunk, the values of one column in one row group, may have a filter. Its bitset is that of bloomery's layout
// split_block with XXH64 and seed 0. docs/formats.md has the bytes.
//
// https://github.com/apache/parquet-format: BloomFilter.md and src/main/thrift/parquet.thrift
//
// Footers and headers are untrusted. Only these parts of a file are read, never the pages or all of the filters.
#pragma once

#include "formats/byte_source.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::formats {

/// The first and the last four bytes of a Parquet file.
inline constexpr std::array<std::uint8_t, 4> parquet_magic = {'P', 'A', 'R', '1'};

/// The physical type of a column, with the numbers of the format.
enum class parquet_type : std::uint8_t {
  boolean = 0,
  int32 = 1,
  int64 = 2,
  int96 = 3,
  float32 = 4,
  float64 = 5,
  byte_array = 6,
  fixed_len_byte_array = 7,
};

/// The name in the format: "INT32".
const char* name_of(parquet_type type) noexcept;

struct parquet_filter {
  std::uint64_t offset = 0;             ///< of its header in the file
  std::optional<std::uint64_t> length;  ///< of header and bitset, if the footer states it
};

/// The values of one column in one row group, and their filter, if there is one.
struct parquet_chunk {
  std::uint64_t row_group = 0;
  std::uint64_t column_number = 0;  ///< among the columns of the file
  std::string
      column;  ///< the names from the root, separated by dots. Untrusted bytes; two columns may have equal names
  parquet_type type{};
  std::uint32_t value_bytes = 0;  ///< of fixed_len_byte_array
  std::string_view annotation;    ///< meaning of the values, in the format's words, such as "DATE"; empty if none
  bool is_unsigned = false;       ///< int32 and int64: values are unsigned integers
  std::uint64_t rows = 0;         ///< of the row group
  std::uint64_t values = 0;       ///< nulls included; more than rows in repeated columns
  bool is_encrypted = false;      ///< the filter, if any, cannot be read. `values` may be 0
  bool in_another_file = false;   ///< offsets refer to that file
  std::optional<parquet_filter> filter;
};

struct parquet_footer {
  std::string created_by;  ///< the program, such as "DuckDB version v1.5.6"; untrusted bytes
  std::uint64_t rows = 0;  ///< of the file
  std::uint64_t row_groups = 0;
  std::uint64_t columns = 0;
  std::uint64_t offset = 0;           ///< of the footer in the file
  std::vector<parquet_chunk> chunks;  ///< row_groups * columns, by row group, then by column
};

/// The longest footer that is read, 256 MiB. Reading takes less than 30 bytes of memory per byte of the footer.
inline constexpr std::uint64_t most_footer_bytes = std::uint64_t{1} << 28;

/// Reads the footer. All filters that it returns start within the file and before the footer, and so do their lengths.
/// @throws error  not_a_filter: not a Parquet file; incompatible: the footer is encrypted; damaged; too_large; io
parquet_footer read_parquet_footer(const byte_source& source);

/// The bits of a filter in the file.
struct parquet_bitset {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  ///< a multiple of 32, from 32 to 2^31 - 32
};

/// The largest filter that parquet-java and Arrow C++ write or read, 128 MiB. The format itself allows 2^31 - 32 bytes.
inline constexpr std::uint64_t most_common_bitset_bytes = std::uint64_t{1} << 27;

/// Reads the header of a chunk's filter. The bitset is within the file and before the footer.
/// @throws error  not_found: the chunk has no filter; incompatible: it is encrypted, in another file, or of an unknown
///                algorithm, hash or compression; damaged; io
parquet_bitset read_filter_header(const byte_source& source, const parquet_footer& footer, const parquet_chunk& chunk);

}  // namespace bloomery::formats
