// Tables of LevelDB (.ldb, .sst) and RocksDB (.sst): files of sorted keys, and where their Bloom filters are.
//
//   data blocks ... | filter block | metaindex block | index block | footer
//
// The footer has the places of metaindex and index. The metaindex maps names to blocks, such as that of the filters.
// The index maps the last key of each data block to the place of the block.
//
//   block   entries | R restart points, u32 each | u32 R
//   entry   varint shared | varint rest | varint size | rest bytes of the key | value
//           The key begins with the first `shared` bytes of the entry before.
//   handle  varint offset | varint size; after the block come a byte, its compression, and a checksum, u32
//
// https://github.com/google/leveldb/blob/main/doc/table_format.md
//
// Tables are untrusted. Data blocks are never read.
#pragma once

#include <bloomery/detail/function_ref.hpp>

#include "formats/byte_source.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::formats {

enum class table_system : std::uint8_t { leveldb, rocksdb };

/// The checksum of a block and its compression: the numbers of RocksDB. LevelDB has CRC-32C.
enum class table_checksum : std::uint8_t { none = 0, crc32c = 1, xxh32 = 2, xxh64 = 3, xxh3 = 4 };

struct block_handle {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  ///< without compression and checksum
};

struct table_footer {
  table_system system{};
  std::uint32_t version = 0;  ///< format_version of RocksDB
  table_checksum checksum{};
  std::uint64_t data_bytes = 0;  ///< all blocks end before this offset
  block_handle metaindex = {};
  block_handle index = {};
};

/// The system of a table, by the last bytes of the file.
std::optional<table_system> system_of_table(const byte_source& source);

/// @throws error  not_a_filter: not a table; incompatible: a later version or another checksum of RocksDB; damaged
table_footer read_table_footer(const byte_source& source);

/// How a block is compressed: the numbers of LevelDB. RocksDB has the same up to 1.
enum class block_compression : std::uint8_t { none = 0, snappy = 1, zstd = 2 };

struct table_block {
  std::vector<std::uint8_t> bytes;  ///< decompressed
  block_compression compression{};  ///< in the file
};

/// The most bytes of a block in the file. A metaindex has a few names, and properties are short texts. Filters of
/// RocksDB have at most 2^32 bytes, and the offsets in those of LevelDB have 32 bits.
enum class most_bytes : std::uint64_t {
  metaindex = std::uint64_t{1} << 24,
  properties = std::uint64_t{1} << 26,
  index = std::uint64_t{1} << 32,
  filter = (std::uint64_t{1} << 32) + 5
};

/// Reads a block, which takes up to 22 times its size in memory. Its checksum is verified, if it has one.
/// @param what    the block, for errors: "index block"
/// @throws error  damaged: it is not within the file, it is too large, or its checksum is wrong; incompatible: a
///                compression other than none and Snappy
table_block read_block(const byte_source& source, const table_footer& footer, const block_handle& handle,
                       const char* what, most_bytes most);

/// The last `count` bytes of a block that is not compressed, before the rest of it is read; empty: it is compressed or
/// shorter. @throws error  damaged: the block is not within the file; incompatible: as read_block()
std::vector<std::uint8_t> end_of_block(const byte_source& source, const table_footer& footer,
                                       const block_handle& handle, const char* what, std::size_t count);

struct block_entry {
  std::string_view key;
  std::span<const std::uint8_t> value;
  bool is_whole;  ///< the key is in the block; otherwise it is valid during the call
};

/// Calls work(entry) for each entry in order. @throws error  damaged
void each_entry(std::span<const std::uint8_t> block, const byte_source& source, const char* what,
                function_ref<void(const block_entry& entry)> work);

/// The place of a block by its name in the metaindex; empty: it is not there. @throws error  damaged
std::optional<block_handle> find_block(const table_block& metaindex, const byte_source& source, std::string_view name);

/// Reports that the metaindex does not have the filter `name`, with the names of those that it has.
/// @throws error  not_found, always; damaged
[[noreturn]] void refuse_without_filter(const table_block& metaindex, const byte_source& source, std::string_view name);

/// @throws error  damaged
block_handle handle_of(std::span<const std::uint8_t> value, const byte_source& source, const char* what);

/// A filter block of LevelDB: filter i is for the keys of the data blocks that begin in bytes i 2^g .. (i + 1) 2^g - 1
/// of the file.
///
///   filters | N offsets of filters, u32 each | u32 offset of the first offset | u8 g
class filter_block {
 public:
  /// @throws error  damaged
  filter_block(std::vector<std::uint8_t> bytes, const byte_source& source);

  std::uint64_t size() const noexcept { return count_; }
  std::uint64_t range_bytes() const noexcept { return std::uint64_t{1} << range_log2_; }

  /// What CreateFilter returned for these keys: bits and a byte with the number of probes; empty without keys.
  std::span<const std::uint8_t> filter(std::uint64_t i) const noexcept;

 private:
  std::uint32_t offset_of(std::uint64_t i) const noexcept;

  std::vector<std::uint8_t> bytes_;
  std::uint64_t offsets_at_ = 0;
  std::uint64_t count_ = 0;
  std::uint8_t range_log2_ = 0;
};

/// The index of a table of LevelDB, for user keys: without the 8 bytes that a database appends to each.
class table_index {
 public:
  /// @throws error  damaged
  table_index(table_block block, const byte_source& source, const table_footer& footer);
  table_index(const table_index&) = delete;
  table_index& operator=(const table_index&) = delete;

  /// Why these cannot be the keys of a database in the order of their bytes. Empty: they can, but an index of few
  /// entries fits other orders, too.
  const std::string& contradiction() const noexcept { return contradiction_; }

  /// Offset of the last data block; empty: no block.
  const std::optional<std::uint64_t>& last_block() const noexcept { return last_block_; }

  /// Offset in the file of the only data block that can contain the key, if the keys are in the order of their bytes;
  /// empty: no block can.
  std::optional<std::uint64_t> data_block(std::string_view user_key) const noexcept;

 private:
  struct entry {
    std::string_view last_key;  // points into block_
    std::uint64_t offset;
  };

  table_block block_;
  std::vector<entry> entries_;
  std::string contradiction_;
  std::optional<std::uint64_t> last_block_;
};

}  // namespace bloomery::formats
