// Bloom filters in tables of LevelDB and RocksDB: their bits, lookups, and a handle.
#include <bloomery/leveldb.hpp>

#include <bloomery/detail/bits.hpp>
#include <bloomery/error.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/scheme.hpp>

#include "filters/container_handle.hpp"
#include "filters/read_only_handle.hpp"
#include "filters/rocksdb_table.hpp"
#include "filters/slices.hpp"
#include "formats/leveldb_manifest.hpp"
#include "formats/sorted_table.hpp"
#include "platform/posix.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <span>
#include <utility>

namespace bloomery {
namespace {

constexpr std::string_view leveldb_name = "filter.leveldb.BuiltinBloomFilter2";
constexpr std::uint32_t most_probes = 30;  // more mean another encoding to LevelDB, which then reports every key

const scheme& leveldb() { return *find_scheme("leveldb"); }

// The size of a filter as CreateFilter returned it. LevelDB does not use a filter of a single byte.
geometry size_of(std::span<const std::uint8_t> filter) {
  if (filter.size() < 2) return {};
  return {8 * (filter.size() - 1), filter.back()};
}

// Whether LevelDB reports every key, whatever the bits are.
bool reports_all(const geometry& size) { return size.probes == 0 || size.probes > most_probes; }

bool may_match(std::span<const std::uint8_t> filter, std::string_view key) {
  const geometry size = size_of(filter);
  if (size.bits == 0) return false;
  if (reports_all(size)) return true;
  std::array<std::uint64_t, most_probes> bits;
  leveldb().positions(key, size, {}, bits.data());
  return std::all_of(bits.begin(), bits.begin() + size.probes,
                     [&](std::uint64_t bit) { return test_bit(filter.data(), bit); });
}

params params_of(const geometry& size) { return {.scheme = std::string(leveldb().name), .geometry = size}; }

// The ratio of the FPR of all filters to that of independent probes, (ones / m)^k, from lookups of random keys in all
// of them. 1 if too few of these lookups find a key.
double relative_rate(const formats::filter_block& filters, std::span<const leveldb_filter> measured) {
  constexpr std::uint64_t lookups = 1 << 20;
  constexpr double least_hits = 100;
  std::mt19937_64 random;
  const std::uint64_t rounds = measured.empty() ? 0 : std::max<std::uint64_t>(lookups / measured.size(), 16);
  double hits = 0;
  double independent = 0;
  for (std::uint64_t i = 0; i < measured.size(); ++i) {
    const geometry& size = measured[i].size;
    if (size.bits == 0 || reports_all(size)) continue;
    independent += static_cast<double>(rounds) * measured[i].current_fpr;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::uint64_t key = random();
      hits += may_match(filters.filter(i), {reinterpret_cast<const char*>(&key), sizeof key}) ? 1 : 0;
    }
  }
  return hits < least_hits ? 1 : hits / independent;
}

}  // namespace

bool is_leveldb_table(const std::string& path) {
  const posix::opened file = posix::open_regular(path, false);
  return formats::system_of_table(formats::source_of(file, path)).has_value();
}

struct leveldb_table::impl {
  std::uint64_t file_bytes = 0;
  std::string policy;
  std::optional<formats::filter_block> filters;
  std::optional<formats::table_index> index;
  std::optional<rocksdb_filter> of_rocksdb;
  std::optional<any_filter> rocksdb;  // its bits
  bool has_checksums = true;
  std::optional<error> no_lookups;
  std::string no_lookups_text;
  std::string all_filters_because;
  std::vector<std::uint64_t> filters_with_bits = {};  // a damaged table may have millions without
};

namespace {

// Why the index cannot show which data block has a key; empty: it can.
std::string why_without_index(const formats::table_index& index, const std::string& path, leveldb_order order) {
  if (order == leveldb_order::of_manifest) {
    const std::optional<std::string> comparator = formats::comparator_of_folder(path);
    if (!comparator) return "the order of its keys is unknown, because its folder has no CURRENT and MANIFEST";
    if (*comparator != formats::bytewise_comparator) return "the database orders its keys by " + *comparator;
  }
  return index.contradiction();
}

}  // namespace

leveldb_table leveldb_table::open(const std::string& path, leveldb_order order) {
  const posix::opened file = posix::open_regular(path, false);
  const formats::byte_source source = formats::source_of(file, path);
  const formats::table_footer footer = formats::read_table_footer(source);
  auto result = std::make_unique<impl>();
  result->file_bytes = file.bytes;
  result->has_checksums = footer.checksum != formats::table_checksum::none;
  if (footer.system == formats::table_system::rocksdb) {
    rocksdb_table table = read_rocksdb_table(source, footer);
    result->policy = std::move(table.policy);
    result->of_rocksdb = table.facts;
    result->rocksdb = std::move(table.filter);
    if (!table.no_lookups.empty()) result->no_lookups = error(errc::incompatible, {table.no_lookups, path, "", "", ""});
    result->no_lookups_text = std::move(table.no_lookups);
    return leveldb_table(std::move(result));
  }
  const formats::table_block metaindex =
      formats::read_block(source, footer, footer.metaindex, "metaindex block", formats::most_bytes::metaindex);
  const auto place = formats::find_block(metaindex, source, leveldb_name);
  if (!place) formats::refuse_without_filter(metaindex, source, leveldb_name);
  result->policy = leveldb_name.substr(leveldb_name.find('.') + 1);
  formats::table_block block = formats::read_block(source, footer, *place, "filter block", formats::most_bytes::filter);
  result->filters.emplace(std::move(block.bytes), source);
  if (const std::uint64_t count = result->filters->size();
      count > 0 && (count - 1) * result->filters->range_bytes() > place->offset) {
    throw error(errc::damaged, {"the filter block has filters beyond the data of the table", path,
                                "at most " + std::to_string(place->offset / result->filters->range_bytes() + 1),
                                std::to_string(count), hint::restore_file});
  }
  for (std::uint64_t i = 0; i < result->filters->size(); ++i) {
    if (size_of(result->filters->filter(i)).bits > 0) result->filters_with_bits.push_back(i);
  }
  try {
    result->index.emplace(formats::read_block(source, footer, footer.index, "index block", formats::most_bytes::index),
                          source, footer);
    result->all_filters_because = why_without_index(*result->index, path, order);
  } catch (const error& e) {
    if (e.code() != errc::incompatible) throw;
    result->no_lookups = e;
    result->no_lookups_text = e.what();
  }
  return leveldb_table(std::move(result));
}

