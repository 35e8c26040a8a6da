// Bloom filters in Parquet files: the columns of a file, lookups in all row groups, and a handle.
#include <bloomery/parquet.hpp>

#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/measure.hpp>

#include "filters/container_handle.hpp"
#include "filters/slices.hpp"
#include "formats/parquet_footer.hpp"
#include "formats/parquet_value.hpp"
#include "platform/posix.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace bloomery {
namespace {

constexpr std::uint32_t probes = 8;

// Why a filter cannot be read: it is encrypted, in another file, or of an unknown algorithm.
using unreadable = std::optional<error>;

// 0 without a readable filter. Keeps the first reason.
std::uint64_t filter_bytes_of(const formats::byte_source& source, const formats::parquet_footer& footer,
                              const formats::parquet_chunk& chunk, unreadable& reason) {
  if (!chunk.filter) return 0;
  try {
    return formats::read_filter_header(source, footer, chunk).bytes;
  } catch (const error& e) {
    if (e.code() != errc::incompatible) throw;
    if (!reason) reason = e;
    return 0;
  }
}

parquet_column column_of(const formats::byte_source& source, const formats::parquet_footer& footer,
                         std::uint64_t number) {
  const formats::parquet_chunk& first = footer.chunks[number];
  parquet_column column{first.column, formats::name_of(first.type), std::string(first.annotation), {}, {}};
  unreadable reason;
  for (std::uint64_t group = 0; group < footer.row_groups; ++group) {
    const formats::parquet_chunk& chunk = footer.chunks[group * footer.columns + number];
    column.row_groups.push_back({group, chunk.rows, filter_bytes_of(source, footer, chunk, reason)});
  }
  if (reason) column.unreadable = reason->what();
  return column;
}

bool has_bits(const any_filter& filter, key_hash hash) {
  return has_one<layouts::split_block>(filter.bytes().data(), filter.parameters().geometry, hash);
}

std::string names_of_columns(const formats::parquet_footer& footer) {
  std::string names;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(footer.columns, footer.chunks.size()); ++i) {
    if (i == 20) return names + ", ...";
    names.append(names.empty() ? "one of " : ", ").append(footer.chunks[i].column);
  }
  return names.empty() ? "a file with row groups" : names;
}

// Each filter is in memory, so filters that share bytes of the file could take any amount of memory.
void check_overlaps(std::vector<formats::parquet_bitset> bitsets, const std::string& path) {
  std::sort(bitsets.begin(), bitsets.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  for (std::size_t i = 1; i < bitsets.size(); ++i) {
    if (bitsets[i - 1].offset + bitsets[i - 1].bytes <= bitsets[i].offset) continue;
    throw error(errc::damaged,
                {"two filters of a column overlap", path,
                 "a filter from byte " + std::to_string(bitsets[i - 1].offset + bitsets[i - 1].bytes) + " on",
                 std::to_string(bitsets[i].offset), hint::restore_file});
  }
}

}  // namespace

bool is_parquet(const std::string& path) {
  const posix::opened file = posix::open_regular(path, false);
  std::array<std::uint8_t, 4> start{};
  return posix::read_at(file.file.get(), start, 0, path) == start.size() && start == formats::parquet_magic;
}

std::vector<parquet_column> parquet_columns(const std::string& path) {
  const posix::opened file = posix::open_regular(path, false);
  const formats::byte_source source = formats::source_of(file, path);
  const formats::parquet_footer footer = formats::read_parquet_footer(source);
  std::vector<parquet_column> columns;
  for (std::uint64_t i = 0; i < footer.columns && !footer.chunks.empty(); ++i)
    columns.push_back(column_of(source, footer, i));
  return columns;
}

struct parquet_filters::impl {
  parquet_column column;
  formats::parquet_chunk values;                   // how values are encoded
  std::vector<std::optional<any_filter>> filters;  // of the row groups
  std::uint64_t file_bytes = 0;

  // Calls work(hash) for the hash of a value, and for that of the other zero if the value is 0 or -0.
  template <class Work>
  void each_hash(std::string_view value, Work work) const {
    std::array<std::uint8_t, formats::plain_number_bytes> room;
    const auto hash = [](std::span<const std::uint8_t> plain) {
      return xxh64{}(std::string_view(reinterpret_cast<const char*>(plain.data()), plain.size()));
    };
    const std::span<const std::uint8_t> plain = formats::plain_value(values, value, room);
    work(hash(plain));
    if (plain.data() == room.data() && formats::flip_zero(values, room)) work(hash(plain));
  }
};

