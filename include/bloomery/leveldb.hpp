// Bloom filters in table files of LevelDB and RocksDB: their false-positive rates, and which keys a table may contain.
//
// A table of LevelDB (.ldb or .sst) has a filter per range of its data, usually 2 KiB. If the keys are known to be in
// the order of their bytes, a lookup finds the data block of a key in the index of the table, and then the filter of
// the block. Otherwise it tests all filters of the table. Keys are those of the database: the 8 bytes that LevelDB
// appends to each of them are left out. A table of RocksDB (.sst) has one filter, which has the bits of scheme rocksdb
// or rocksdb_4.
// docs/formats.md describes the file.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/estimate.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/detail/geometry.hpp>
#include <bloomery/filter_handle.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// The filter of the keys in those data blocks that begin in a range of the file.
struct leveldb_filter {
  std::uint64_t first = 0;  ///< offset of the range
  std::uint64_t end = 0;    ///< offset of its end
  geometry size;            ///< no bits: no data block begins here. More than 30 probes: LevelDB reports every key
  std::uint64_t ones = 0;   ///< bits set
  double current_fpr = 0;   ///< (ones / bits)^probes, times a factor for all filters that a million lookups determine
  estimate keys;            ///< from the bits
};

/// The filter of a whole table of RocksDB.
struct rocksdb_filter {
  bool is_legacy = false;    ///< scheme rocksdb_4, of format_version 4 and before; otherwise rocksdb
  std::uint64_t lines = 0;   ///< cache lines of 64 bytes
  std::uint32_t probes = 0;  ///< per key, all in one line
  std::uint64_t ones = 0;    ///< bits set
};

/// The order of the keys of a table, which the table does not state.
enum class leveldb_order : std::uint8_t {
  of_manifest,  ///< that of the database in the folder of the table; unknown if the folder has no CURRENT and MANIFEST
  bytewise,     ///< LevelDB's own order. If the program that wrote the table has another one, lookups miss keys
};

/// Whether a file ends as a table of LevelDB or RocksDB does.
/// @throws error  not_found, not_permitted, not_a_filter (a directory, a device), io
///
/// Example:
///     any_filter(complete({.capacity = 1000, .target_fpr = 0.01})).save("some.bloom");
///     assert(!is_leveldb_table("some.bloom"));
bool is_leveldb_table(const std::string& path);

/// The filters of a table, in memory. A RocksDB key is given without the timestamp of a user's own comparator.
///
/// Threads: any number may look up.
///
/// Example:
///     const auto tables_with = [](const std::vector<std::string>& paths, std::string_view key) {
///       std::vector<std::string> found;
///       for (const std::string& path : paths) {
///         if (leveldb_table::open(path).may_contain(key)) found.push_back(path);
///       }
///       return found;
///     };
///     static_cast<void>(tables_with);
class leveldb_table {
 public:
  /// Reads the filters and the index, and verifies their checksums.
  /// @param order   decides whether a lookup may use the index: see all_filters_because()
  /// @throws error  not_found, not_permitted, io; not_a_filter: not a table; not_found: the table has no Bloom filter;
  ///                damaged; incompatible: a later version of RocksDB, or another kind of its filters: partitioned,
  ///                Ribbon, one per data block, or unknown
  static leveldb_table open(const std::string& path, leveldb_order order = leveldb_order::of_manifest);

  leveldb_table(leveldb_table&&) noexcept;
  leveldb_table& operator=(leveldb_table&&) noexcept;
  ~leveldb_table();

  std::uint64_t file_bytes() const noexcept;
  const std::string& policy() const noexcept;  ///< the name of the filter policy: "leveldb.BuiltinBloomFilter2"

  /// Measures the filters of LevelDB, in the order of the file. Empty for RocksDB.
  std::vector<leveldb_filter> filters() const;

  /// The filter of a table of RocksDB; empty for LevelDB.
  const std::optional<rocksdb_filter>& of_rocksdb() const noexcept;

  /// Whether the table has checksums. Without them, which RocksDB permits, damaged bits can make a lookup miss a key.
  bool has_checksums() const noexcept;

  /// Why keys cannot be looked up: the filter of a table of RocksDB has prefixes instead of whole keys, or the index of
  /// a table of LevelDB is compressed by Zstandard. Empty: they can.
  const std::string& no_lookups() const noexcept;

  /// Why a lookup tests all filters: the order of the keys is unknown, or not that of their bytes. Empty: it tests the
  /// filter of the key's data block.
  const std::string& all_filters_because() const noexcept;

  /// Whether the table may contain this key. RocksDB: as its filter reports. LevelDB, with the index: as LevelDB
  /// decides it before it reads a data block. With all filters: a key in the table is found in any order, and the FPR
  /// is higher: 1 - (1 - f1)(1 - f2)...
  /// @throws error  incompatible: no_lookups()
  bool may_contain(std::string_view key) const;

 private:
  friend std::unique_ptr<filter_handle> make_handle(leveldb_table table);
  struct impl;
  explicit leveldb_table(std::unique_ptr<impl> i) noexcept;
  std::unique_ptr<impl> impl_;
};

/// A handle for lookups; for RocksDB, it also shows the cells of keys. @throws error  incompatible: no_lookups()
///
/// Example:
///     const auto may_contain = [](const std::string& path, const std::string& key) {
///       return make_handle(leveldb_table::open(path))->contains(key);
///     };
///     static_cast<void>(may_contain);
std::unique_ptr<filter_handle> make_handle(leveldb_table table);

}  // namespace bloomery