leveldb_table::leveldb_table(std::unique_ptr<impl> i) noexcept : impl_(std::move(i)) {}
leveldb_table::leveldb_table(leveldb_table&&) noexcept = default;
leveldb_table& leveldb_table::operator=(leveldb_table&&) noexcept = default;
leveldb_table::~leveldb_table() = default;

std::uint64_t leveldb_table::file_bytes() const noexcept { return impl_->file_bytes; }
const std::string& leveldb_table::policy() const noexcept { return impl_->policy; }
const std::optional<rocksdb_filter>& leveldb_table::of_rocksdb() const noexcept { return impl_->of_rocksdb; }
bool leveldb_table::has_checksums() const noexcept { return impl_->has_checksums; }
const std::string& leveldb_table::no_lookups() const noexcept { return impl_->no_lookups_text; }

const std::string& leveldb_table::all_filters_because() const noexcept { return impl_->all_filters_because; }

std::vector<leveldb_filter> leveldb_table::filters() const {
  std::vector<leveldb_filter> all;
  if (!impl_->filters) return all;
  const std::uint64_t range = impl_->filters->range_bytes();
  for (std::uint64_t i = 0; i < impl_->filters->size(); ++i) {
    const std::span<const std::uint8_t> bytes = impl_->filters->filter(i);
    leveldb_filter& filter = all.emplace_back();
    filter.first = i * range;
    filter.end = filter.first + range;
    filter.size = size_of(bytes);
    if (filter.size.bits == 0) continue;
    filter.ones = count_ones(bytes.first(bytes.size() - 1));
    filter.current_fpr =
        std::pow(static_cast<double>(filter.ones) / static_cast<double>(filter.size.bits), filter.size.probes);
    if (!reports_all(filter.size)) filter.keys = estimated_keys(params_of(filter.size), filter.ones);
  }
  const double relative = relative_rate(*impl_->filters, all);
  for (leveldb_filter& filter : all)
    filter.current_fpr =
        reports_all(filter.size) && filter.size.bits > 0 ? 1 : std::min(1.0, filter.current_fpr * relative);
  return all;
}

bool leveldb_table::may_contain(std::string_view key) const {
  if (impl_->no_lookups) throw error(*impl_->no_lookups);
  if (impl_->rocksdb) return impl_->rocksdb->may_contain(key);
  const formats::filter_block& filters = *impl_->filters;
  const auto in_filter_of = [&](std::uint64_t block) {
    const std::uint64_t number = block / filters.range_bytes();
    return number >= filters.size() || may_match(filters.filter(number), key);  // a block without a filter has any key
  };
  if (impl_->all_filters_because.empty()) {
    const std::optional<std::uint64_t> block = impl_->index->data_block(key);
    return block && in_filter_of(*block);
  }
  const std::optional<std::uint64_t>& last = impl_->index->last_block();
  if (last && in_filter_of(*last)) return true;
  const std::vector<std::uint64_t>& with_bits = impl_->filters_with_bits;
  return std::any_of(with_bits.begin(), with_bits.end(),
                     [&](std::uint64_t i) { return may_match(filters.filter(i), key); });
}

namespace {

class leveldb_handle final : public container_handle {
 public:
  explicit leveldb_handle(leveldb_table table) : container_handle(params_of({})), table_(std::move(table)) {}

  filter_facts info(info_depth depth) override {
    filter_facts facts;
    facts.parameters = parameters();
    facts.file = file_facts{.bytes = table_.file_bytes(), .format = "leveldb_table"};
    fill_facts fill{.is_exact = false};  // not for any keys: the rates of the filters differ, and share their hashes
    combined_fpr all;
    double sum = 0;
    std::uint64_t count = 0;
    for (const leveldb_filter& filter : table_.filters()) {
      layer_facts& layer = facts.layers.emplace_back();
      layer.geometry = filter.size;
      layer.cells_set = filter.ones;
      facts.bits += filter.size.bits;
      fill.cells_set += filter.ones;
      all.add(filter.current_fpr);
      sum += filter.current_fpr;
      count += filter.size.bits > 0 ? 1 : 0;
    }
    facts.bytes = facts.bits / 8;
    fill.cells = facts.bits;
    fill.current_fpr = !table_.all_filters_because().empty() ? all.value()
                       : count == 0                          ? 0
                                                             : sum / static_cast<double>(count);
    if (depth != info_depth::counts) facts.fill = fill;
    return facts;
  }

 private:
  bool may_contain(std::string_view key) const override { return table_.may_contain(key); }

  leveldb_table table_;
};

}  // namespace

std::unique_ptr<filter_handle> make_handle(leveldb_table table) {
  static_cast<void>(table.may_contain({}));  // throws if lookups are impossible
  if (table.impl_->rocksdb) {
    return make_read_only_handle(std::move(*table.impl_->rocksdb),
                                 {.bytes = table.file_bytes(), .format = "rocksdb_table"});
  }
  return std::make_unique<leveldb_handle>(std::move(table));
}

}  // namespace bloomery