parquet_filters parquet_filters::open(const std::string& path, const std::string& column) {
  const posix::opened file = posix::open_regular(path, false);
  const formats::byte_source source = formats::source_of(file, path);
  const formats::parquet_footer footer = formats::read_parquet_footer(source);
  const auto found = std::find_if(footer.chunks.begin(), footer.chunks.end(),
                                  [&](const formats::parquet_chunk& chunk) { return chunk.column == column; });
  if (found == footer.chunks.end()) {
    throw error(errc::not_found,
                {"the file has no such column", path, names_of_columns(footer), "'" + column + "'", hint::none});
  }
  const auto again = std::find_if(found + 1, footer.chunks.end(), [&](const formats::parquet_chunk& chunk) {
    return chunk.column == column && chunk.column_number != found->column_number;
  });
  if (again != footer.chunks.end()) {
    throw error(errc::incompatible, {"two columns of the file have this name", path, "one column", "'" + column + "'",
                                     "rename one of them, since names with dots are ambiguous"});
  }
  auto result = std::make_unique<impl>();
  result->column = column_of(source, footer, found->column_number);
  result->values = *found;
  result->file_bytes = file.bytes;
  std::vector<formats::parquet_bitset> bitsets;
  for (const parquet_row_group& group : result->column.row_groups) {
    if (group.filter_bytes == 0) continue;
    const formats::parquet_chunk& chunk = footer.chunks[group.number * footer.columns + found->column_number];
    bitsets.push_back(formats::read_filter_header(source, footer, chunk));
  }
  check_overlaps(bitsets, path);
  auto bits = bitsets.begin();
  for (const parquet_row_group& group : result->column.row_groups) {
    std::optional<any_filter>& filter = result->filters.emplace_back();
    if (group.filter_bytes == 0) continue;
    heap_storage bytes(bits->bytes);
    source.read_all(bits->offset, {bytes.data(), bytes.size()});
    filter.emplace(params{.layout = std::string(layouts::split_block::name),
                          .hash = std::string(xxh64::name),
                          .geometry = {8 * bits->bytes, probes}},
                   std::move(bytes));
    ++bits;
  }
  if (bitsets.empty() && !result->column.unreadable.empty()) {
    throw error(errc::incompatible, {"the Bloom filters of the column cannot be read", path + ", column " + column, "",
                                     result->column.unreadable, hint::none});
  }
  if (bitsets.empty()) {
    throw error(errc::not_found, {"the column has no Bloom filter", path + ", column " + column, "", "",
                                  "write the file with Bloom filters for this column"});
  }
  return parquet_filters(std::move(result));
}

parquet_filters::parquet_filters(std::unique_ptr<impl> i) noexcept : impl_(std::move(i)) {}
parquet_filters::parquet_filters(parquet_filters&&) noexcept = default;
parquet_filters& parquet_filters::operator=(parquet_filters&&) noexcept = default;
parquet_filters::~parquet_filters() = default;

const parquet_column& parquet_filters::column() const noexcept { return impl_->column; }
std::uint64_t parquet_filters::file_bytes() const noexcept { return impl_->file_bytes; }

const any_filter* parquet_filters::filter(std::size_t row_group) const noexcept {
  const std::optional<any_filter>& filter = impl_->filters[row_group];
  return filter ? &*filter : nullptr;
}

std::vector<std::uint64_t> parquet_filters::row_groups_with(std::string_view value) const {
  std::vector<bool> found(impl_->filters.size());
  impl_->each_hash(value, [&](key_hash hash) {
    for (std::size_t i = 0; i < found.size(); ++i)
      found[i] = found[i] || !impl_->filters[i] || has_bits(*impl_->filters[i], hash);
  });
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i]) numbers.push_back(i);
  }
  return numbers;
}

bool parquet_filters::may_contain(std::string_view value) const {
  bool found = false;
  impl_->each_hash(value, [&](key_hash hash) {
    found = found || std::any_of(impl_->filters.begin(), impl_->filters.end(),
                                 [&](const auto& filter) { return !filter || has_bits(*filter, hash); });
  });
  return found;
}

namespace {

params parameters_of(const parquet_column& column) {
  params p{
      .layout = std::string(layouts::split_block::name), .hash = std::string(xxh64::name), .geometry = {0, probes}};
  for (const parquet_row_group& group : column.row_groups) p.geometry.bits += 8 * group.filter_bytes;
  return p;
}

class parquet_handle final : public container_handle {
 public:
  explicit parquet_handle(parquet_filters filters)
      : container_handle(parameters_of(filters.column())), filters_(std::move(filters)) {}

  const parquet_filters& filters() const noexcept { return filters_; }

  filter_facts info(info_depth depth) override {
    filter_facts facts;
    facts.parameters = parameters();
    facts.bits = facts.parameters.geometry.bits;
    facts.bytes = facts.bits / 8;
    facts.file = file_facts{.bytes = filters_.file_bytes(), .format = "parquet"};
    fill_facts fill;
    combined_fpr all;
    for (const parquet_row_group& group : filters_.column().row_groups) {
      layer_facts& layer = facts.layers.emplace_back();
      layer.geometry = {8 * group.filter_bytes, probes};
      const any_filter* const filter = filters_.filter(group.number);
      if (depth == info_depth::counts) continue;
      const fill_statistics bits =
          filter == nullptr ? fill_statistics{0, 1} : measure_fill(filter->parameters(), filter->bytes());
      layer.cells_set = bits.ones;
      fill.cells += layer.geometry.bits;
      fill.cells_set += bits.ones;
      all.add(bits.current_fpr);
    }
    fill.current_fpr = all.value();
    if (depth != info_depth::counts) facts.fill = fill;
    return facts;
  }

 private:
  bool may_contain(std::string_view value) const override { return filters_.may_contain(value); }

  parquet_filters filters_;
};

}  // namespace

std::unique_ptr<filter_handle> make_handle(parquet_filters filters) {
  return std::make_unique<parquet_handle>(std::move(filters));
}

const parquet_filters* parquet_filters_of(const filter_handle& filter) noexcept {
  const auto* const parquet = dynamic_cast<const parquet_handle*>(&filter);
  return parquet == nullptr ? nullptr : &parquet->filters();
}

}  // namespace bloomery
