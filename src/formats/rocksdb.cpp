// rocksdb: a Bloom filter of RocksDB as it is in the filter block of a table, without the table.
//
//   0         m / 8 bytes of bits, in lines of 64 bytes
//   m / 8     FF 00 k 00 00                 from format_version 5 on: scheme rocksdb
//             k | u32 number of lines, odd  up to format_version 4: scheme rocksdb_4
//
// k is 1 to 30. A file has no other signature than these bytes, so it is not recognized by its content.
#include "formats/format_row.hpp"
#include "formats/rocksdb_end.hpp"

#include <bloomery/scheme.hpp>

#include <cstring>

namespace bloomery::formats {
namespace {

constexpr std::uint8_t newer_filters = 0xFF;
constexpr std::uint64_t line_bytes = 64;

contents read(const head& file) {
  const std::uint64_t bytes = file.file_bytes();
  if (bytes <= rocksdb_end_bytes) file.refuse("the file is truncated", "at least 69 bytes", std::to_string(bytes));
  const std::optional<params> found = params_of_rocksdb(bytes - rocksdb_end_bytes, file.last<rocksdb_end_bytes>());
  if (!found) {
    file.refuse("not a Bloom filter of RocksDB", "lines of 64 bytes, and FF 00 k 00 00 or k and the number of lines",
                "another length or end");
  }
  return {.parameters = *found};
}

std::vector<std::uint8_t> write(const params&, const key_counts&) { return {}; }

std::vector<std::uint8_t> write_end(const params& p, const key_counts&, std::uint64_t) {
  const auto end = rocksdb_end_of(p);
  return {end.begin(), end.end()};
}

}  // namespace

std::optional<params> params_of_rocksdb(std::uint64_t bytes, std::span<const std::uint8_t, rocksdb_end_bytes> end) {
  std::uint32_t lines;
  std::memcpy(&lines, end.data() + 1, sizeof lines);
  params found;
  found.geometry.bits = 8 * bytes;
  if (end[0] == newer_filters) {
    if (end[1] != 0 || end[3] != 0 || end[4] != 0) return std::nullopt;
    found.scheme = "rocksdb";
    found.geometry.probes = end[2];
  } else {
    if (bytes != line_bytes * lines) return std::nullopt;
    found.scheme = "rocksdb_4";
    found.geometry.probes = end[0];
  }
  const scheme* const row = find_scheme(found.scheme);
  if (row == nullptr) return std::nullopt;
  try {
    row->check(found.geometry);
  } catch (const error&) {
    return std::nullopt;
  }
  return found;
}

std::array<std::uint8_t, rocksdb_end_bytes> rocksdb_end_of(const params& p) {
  const auto probes = static_cast<std::uint8_t>(p.geometry.probes);
  if (p.scheme == "rocksdb") return {newer_filters, 0, probes, 0, 0};
  const auto lines = static_cast<std::uint32_t>(p.geometry.bits / (8 * line_bytes));
  std::array<std::uint8_t, rocksdb_end_bytes> end{probes};
  std::memcpy(end.data() + 1, &lines, sizeof lines);
  return end;
}

constinit const format_row rocksdb_row = {.name = "rocksdb",
                                          .system = "RocksDB, filter blocks of tables (C++)",
                                          .schemes = "rocksdb, rocksdb_4",
                                          .order = byte_order::little_endian,
                                          .read = read,
                                          .write = write,
                                          .write_end = write_end,
                                          .is_recognized = false};

}  // namespace bloomery::formats
