// Reading of the manifest of a LevelDB database.
#include "formats/leveldb_manifest.hpp"

#include <bloomery/error.hpp>

#include "formats/byte_source.hpp"
#include "formats/varint.hpp"
#include "hash/crc32c.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace bloomery::formats {
namespace {

constexpr std::size_t header_bytes = 7;      // of a record
constexpr std::size_t block_bytes = 32'768;  // a record ends within its block, or is continued in the next one
constexpr std::uint8_t whole_record = 1;
constexpr std::uint8_t first_part = 2;

std::vector<std::uint8_t> beginning_of(const std::filesystem::path& path) {
  const posix::opened file = posix::open_regular(path.string(), false);
  std::vector<std::uint8_t> bytes(std::min<std::uint64_t>(file.bytes, block_bytes));
  source_of(file, path.string()).read_all(0, bytes);
  return bytes;
}

std::optional<std::string> manifest_named_by(std::span<const std::uint8_t> current) {
  constexpr std::string_view start = "MANIFEST-";
  const std::string name(current.begin(), current.end());
  if (!name.starts_with(start) || !name.ends_with('\n')) return std::nullopt;
  const std::string number = name.substr(start.size(), name.size() - start.size() - 1);
  if (number.empty() || number.find_first_not_of("0123456789") != number.npos) return std::nullopt;
  return name.substr(0, name.size() - 1);
}

std::optional<std::string> comparator_of(std::span<const std::uint8_t> manifest) {
  if (manifest.size() < header_bytes) return std::nullopt;
  std::uint32_t checksum;
  std::memcpy(&checksum, manifest.data(), sizeof checksum);
  const std::size_t size = manifest[4] | std::size_t{manifest[5]} << 8;
  const std::uint8_t type = manifest[6];
  if ((type != whole_record && type != first_part) || size > manifest.size() - header_bytes) return std::nullopt;
  if (hashes::masked_crc32c(manifest.subspan(6, size + 1)) != checksum) return std::nullopt;
  std::span<const std::uint8_t> data = manifest.subspan(header_bytes, size);
  if (take_varint(data) != 1u) return std::nullopt;
  const auto length = take_varint(data);
  if (!length || *length > data.size()) return std::nullopt;
  return std::string(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(*length));
}

}  // namespace

std::optional<std::string> comparator_of_folder(const std::string& table) {
  const std::filesystem::path folder = std::filesystem::path(table).parent_path();
  try {
    const auto manifest = manifest_named_by(beginning_of(folder / "CURRENT"));
    return manifest ? comparator_of(beginning_of(folder / *manifest)) : std::nullopt;
  } catch (const error&) {
    return std::nullopt;  // the order is unknown
  }
}

}  // namespace bloomery::formats
