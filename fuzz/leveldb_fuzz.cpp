// Fuzz target for tables of LevelDB and RocksDB: arbitrary bytes are rejected, or give filters within the file. An
// independent lookup, from the description of the format alone, finds the same keys.
//
// Mutations rarely keep checksums, so the mutator corrects those of the blocks that the footer and the metaindex name.
#include <bloomery/error.hpp>
#include <bloomery/leveldb.hpp>

#include "formats/snappy.hpp"
#include "formats/sorted_table.hpp"
#include "hash/crc32c.hpp"
#include "hash/leveldb.hpp"
#include "hash/xxh3_preview.hpp"
#include "memory_file.hpp"
#include "mutation.hpp"
#include "require.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace bloomery;
using namespace bloomery::formats;
using bloomery_fuzz::get;
using bloomery_fuzz::put;
using bloomery_fuzz::works;

constexpr std::size_t footer_bytes = 48;
constexpr std::size_t rocksdb_footer_bytes = 53;
constexpr std::string_view name = "filter.leveldb.BuiltinBloomFilter2";
constexpr std::string_view rocksdb_name = "fullfilter.rocksdb.BuiltinBloomFilter";

byte_source source_of(const std::uint8_t* data, std::size_t size) {
  return {"fuzz", size, [=](std::uint64_t offset, std::span<std::uint8_t> into) {
            require(offset <= size && into.size() <= size - offset, "reads are within the file");
            std::copy_n(data + offset, into.size(), into.begin());
            return into.size();
          }};
}

constexpr std::string_view some_keys[] = {"", "key-1", "other-20037", "hello", "\xFF", "a longer key than eight bytes"};

// KeyMayMatch of LevelDB.
bool may_match(std::span<const std::uint8_t> filter, std::string_view key) {
  if (filter.size() < 2) return false;
  const std::size_t bits = 8 * (filter.size() - 1);
  const unsigned probes = filter.back();
  if (probes > 30) return true;
  std::uint32_t hash = hashes::leveldb_32(key, 0xBC9F1D34);
  const std::uint32_t step = std::rotr(hash, 17);
  for (unsigned i = 0; i < probes; ++i, hash += step) {
    const std::size_t bit = hash % bits;
    if ((filter[bit / 8] >> bit % 8 & 1) == 0) return false;
  }
  return true;
}

// Whether RocksDB's filter has a key: FF 00 k 00 00, or k and the number of lines, after lines of 64 bytes.
bool rocksdb_may_match(std::span<const std::uint8_t> filter, std::string_view key) {
  const std::size_t lines = filter.size() / 64;
  const std::uint8_t* const end = filter.data() + 64 * lines;
  const auto has = [&](std::uint64_t line, std::uint32_t bit) {
    return (filter[64 * line + bit / 8] >> bit % 8 & 1) != 0;
  };
  if (end[0] == 0xFF) {
    const std::uint64_t hash = hashes::xxh3_preview(key);
    const std::uint64_t line = (hash % (std::uint64_t{1} << 32)) * lines >> 32;
    auto probe = static_cast<std::uint32_t>(hash >> 32);
    for (unsigned i = 0; i < end[2]; ++i, probe *= 0x9E3779B9) {
      if (!has(line, probe >> 23)) return false;
    }
    return true;
  }
  std::uint32_t hash = hashes::leveldb_32(key, 0xBC9F1D34, hashes::last_bytes::are_signed);
  const std::uint64_t line = hash % lines;
  const std::uint32_t step = std::rotr(hash, 17);
  for (unsigned i = 0; i < end[0]; ++i, hash += step) {
    if (!has(line, hash % 512)) return false;
  }
  return true;
}

// A lookup in blocks that were read before, one index entry after the other.
struct plain_table {
  std::vector<std::uint8_t> filters;
  std::vector<std::uint8_t> index;

  bool may_contain(const byte_source& source, std::string_view key, bool with_index) const {
    if (!with_index) return may_contain_anywhere(source, key);
    std::optional<std::uint64_t> block;
    each_entry(index, source, "index block", [&](const block_entry& e) {
      if (!block && e.key.substr(0, e.key.size() - 8) >= key) block = handle_of(e.value, source, "").offset;
    });
    return block && filter_may_match(*block, key);
  }

  // In the filter of any data block, or in any other filter.
  bool may_contain_anywhere(const byte_source& source, std::string_view key) const {
    bool found = false;
    each_entry(index, source, "index block", [&](const block_entry& e) {
      found = found || filter_may_match(handle_of(e.value, source, "").offset, key);
    });
    const std::size_t end = filters.size() - 5;
    const std::size_t count = (end - get<std::uint32_t>(filters.data() + end)) / 4;
    for (std::uint64_t i = 0; i < count && !found; ++i) found = filter_may_match(i << filters.back(), key);
    return found;
  }

  // The filter of a block at an offset.
  bool filter_may_match(std::uint64_t block, std::string_view key) const {
    const std::size_t end = filters.size() - 5;
    const std::size_t offsets = get<std::uint32_t>(filters.data() + end);
    const std::uint64_t i = block >> filters.back();
    if (i >= (end - offsets) / 4) return true;
    const std::uint8_t* const at = filters.data() + offsets + 4 * i;
    const std::uint32_t first = get<std::uint32_t>(at);
    const std::uint32_t last =
        i + 1 < (end - offsets) / 4 ? get<std::uint32_t>(at + 4) : static_cast<std::uint32_t>(offsets);
    require(first <= last && last <= offsets, "a filter is within its block");
    return may_match(std::span(filters).subspan(first, last - first), key);
  }
};

