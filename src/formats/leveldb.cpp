// leveldb: the filter of LevelDB's FilterPolicy::CreateFilter, without the table that contains it.
//
//   0         m / 8 bytes of bits
//   m / 8     k, the number of probes: 1 to 30
//
// Nearly any file whose last byte is in this range could be such a filter, so it is not recognized by its content.
#include "formats/format_row.hpp"

namespace bloomery::formats {
namespace {

constexpr std::uint64_t end_bytes = 1;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 29;  // hashes have 32 bits
constexpr std::uint32_t most_probes = 30;

contents read(const head& file) {
  file.check_range("number of bytes", file.file_bytes(), 1 + end_bytes, most_bytes + end_bytes);
  file.check_range("number of probes, the last byte", file.last_byte(), 1, most_probes);
  contents found;
  found.parameters.scheme = "leveldb";
  found.parameters.geometry = {8 * (file.file_bytes() - end_bytes), file.last_byte()};
  return found;
}

std::vector<std::uint8_t> write(const params&, const key_counts&) { return {}; }

std::vector<std::uint8_t> write_end(const params& p, const key_counts&, std::uint64_t) {
  return {static_cast<std::uint8_t>(p.geometry.probes)};
}

}  // namespace

constinit const format_row leveldb_row = {.name = "leveldb",
                                          .system = "LevelDB, FilterPolicy::CreateFilter (C++)",
                                          .schemes = "leveldb",
                                          .order = byte_order::little_endian,
                                          .read = read,
                                          .write = write,
                                          .write_end = write_end,
                                          .is_recognized = false};

}  // namespace bloomery::formats
