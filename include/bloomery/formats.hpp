// Filter files of other systems: recognizing, reading and writing them.
//
//   open_filter("users.guava")                        opens such a file for reading, like a file of bloomery
//   import_filter("users.guava").save("users.bloom")  the same bits in a file of bloomery
//   export_filter(filter, "users.guava", "guava")     a file that the other system reads
//
// The bits are never changed, so a filter answers every lookup as the other system does. docs/formats.md describes each
// format.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/mapped_storage.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

/// A file format of another system.
struct file_format {
  std::string_view name;     ///< as in import_filter() and export_filter()
  std::string_view system;   ///< the systems that read and write it, as text
  std::string_view schemes;  ///< the schemes of its filters: "guava, guava32"
  bool has_metadata;         ///< a file may contain the user's own bytes
};

/// All formats: guava, spark, dcso, bits_and_blooms, redisbloom, redisbloom_chunks, valkey_bloom, datasketches,
/// leveldb, rocksdb, perl, and those that the program added (added_formats.hpp).
///
/// Example:
///     for (const file_format& format : file_formats()) assert(find_file_format(format.name) == &format);
std::span<const file_format> file_formats() noexcept;

/// The format with this name, or null.
///
/// Example:
///     assert(find_file_format("guava")->schemes == "guava, guava32");
///     assert(find_file_format("fortran") == nullptr);
const file_format* find_file_format(std::string_view name) noexcept;

/// The names of all formats, for messages: "guava, spark, dcso, bits_and_blooms, redisbloom, ...".
std::string file_format_names();

/// The format of a file, found by its content; null for files of bloomery, for unknown files and for those of formats
/// leveldb and rocksdb. Files of redisbloom, valkey_bloom and perl begin with a signature. A file of another format is
/// recognized if its length fits the numbers in its first bytes.
/// @throws error  not_found, not_permitted, not_a_filter (a directory), io
///
/// Example:
///     const any_filter filter(complete({.scheme = "guava", .capacity = 1000, .target_fpr = 0.01}));
///     export_filter(filter, "some.guava", "guava");
///     assert(recognize_format("some.guava") == find_file_format("guava"));
///     filter.save("some.bloom");
///     assert(recognize_format("some.bloom") == nullptr);
const file_format* recognize_format(const std::string& path);

/// Opens a filter file of another system for reading. Files with bloomery's order of bytes (dcso, datasketches,
/// leveldb, rocksdb) are mapped; others are read into memory. An empty filter of datasketches has no bytes to map, and
/// takes memory only once a clone takes keys. clone() makes a copy that takes keys. opened_from()->format names the
/// format. The count of keys is an estimate. The capacity is 0, which means unknown, if the format does not store it.
///
/// @param format  a name in file_formats(), as leveldb and rocksdb require; empty: the format is recognized
/// @throws error  as recognize_format(); invalid_argument: no such format; not_a_filter: none is recognized;
///                damaged: not a file of `format`; too_large: more than the machine's memory, or than an added format
///                allows; incompatible: a filter that has grown and has several layers (open_filter() opens it), or of
///                a version or hash that bloomery does not have
///
/// Example:
///     any_filter filter(complete({.scheme = "spark2", .capacity = 1000, .target_fpr = 0.01}));
///     filter.insert("Madrid");
///     export_filter(filter, "some.spark", "spark");
///     const any_filter again = import_filter("some.spark");
///     assert(again.may_contain("Madrid") && again.parameters().scheme == "spark2");
any_filter import_filter(const std::string& path, std::string_view format = {});

/// Writes a filter as a file of another system, which appears under its name when it is complete.
///
/// @param options  uses `metadata` (format dcso), `replace` and `sync`
/// @throws error   invalid_argument: no such format; incompatible: the format has no filters of this kind, so the
///                 filter must be built again from its keys, or the format stores a capacity, which is unknown, or
///                 allows no filter as large; not_permitted, locked, already_exists, io
///
/// Example:
///     const any_filter filter(complete({.capacity = 1000, .target_fpr = 0.01}));
///     try {
///       export_filter(filter, "some.guava", "guava");
///       assert(false);
///     } catch (const error& e) {
///       assert(e.code() == errc::incompatible);  // Guava's filters have no layout split_block
///     }
void export_filter(const any_filter& filter, const std::string& path, std::string_view format,
                   const create_options& options = {});

}  // namespace bloomery
