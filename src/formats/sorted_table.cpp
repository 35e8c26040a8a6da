// Decoding of tables of LevelDB and RocksDB.
#include "formats/sorted_table.hpp"

#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>

#include "formats/snappy.hpp"
#include "formats/varint.hpp"
#include "hash/crc32c.hpp"
#include "hash/xxh32.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace bloomery::formats {
namespace {

constexpr std::uint64_t leveldb_magic = 0xDB4775248B80FB57;
constexpr std::uint64_t rocksdb_magic = 0x88E241B785F4CFF7;
constexpr std::size_t handles_bytes = 40;
constexpr std::size_t leveldb_footer_bytes = handles_bytes + 8;          // handles, magic number
constexpr std::size_t rocksdb_footer_bytes = 1 + handles_bytes + 4 + 8;  // checksum, handles, version, magic number
constexpr std::uint32_t last_rocksdb_version = 5;
constexpr std::uint8_t last_checksum = 4;
constexpr std::uint32_t factor_of_compression = 0x6B9083D9;  // in checksums of kind xxh3
constexpr std::uint64_t trailer_bytes = 5;                   // compression and checksum of a block
constexpr std::size_t internal_bytes = 8;  // a database appends u8 type and u56 sequence number to each key
constexpr std::uint8_t most_range_log2 = 32;

[[noreturn]] void damaged(const byte_source& source, std::string what, std::string expected, std::string found) {
  throw error(errc::damaged, {std::move(what), source.path, std::move(expected), std::move(found), hint::restore_file});
}

[[noreturn]] void incompatible(const byte_source& source, std::string what, std::string expected, std::string found) {
  throw error(errc::incompatible, {std::move(what), source.path, std::move(expected), std::move(found), hint::none});
}

template <class T>
T number_at(std::span<const std::uint8_t> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<block_handle> take_handle(std::span<const std::uint8_t>& from) {
  const auto offset = take_varint(from);
  if (!offset) return std::nullopt;
  const auto bytes = take_varint(from);
  if (!bytes) return std::nullopt;
  return block_handle{*offset, *bytes};
}

void check_within(const byte_source& source, const table_footer& footer, const block_handle& handle, const char* what) {
  const std::uint64_t end = footer.data_bytes;
  if (handle.offset <= end && end - handle.offset >= trailer_bytes &&
      handle.bytes <= end - handle.offset - trailer_bytes)
    return;
  damaged(source, std::string("the ") + what + " is not within the file", "at most " + std::to_string(end) + " bytes",
          std::to_string(handle.bytes) + " bytes at byte " + std::to_string(handle.offset));
}

}  // namespace

std::optional<table_system> system_of_table(const byte_source& source) {
  std::array<std::uint8_t, 8> last{};
  if (source.bytes < last.size() || source.read(source.bytes - last.size(), last) != last.size()) return std::nullopt;
  const auto magic = number_at<std::uint64_t>(last, 0);
  if (magic == leveldb_magic) return table_system::leveldb;
  if (magic == rocksdb_magic) return table_system::rocksdb;
  return std::nullopt;
}

table_footer read_table_footer(const byte_source& source) {
  const std::optional<table_system> system = system_of_table(source);
  if (!system) {
    throw error(errc::not_a_filter,
                {"not a table of LevelDB or RocksDB", source.path, "its last eight bytes", "other bytes", hint::none});
  }
  const bool is_rocksdb = *system == table_system::rocksdb;
  std::array<std::uint8_t, rocksdb_footer_bytes> buffer{};
  const auto bytes = std::span(buffer).first(is_rocksdb ? rocksdb_footer_bytes : leveldb_footer_bytes);
  if (source.bytes < bytes.size()) {
    damaged(source, "the table is truncated", "at least " + std::to_string(bytes.size()) + " bytes",
            std::to_string(source.bytes));
  }
  table_footer footer{.system = *system, .data_bytes = source.bytes - bytes.size()};
  source.read_all(footer.data_bytes, bytes);
  footer.checksum = is_rocksdb ? table_checksum{bytes[0]} : table_checksum::crc32c;
  if (is_rocksdb) footer.version = number_at<std::uint32_t>(bytes, 1 + handles_bytes);
  if (footer.version > last_rocksdb_version) {
    const std::string last = std::to_string(last_rocksdb_version);
    throw error(errc::incompatible,
                {"unknown format_version of RocksDB",
                 source.path,
                 "at most " + last,
                 std::to_string(footer.version),
                 {hint::none, "write the table with BlockBasedTableOptions::format_version = " + last}});
  }
  if (is_rocksdb && bytes[0] > last_checksum) {
    incompatible(source, "unknown checksum of RocksDB", "kind 0 to " + std::to_string(last_checksum),
                 std::to_string(bytes[0]));
  }
  std::span<const std::uint8_t> handles = bytes.subspan(is_rocksdb ? 1 : 0, handles_bytes);
  const auto metaindex = take_handle(handles);
  const auto index = metaindex ? take_handle(handles) : std::nullopt;
  if (!index) damaged(source, "the footer of the table is damaged", "the places of two blocks", "other bytes");
  footer.metaindex = *metaindex;
  footer.index = *index;
  check_within(source, footer, footer.metaindex, "metaindex block");
  check_within(source, footer, footer.index, "index block");
  return footer;
}

namespace {

// The checksum of a block and the byte after it, the kind of compression. Requires a kind other than none.
std::uint32_t checksum_of(std::span<const std::uint8_t> bytes, table_checksum kind) {
  switch (kind) {
    case table_checksum::none:
    case table_checksum::crc32c: break;
    case table_checksum::xxh32: return hashes::xxh32(bytes);
    case table_checksum::xxh64: return static_cast<std::uint32_t>(xxh64{}(text_of(bytes)).hash64);
    case table_checksum::xxh3:
      return static_cast<std::uint32_t>(xxh3_64{}(text_of(bytes.first(bytes.size() - 1))).hash64) ^
             bytes.back() * factor_of_compression;
  }
  return hashes::masked_crc32c(bytes);
}

void check_compression(const byte_source& source, block_compression compression, const char* what) {
  if (compression == block_compression::none || compression == block_compression::snappy) return;
  incompatible(source, std::string("the ") + what + " is compressed", "no compression, or Snappy",
               "compression " + std::to_string(static_cast<unsigned>(compression)));
}

}  // namespace

std::vector<std::uint8_t> end_of_block(const byte_source& source, const table_footer& footer,
                                       const block_handle& handle, const char* what, std::size_t count) {
  check_within(source, footer, handle, what);
  if (handle.bytes < count) return {};
  std::vector<std::uint8_t> end(count + 1);
  source.read_all(handle.offset + handle.bytes - count, end);
  const block_compression compression{end.back()};
  check_compression(source, compression, what);
  end.pop_back();
  return compression == block_compression::none ? end : std::vector<std::uint8_t>();
}

table_block read_block(const byte_source& source, const table_footer& footer, const block_handle& handle,
                       const char* what, most_bytes most) {
  check_within(source, footer, handle, what);
  if (handle.bytes > static_cast<std::uint64_t>(most)) {
    damaged(source, std::string("the ") + what + " is too large",
            "at most " + std::to_string(static_cast<std::uint64_t>(most)) + " bytes", std::to_string(handle.bytes));
  }
  table_block block;
  block.bytes.resize(handle.bytes + trailer_bytes);
  source.read_all(handle.offset, block.bytes);
  if (footer.checksum != table_checksum::none) {
    const auto checksum = number_at<std::uint32_t>(block.bytes, handle.bytes + 1);
    const std::uint32_t computed = checksum_of(std::span(block.bytes).first(handle.bytes + 1), footer.checksum);
    if (checksum != computed) {
      damaged(source, std::string("the checksum of the ") + what + " is wrong", std::to_string(checksum),
              std::to_string(computed));
    }
  }
  const std::uint8_t compression = block.bytes[handle.bytes];
  block.compression = block_compression{compression};
  block.bytes.resize(handle.bytes);
  if (block.compression == block_compression::none) return block;
  check_compression(source, block.compression, what);
  auto decompressed = decompress_snappy(block.bytes);
  if (!decompressed) damaged(source, std::string("the ") + what + " is damaged", "data compressed by Snappy", "");
  block.bytes = std::move(*decompressed);
  return block;
}

void each_entry(std::span<const std::uint8_t> block, const byte_source& source, const char* what,
                function_ref<void(const block_entry& entry)> work) {
  const auto refuse = [&] { damaged(source, std::string("the ") + what + " is damaged", "entries of a block", ""); };
  if (block.size() < 4) refuse();
  const auto restarts = number_at<std::uint32_t>(block, block.size() - 4);
  if (restarts > block.size() / 4 - 1) refuse();
  std::span<const std::uint8_t> rest = block.first(block.size() - 4 * (std::size_t{restarts} + 1));
  std::string key;
  while (!rest.empty()) {
    const auto shared = take_varint(rest);
    const auto unshared = shared ? take_varint(rest) : std::nullopt;
    const auto size = unshared ? take_varint(rest) : std::nullopt;
    if (!size || *shared > key.size() || *unshared > rest.size() || *size > rest.size() - *unshared) refuse();
    const std::string_view end = text_of(rest.first(*unshared));
    const std::span<const std::uint8_t> value = rest.subspan(*unshared, *size);
    rest = rest.subspan(*unshared + *size);
    key.resize(*shared);
    key += end;
    work({*shared == 0 ? end : std::string_view(key), value, *shared == 0});
  }
}

std::optional<block_handle> find_block(const table_block& metaindex, const byte_source& source, std::string_view name) {
  std::optional<block_handle> found;
  each_entry(metaindex.bytes, source, "metaindex block", [&](const block_entry& e) {
    if (e.key == name) found = handle_of(e.value, source, "block that the metaindex names");
  });
  return found;
}

void refuse_without_filter(const table_block& metaindex, const byte_source& source, std::string_view name) {
  std::string others;
  each_entry(metaindex.bytes, source, "metaindex block", [&](const block_entry& e) {
    const std::string_view start = e.key.substr(0, 100);  // a block of long keys would take quadratic time
    if (others.size() < 200 && start.find("filter") != start.npos) (others += others.empty() ? "" : ", ") += start;
  });
  throw error(errc::not_found, {"the table has no Bloom filter of this kind", source.path, std::string(name),
                                others.empty() ? "no filter" : others, hint::none});
}

block_handle handle_of(std::span<const std::uint8_t> value, const byte_source& source, const char* what) {
  const auto handle = take_handle(value);
  if (!handle) damaged(source, std::string("the place of the ") + what + " is damaged", "two numbers", "other bytes");
  return *handle;
}

// ---- filters --------------------------------------------------------------------------------------------------------

filter_block::filter_block(std::vector<std::uint8_t> bytes, const byte_source& source) : bytes_(std::move(bytes)) {
  const auto refuse = [&](const std::string& expected, std::uint64_t found) {
    damaged(source, "the filter block is damaged", expected, std::to_string(found));
  };
  if (bytes_.size() < 5) refuse("at least 5 bytes", bytes_.size());
  const std::size_t end = bytes_.size() - 5;
  offsets_at_ = number_at<std::uint32_t>(bytes_, end);
  range_log2_ = bytes_.back();
  if (offsets_at_ > end) refuse("offsets before byte " + std::to_string(end), offsets_at_);
  if (range_log2_ > most_range_log2) refuse("at most 2^32 bytes of data per filter", range_log2_);
  count_ = (end - offsets_at_) / 4;
  for (std::uint64_t i = 0; i < count_; ++i) {
    if (offset_of(i) > offset_of(i + 1)) refuse("filters in order", offset_of(i));
  }
}

// The offset after the last one is that of the first offset.
std::uint32_t filter_block::offset_of(std::uint64_t i) const noexcept {
  return i == count_ ? static_cast<std::uint32_t>(offsets_at_) : number_at<std::uint32_t>(bytes_, offsets_at_ + 4 * i);
}

std::span<const std::uint8_t> filter_block::filter(std::uint64_t i) const noexcept {
  return std::span(bytes_).subspan(offset_of(i), offset_of(i + 1) - offset_of(i));
}

// ---- index ----------------------------------------------------------------------------------------------------------

namespace {

// Why an entry of the index is not that of a database whose keys are in the order of their bytes; empty: it may be one.
// Entries of the same key are in descending order of the 8 bytes: of their sequence numbers.
std::string contradiction_of(const block_entry& entry, std::string_view last_key) {
  if (!entry.is_whole) return "the index of the table has shortened keys";
  const std::string_view key = entry.key;
  if (key.size() < internal_bytes || static_cast<std::uint8_t>(key[key.size() - internal_bytes]) > 1)
    return "the keys of the table are not those of a database";
  if (last_key.empty()) return "";
  const auto user_part = [](std::string_view k) { return k.substr(0, k.size() - internal_bytes); };
  const auto tag = [](std::string_view k) {
    std::uint64_t value;
    std::memcpy(&value, k.data() + k.size() - internal_bytes, sizeof value);
    return value;
  };
  if (user_part(key) < user_part(last_key)) return "the keys of the table are not in the order of their bytes";
  if (user_part(key) == user_part(last_key) && tag(key) >= tag(last_key))
    return "the sequence numbers of the table are in another order than those of a database";
  return "";
}

}  // namespace

table_index::table_index(table_block block, const byte_source& source, const table_footer& footer)
    : block_(std::move(block)) {
  std::string_view last_key;
  each_entry(block_.bytes, source, "index block", [&](const block_entry& e) {
    const block_handle data = handle_of(e.value, source, "data block");
    check_within(source, footer, data, "data block");
    last_block_ = std::max(last_block_.value_or(0), data.offset);
    if (!contradiction_.empty()) return;
    contradiction_ = contradiction_of(e, last_key);
    if (!contradiction_.empty()) return;
    last_key = e.key;
    entries_.push_back({last_key.substr(0, last_key.size() - internal_bytes), data.offset});
  });
}

std::optional<std::uint64_t> table_index::data_block(std::string_view user_key) const noexcept {
  const auto found = std::lower_bound(entries_.begin(), entries_.end(), user_key,
                                      [](const entry& e, std::string_view key) { return e.last_key < key; });
  if (found == entries_.end()) return std::nullopt;
  return found->offset;
}

}  // namespace bloomery::formats
