// Fuzz target for the files of layered filters: arbitrary bytes are rejected, or give layers that can be looked up and
// described, and that are written as the same bytes.
//
// Random bytes never pass the checksums, so most mutations also correct them, and the lengths that they depend on.
#include <bloomery/detail/file_magic.hpp>
#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/layered_filter.hpp>

#include "file/fields.hpp"
#include "file/format.hpp"
#include "file/layers_file.hpp"

#include "memory_file.hpp"
#include "mutation.hpp"
#include "require.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace {

using namespace bloomery;
using bloomery_fuzz::memory_file;
using bloomery_fuzz::mutate_field;
using bloomery_fuzz::works;
using format::get;
using format::put;

// Offsets from docs/format.md.
constexpr std::size_t page_bytes = format::page_bytes;
constexpr std::size_t at_layers = 136;
constexpr std::size_t at_table_checksum = 144;
constexpr std::size_t at_metadata_bytes = 152;
constexpr std::size_t at_metadata_checksum = 160;
constexpr std::size_t at_file_bytes = 168;
constexpr std::size_t at_window = 176;
constexpr std::size_t at_slice = 184;
constexpr std::size_t at_reserved = 200;
constexpr std::size_t at_checksum = 4088;
constexpr std::size_t entry_bytes = 48;
constexpr std::size_t at_bits = 8;
constexpr std::size_t at_start = 32;
constexpr std::size_t at_bits_checksum = 40;

constexpr std::array<key_hash, 4> hashes = {
    {{0, 0}, {~std::uint64_t{0}, ~std::uint64_t{0}}, {0x9E3779B97F4A7C15, 42}, {std::uint64_t{1} << 63, 7}}};

std::vector<std::uint8_t> written(const layered_filter& filter) {
  std::vector<std::uint64_t> checksums;
  for (std::size_t i = 0; i < filter.layers().size(); ++i) checksums.push_back(format::checksum(filter.bytes_of(i)));
  std::vector<std::uint8_t> file = format::encode_layers(filter.parameters(), filter.layers(), checksums);
  for (std::size_t i = 0; i < filter.layers().size(); ++i) {
    const std::span<const std::uint8_t> bits = filter.bytes_of(i);
    file.insert(file.end(), bits.begin(), bits.end());
  }
  file.insert(file.end(), filter.parameters().metadata.begin(), filter.parameters().metadata.end());
  return file;
}

void look_up(const layered_filter& filter, std::uint64_t now) {
  for (const key_hash hash : hashes) {
    const std::uint64_t shard = filter.shard_of(hash);
    bool found = false;
    for (std::size_t i = filter.first_of(shard); i < filter.first_of(shard + 1); ++i) {
      const bool is_window = filter.parameters().filter.has_window();
      require(filter.expiry_of(i) > filter.parameters().copied_at, "no slice had expired when it was copied");
      bool all = !is_window || filter.expiry_of(i) > now;
      for (const std::uint64_t cell : filter.cells(i, hash)) {
        require(cell < filter.layers()[i].geometry.bits, "a cell is in its layer");
        all = all && (filter.bytes_of(i)[cell / 8] >> cell % 8 & 1) != 0;
      }
      found = found || all;
    }
    require(found == filter.may_contain(hash, now), "the cells of layers that have not expired determine the lookup");
  }
}

bool is_rate(double rate) { return rate >= 0 && rate <= 1; }

void describe(filter_handle& handle) {
  const filter_facts facts = handle.info(info_depth::everything);
  require(facts.expected_fpr && is_rate(*facts.expected_fpr), "the expected FPR is a probability");
  require(facts.fill && is_rate(facts.fill->current_fpr), "the current FPR is a probability");
  require(facts.fill->cells_set <= facts.fill->cells, "no more cells are set than there are");
  handle.summary();
}

