// RocksDB's filter block: lines of 64 bytes and five bytes that state the kind of the filter.
//
//   FF 00 k 00 00           scheme rocksdb
//   k | u32 number of lines   scheme rocksdb_4
//
// Other kinds are refused: RocksDB itself reports every key for those that it does not know.
#include "filters/rocksdb_table.hpp"

#include <bloomery/detail/bits.hpp>
#include <bloomery/error.hpp>
#include <bloomery/measure.hpp>

#include "formats/rocksdb_end.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

// The size in bytes up to which a filter block is read before its kind is known.
constexpr std::uint64_t most_unknown_bytes = std::uint64_t{1} << 26;

constexpr std::string_view policy_name = "rocksdb.BuiltinBloomFilter";
constexpr std::string_view full_filter = "fullfilter.";        // one filter per table
constexpr std::string_view partitions = "partitionedfilter.";  // an index of filters
constexpr std::string_view filter_per_block = "filter.";       // before RocksDB 7
constexpr std::string_view properties_name = "rocksdb.properties";
constexpr std::string_view whole_keys_name = "rocksdb.block.based.table.whole.key.filtering";

std::string with_policy(std::string_view prefix) { return std::string(prefix) += policy_name; }

[[noreturn]] void refuse_kind(const formats::byte_source& source, const std::string& found) {
  throw error(errc::incompatible, {"keys cannot be looked up in this kind of filter of RocksDB", source.path,
                                   "a Bloom filter of the whole table", found, hint::none});
}

params params_of(std::uint64_t bytes, std::span<const std::uint8_t, formats::rocksdb_end_bytes> end,
                 const formats::byte_source& source) {
  if (bytes <= end.size()) refuse_kind(source, "an empty filter");
  if (end[0] == 0) refuse_kind(source, "a filter that reports every key");
  if (end[0] == 0xFE) refuse_kind(source, "a Ribbon filter");
  const std::optional<params> found = formats::params_of_rocksdb(bytes - end.size(), end);
  if (!found) refuse_kind(source, std::to_string(bytes) + " bytes of an unknown kind");
  return *found;
}

// Why the filter does not have the keys of the table as a whole; empty: it has them.
std::string why_without_keys(const formats::table_block& metaindex, const formats::byte_source& source,
                             const formats::table_footer& footer) {
  const auto place = formats::find_block(metaindex, source, properties_name);
  std::string value;
  if (place) {
    const formats::table_block properties =
        formats::read_block(source, footer, *place, "properties block", formats::most_bytes::properties);
    formats::each_entry(properties.bytes, source, "properties block", [&](const formats::block_entry& e) {
      if (e.key == whole_keys_name) value.assign(e.value.begin(), e.value.end());
    });
  }
  if (value == "1") return "";
  return value == "0" ? "the filter has prefixes of keys, not whole keys"
                      : "the table does not state that its filter has whole keys";
}

}  // namespace

rocksdb_table read_rocksdb_table(const formats::byte_source& source, const formats::table_footer& footer) {
  const formats::table_block metaindex =
      formats::read_block(source, footer, footer.metaindex, "metaindex block", formats::most_bytes::metaindex);
  const auto place = formats::find_block(metaindex, source, with_policy(full_filter));
  if (!place) {
    if (formats::find_block(metaindex, source, with_policy(partitions))) refuse_kind(source, "a partitioned filter");
    if (formats::find_block(metaindex, source, with_policy(filter_per_block)))
      refuse_kind(source, "a filter per data block");
    formats::refuse_without_filter(metaindex, source, with_policy(full_filter));
  }
  std::string no_lookups = why_without_keys(metaindex, source, footer);
  constexpr std::size_t end_bytes = formats::rocksdb_end_bytes;
  // Check the last bytes of a large block before reading the rest. For other blocks, verify the checksum first.
  const auto end = place->bytes <= most_unknown_bytes
                       ? std::vector<std::uint8_t>()
                       : formats::end_of_block(source, footer, *place, "filter block", end_bytes);
  if (!end.empty()) params_of(place->bytes, std::span(end).first<end_bytes>(), source);
  const formats::table_block block =
      formats::read_block(source, footer, *place, "filter block", formats::most_bytes::filter);
  if (block.bytes.size() < end_bytes) refuse_kind(source, "an empty filter");
  params parameters = params_of(block.bytes.size(), std::span(block.bytes).last<end_bytes>(), source);
  const auto bits = std::span(block.bytes).first(block.bytes.size() - end_bytes);
  heap_storage copy(bits.size());
  std::copy(bits.begin(), bits.end(), copy.data());
  const rocksdb_filter facts{.is_legacy = parameters.scheme != "rocksdb",
                             .lines = bits.size() / 64,
                             .probes = parameters.geometry.probes,
                             .ones = count_ones(bits)};
  const estimate keys = estimated_keys(parameters, facts.ones);
  copy.counts() = {.inserted = static_cast<std::uint64_t>(std::min(keys.value, 1e18)), .is_estimate = true};
  return {std::string(policy_name), facts, any_filter(std::move(parameters), std::move(copy)), std::move(no_lookups)};
}

}  // namespace bloomery
