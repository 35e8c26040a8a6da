// Bloom filters in Apache Parquet files: which row groups may contain a value, and with which false-positive rate.
//
// A Parquet file has a filter for a column in a row group if its writer was configured to write one. A filter has the
// bits of layout split_block and hash xxh64. docs/formats.md describes the file.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/filter_handle.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// The values of a column in one row group.
struct parquet_row_group {
  std::uint64_t number = 0;  ///< in the file, from 0
  std::uint64_t rows = 0;
  std::uint64_t filter_bytes = 0;  ///< 0: no filter, or one that is encrypted or of an unknown algorithm
};

/// A column of a Parquet file. Names and annotations come from the file: they may have any bytes.
struct parquet_column {
  std::string name;                           ///< the names from the root, separated by dots
  std::string type;                           ///< the physical type: "BYTE_ARRAY", "INT64"
  std::string annotation;                     ///< the meaning of values: "STRING", "DATE"; empty: none
  std::vector<parquet_row_group> row_groups;  ///< all of the file, in order
  std::string unreadable;  ///< why the first filter that cannot be read is unreadable; empty: all can be read
};

/// Whether a file begins as a Parquet file does.
/// @throws error  not_found, not_permitted, not_a_filter (a directory, a device), io
///
/// Example:
///     any_filter(complete({.capacity = 1000, .target_fpr = 0.01})).save("some.bloom");
///     assert(!is_parquet("some.bloom"));
bool is_parquet(const std::string& path);

/// All columns of a file, with and without filters. Reads the footer and the headers of the filters, but no filter.
/// @throws error  not_found, not_permitted, io; not_a_filter: not a Parquet file; damaged, too_large; incompatible: the
///                footer is encrypted
///
/// Example:
///     const auto count_columns_with_filters = [](const std::string& path) {
///       std::size_t count = 0;
///       for (const parquet_column& column : parquet_columns(path)) {
///         if (!column.row_groups.empty() && column.row_groups[0].filter_bytes > 0) ++count;
///       }
///       return count;
///     };
///     static_cast<void>(count_columns_with_filters);
std::vector<parquet_column> parquet_columns(const std::string& path);

/// The filters of a column, in memory.
///
/// Threads: any number may look up.
///
/// Example:
///     const auto row_groups_to_read = [](const std::string& path, std::uint64_t user_id) {
///       return parquet_filters::open(path, "user_id").row_groups_with(std::to_string(user_id));
///     };
///     static_cast<void>(row_groups_to_read);
class parquet_filters {
 public:
  /// @throws error  as parquet_columns(); not_found: no such column, or it has no filter; incompatible: two columns
  ///                have this name, or none of the filters can be read
  static parquet_filters open(const std::string& path, const std::string& column);

  parquet_filters(parquet_filters&&) noexcept;
  parquet_filters& operator=(parquet_filters&&) noexcept;
  ~parquet_filters();

  const parquet_column& column() const noexcept;
  std::uint64_t file_bytes() const noexcept;

  /// The filter of a row group, for any use; null if the row group has none. Its keys are the values in plain encoding:
  /// the bytes of a text, or numbers as little-endian bytes.
  const any_filter* filter(std::size_t row_group) const noexcept;

  /// The row groups that may contain this value, ascending: those whose filter has its bits, and all without a filter.
  /// A value is written as text: "42", "3.5", "true", or the bytes of an array.
  /// @throws error  invalid_argument: not a value of the column's type
  std::vector<std::uint64_t> row_groups_with(std::string_view value) const;

  /// Whether any row group may contain this value. @throws error  as row_groups_with()
  bool may_contain(std::string_view value) const;

 private:
  struct impl;
  explicit parquet_filters(std::unique_ptr<impl> i) noexcept;
  std::unique_ptr<impl> impl_;
};

/// A handle for lookups: contains() is true if any row group may contain the value. Each row group is a layer of
/// info(). Values are given as text, whatever the type of the column.
///
/// Example:
///     const auto may_contain = [](const std::string& path, const std::string& name) {
///       return make_handle(parquet_filters::open(path, "name"))->contains(name);
///     };
///     static_cast<void>(may_contain);
std::unique_ptr<filter_handle> make_handle(parquet_filters filters);

/// The filters behind a handle; null for all others.
const parquet_filters* parquet_filters_of(const filter_handle& filter) noexcept;

}  // namespace bloomery