// A scalable filter that was loaded accepts keys.
void grow(const layered_filter& filter) {
  scalable_layers layers(filter);
  for (const key_hash hash : hashes) {
    layers.insert(hash);
    require(layers.may_contain(hash), "an inserted key is found");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> input(data, size);
  const memory_file file(input);
  std::optional<layered_filter> copy;
  const bool opens = works([&] { copy.emplace(layered_filter::open(file.path(), {.facts_only = true})); });
  if (format::is_layers_file(input))
    require(inspect(file.path(), file_check::payload).usable == opens, "inspect and open agree");
  if (!opens) return 0;

  require(std::ranges::equal(written(*copy), input), "a file that was read is written with the same bytes");
  const std::uint64_t expiry = copy->expiry_of(copy->layers().size() / 2);
  for (const std::uint64_t now : {std::uint64_t{0}, expiry - 1, expiry, ~std::uint64_t{0}}) look_up(*copy, now);
  works([&] { grow(*copy); });
  const std::unique_ptr<filter_handle> handle = make_handle(*std::move(copy));
  for (const std::uint64_t now : {std::uint64_t{0}, expiry}) {
    handle->tick(now);
    describe(*handle);
  }
  return 0;
}

// Corrects the lengths and checksums of the file or of parts of it.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  bloomery_fuzz::choices random(seed);
  if (size >= 2 * page_bytes && random.often(60)) {
    // Mutates a field of the header or of the table, which plain mutation of the whole file rarely hits.
    const std::size_t at = random.often(50) ? 4 * random.below(at_reserved / 4) : page_bytes + 4 * random.below(96);
    // Versions 1 and 2 differ in two bits.
    if (random.often(5)) put(std::span(data, page_bytes), 8, std::uint32_t{1} + data[8] % 2);
    mutate_field(data + at);
  } else {
    size = LLVMFuzzerMutate(data, size, max_size);
  }
  if (size < 2 * page_bytes || random.often(10)) return size;

  const std::span<std::uint8_t> header(data, page_bytes);
  std::ranges::copy(layers_magic, header.begin());
  const bool is_window = get<std::uint32_t>(header, 8) == 2;
  put(header, 8, std::uint32_t{is_window ? 2u : 1u});
  put(header, 12, std::uint32_t{page_bytes});
  const std::size_t reserved = is_window ? at_reserved : at_window;
  if (random.often(90)) std::ranges::fill(header.subspan(reserved, at_checksum - reserved), std::uint8_t{0});
  const std::uint64_t slice = window_of_milliseconds(get<std::uint64_t>(header, at_window)).slice_length();
  if (is_window && random.often(95)) put(header, at_slice, slice);
  if (random.often(90)) put(header, at_layers, get<std::uint64_t>(header, at_layers) % 16);
  if (random.often(90)) put(header, at_metadata_bytes, get<std::uint64_t>(header, at_metadata_bytes) % 64);
  const auto layers = get<std::uint64_t>(header, at_layers);
  const auto metadata_bytes = get<std::uint64_t>(header, at_metadata_bytes);
  if (layers <= page_bytes / entry_bytes && metadata_bytes <= max_size && random.often(95)) {
    const std::span<std::uint8_t> table(data + page_bytes, entry_bytes * layers);
    std::fill(data + page_bytes + table.size(), data + 2 * page_bytes, std::uint8_t{0});
    std::size_t end = 2 * page_bytes;
    for (std::size_t i = 0; i < layers && end <= max_size; ++i) {
      const std::span<std::uint8_t> entry = table.subspan(entry_bytes * i, entry_bytes);
      auto bits = get<std::uint64_t>(entry, at_bits);
      if (random.often(95)) put(entry, at_bits, bits = 512 * (bits / 512 % 8));
      const auto start = get<std::uint64_t>(entry, at_start);
      if (is_window && slice != 0 && random.often(95)) put(entry, at_start, start / slice * slice);
      const std::size_t bytes = std::min<std::uint64_t>(bits / 8, max_size);
      if (end + bytes > max_size) return size;
      if (size < end + bytes) std::fill(data + size, data + end + bytes, std::uint8_t{0});
      size = std::max(size, end + bytes);
      put(entry, at_bits_checksum, format::checksum({data + end, bytes}));
      end += bytes;
    }
    if (end + metadata_bytes > max_size) return size;
    if (size < end + metadata_bytes) std::fill(data + size, data + end + metadata_bytes, std::uint8_t{0});
    size = end + metadata_bytes;
    put(header, at_table_checksum, format::checksum(table));
    put(header, at_metadata_checksum, format::checksum({data + end, metadata_bytes}));
  }
  put(header, at_file_bytes, std::uint64_t{size});
  put(header, at_checksum, format::checksum(header.first(at_checksum)));
  return size;
}