plain_table read_plainly(const byte_source& source) {
  const table_footer footer = read_table_footer(source);
  const table_block metaindex = read_block(source, footer, footer.metaindex, "metaindex block", most_bytes::metaindex);
  block_handle place;
  each_entry(metaindex.bytes, source, "metaindex block", [&](const block_entry& e) {
    if (e.key == name) place = handle_of(e.value, source, "filter block");
  });
  return {read_block(source, footer, place, "filter block", most_bytes::filter).bytes,
          read_block(source, footer, footer.index, "index block", most_bytes::index).bytes};
}

void check_filters(const leveldb_table& table, const byte_source& source) {
  const std::vector<leveldb_filter> filters = table.filters();
  std::uint64_t bytes = 0;
  for (const leveldb_filter& filter : filters) {
    bytes += filter.size.bits / 8;
    require(filter.end > filter.first, "a range of data has bytes");
    require(filter.ones <= filter.size.bits, "set bits are bits");
    require(filter.current_fpr >= 0 && filter.current_fpr <= 1, "a rate is between 0 and 1");
  }
  require(bytes + 4 * filters.size() <= 22 * source.bytes, "filters take no more memory than their block");
}

void compare(const leveldb_table& table, const byte_source& source) {
  if (const auto& found = table.of_rocksdb()) {
    require(64 * found->lines <= 22 * source.bytes, "lines are in the file");
    require(found->ones <= 512 * found->lines, "set bits are bits");
    if (!table.no_lookups().empty()) {
      require(!works([&] { table.may_contain("key-1"); }), "a table without whole keys throws");
      return;
    }
    const table_footer footer = read_table_footer(source);
    const auto place =
        find_block(read_block(source, footer, footer.metaindex, "", most_bytes::metaindex), source, rocksdb_name);
    const table_block filter = read_block(source, footer, place.value(), "", most_bytes::filter);
    require(filter.bytes.size() == 64 * found->lines + 5, "a filter has whole lines");
    for (const std::string_view key : some_keys)
      require(table.may_contain(key) == rocksdb_may_match(filter.bytes, key), "a key is found as by RocksDB");
    return;
  }
  if (!table.no_lookups().empty()) {
    require(!works([&] { table.may_contain("key-1"); }), "a table without an index throws");
    return;
  }
  const plain_table plain = read_plainly(source);
  for (const std::string_view key : some_keys)
    require(table.may_contain(key) == plain.may_contain(source, key, table.all_filters_because().empty()),
            "a key is found as by LevelDB, or by all filters");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto decompressed = decompress_snappy({data, size});
  require(!decompressed || decompressed->size() <= 22 * size, "decompressed data is limited by the input");
  const byte_source source = source_of(data, size);
  const bloomery_fuzz::memory_file file({data, size});
  require(is_leveldb_table(file.path()) == system_of_table(source).has_value(), "a table is recognized by its end");
  std::optional<leveldb_table> table;
  for (const leveldb_order order : {leveldb_order::of_manifest, leveldb_order::bytewise}) {
    if (works([&] { table.emplace(leveldb_table::open(file.path(), order)); })) compare(*table, source);
  }
  if (table && hashes::crc32c({data, size}) % 64 == 0) check_filters(*table, source);  // takes a million lookups
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  bloomery_fuzz::choices random(seed);
  if (size < footer_bytes || random.often(10)) return LLVMFuzzerMutate(data, size, max_size);
  // Fields of the blocks, mostly near the end, where they are.
  const std::size_t blocks = size - footer_bytes;
  for (std::size_t i = 0; i <= random.below(3) && blocks > 8; ++i) {
    std::uint8_t* const at =
        data + blocks - 8 - random.below(std::min<std::size_t>(blocks - 8, random.often(50) ? 600 : blocks));
    if (random.often(50))
      bloomery_fuzz::mutate_field(at);
    else
      *at = static_cast<std::uint8_t>(random.below(256));
  }
  if (random.often(10)) bloomery_fuzz::mutate_field(data + blocks + random.below(footer_bytes - 16));
  const bool is_rocksdb = system_of_table(source_of(data, size)) == table_system::rocksdb;
  if (is_rocksdb && size >= rocksdb_footer_bytes && random.often(70))
    data[size - rocksdb_footer_bytes] = static_cast<std::uint8_t>(table_checksum::none);
  const auto seal = [&](const block_handle& block) {
    if (block.offset > size || block.bytes > size - block.offset || size - block.offset - block.bytes < 5) return;
    const std::span<const std::uint8_t> bytes(data + block.offset, block.bytes + 1);
    const std::uint32_t crc = hashes::crc32c(bytes);
    put(data + block.offset + block.bytes + 1, (crc >> 15 | crc << 17) + 0xA282EAD8);
  };
  works([&] {
    const byte_source source = source_of(data, size);
    const table_footer footer = read_table_footer(source);
    seal(footer.metaindex);
    seal(footer.index);
    each_entry(read_block(source, footer, footer.metaindex, "", most_bytes::metaindex).bytes, source, "",
               [&](const block_entry& e) { seal(handle_of(e.value, source, "")); });
  });
  return size;
}
