// page_reader: the payload of a filter file, read in slices or page by page, for files that are neither mapped nor held
// in memory.
#pragma once

#include <bloomery/detail/function_ref.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/mapped_storage.hpp>

#include "file/format.hpp"
#include "file/open_file.hpp"
#include "file/page_check.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace bloomery::format {

/// Reads the pages of an open file. One thread at a time.
class page_reader {
 public:
  /// @param compares     whether page() compares pages with their checksums; those of a dirty file are never compared
  /// @param slice_bytes  a multiple of page_bytes
  page_reader(open_file file, std::string path, bool compares, std::uint64_t slice_bytes);

  const file_info& info() const noexcept { return file_.fields.info; }

  /// Calls work(first, bytes) for each slice of the payload in order. `bytes` is valid until the next slice. Compares
  /// all pages of a clean file with their checksums.
  /// @throws error  damaged: the file was truncated
  /// @return        the pages that do not match their checksums; none if another process has started to write the file
  damage each_slice(const function_ref<void(std::uint64_t first, std::span<const std::uint8_t> bytes)>& work);

  /// The page of the payload with this number, valid until the next call. @throws error  damaged
  std::span<const std::uint8_t> page(std::uint64_t number);

 private:
  void read(std::span<std::uint8_t> into, std::uint64_t offset) const;
  std::uint64_t checksum_of(std::uint64_t page_number);

  open_file file_;
  std::string path_;
  bool compares_;
  std::uint64_t slice_bytes_;
  format::page page_{};
  std::optional<std::uint64_t> number_;  // of page_
  std::vector<std::uint64_t> table_;     // a part of the checksum table
  std::uint64_t table_first_ = 0;        // the page of its first checksum
};

}  // namespace bloomery::format
