// Rows of static filters, and their checks.
#include "registry/static_row.hpp"

#include <bloomery/detail/bits.hpp>
#include <bloomery/error.hpp>

#include "math/rates.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

namespace bloomery {
namespace {

[[noreturn]] void refuse_making() {
  throw error(errc::invalid_argument,
              {"a static filter cannot be created empty, because it is built once from all its keys", "layout", "", "",
               hint::seal_all_keys});
}

// In the descriptors of all structures.
std::uint64_t keys_of_partition(const static_calls& calls, const std::uint8_t* payload, std::uint64_t number) {
  static_assert(offsetof(fuse_partition, keys) == 16 && offsetof(ribbon_partition, keys) == 16);
  std::uint64_t keys;
  std::memcpy(&keys, payload + sealed::header_bytes + number * calls.partition_bytes + 16, sizeof keys);
  return keys;
}

static_lookup look_up_fuse(unsigned width, std::span<const std::uint8_t> payload, std::uint64_t hash64,
                           before_reading watch) {
  const fuse_place place = fuse_place_of(width, payload, hash64);
  static_lookup result{place.fingerprint};
  if (!place.somewhere) return result;
  for (const std::uint64_t cell : place.cells) {
    const std::uint64_t bit = cell * width;
    if (watch != nullptr) watch(bit / 8, (bit + width + 7) / 8 - bit / 8);
    result.cells.push_back({cell, fuse_cell(width, payload, cell)});
  }
  return result;
}

// A cell is a slot whose coefficient is 1, with the number of its first bit. `level` is a ribbon filter at a byte of
// the payload, for hashes of which the bits of `used` matter.
static_lookup look_up_slots(unsigned width, std::span<const std::uint8_t> level, std::uint64_t at_byte,
                            std::uint64_t hash64, std::uint64_t used, before_reading watch) {
  const auto read = [&](std::uint64_t word, std::uint64_t words) {
    if (watch != nullptr) watch(at_byte + 8 * word, 8 * words);
  };
  const std::uint64_t partitions = sealed::partitions_in(level.data());
  const ribbon_partition p = ribbon::partition_in(level.data(), multiply_high(hash64, partitions));
  static_lookup result;
  if (p.keys == 0) return result;
  const ribbon::place at = ribbon::place_of(
      p, level.data(), hash64, width, [&](std::uint64_t word) { read(word, 1); }, used);
  read(at.word, 2 * std::uint64_t{width});
  result.fingerprint = at.fingerprint;
  for (unsigned slot = 0; slot < ribbon::slots_of_block; ++slot) {
    if ((at.coefficients >> slot & 1) == 0) continue;
    std::uint32_t value = 0;
    for (unsigned i = 0; i < width; ++i) {
      const std::uint64_t bit = ribbon::column(level.data(), at, i, width) >> slot & 1;
      value |= static_cast<std::uint32_t>(bit << i);
    }
    const unsigned number = at.shift + slot;
    const std::uint64_t word = at.word + number / ribbon::slots_of_block * width;
    result.cells.push_back({8 * at_byte + 64 * word + number % ribbon::slots_of_block, value});
  }
  return result;
}

static_lookup look_up_ribbon(unsigned width, std::span<const std::uint8_t> payload, std::uint64_t hash64,
                             before_reading watch) {
  return look_up_slots(width, payload, 0, hash64, ~std::uint64_t{0}, watch);
}

bool is_equal(const static_lookup& found) {
  std::uint32_t value = 0;
  for (const static_lookup::cell& cell : found.cells) value ^= cell.value;
  return !found.cells.empty() && value == found.fingerprint;
}

// The lookup in the level that decides. In the second level, every key has fingerprint 1.
static_lookup look_up_cascade(unsigned width, std::span<const std::uint8_t> payload, std::uint64_t hash64,
                              before_reading watch) {
  static_lookup first = look_up_ribbon(width, payload, hash64, watch);
  if (!is_equal(first)) return first;
  const std::uint64_t at_byte = cascade::second_in(payload.data());
  const std::span<const std::uint8_t> level = payload.subspan(at_byte);
  if (watch != nullptr) watch(at_byte, sealed::header_bytes);
  const std::uint64_t number = multiply_high(hash64, sealed::partitions_in(level.data()));
  if (watch != nullptr)
    watch(at_byte + sealed::header_bytes + number * ribbon::partition_bytes, ribbon::partition_bytes);
  static_lookup second = look_up_slots(1, level, at_byte, hash64, cascade::place_bits, watch);
  second.fingerprint = 1;
  return second;
}

// Those of two blocks of words, and of the thresholds.
std::uint32_t lines_of_ribbon(unsigned width) {
  constexpr std::uint32_t line_words = 8;
  return (2 * width + line_words - 2) / line_words + 1 + 1;
}

// Whatever the payload contains, the fingerprint of a random key matches with probability 2^-w. So only the partitions
// without keys matter.
template <const static_calls& Calls>
long double hits_of(std::span<const std::uint8_t> payload) {
  const std::uint64_t partitions = sealed::partitions_in(payload.data());
  std::uint64_t with_keys = 0;
  for (std::uint64_t p = 0; p < partitions; ++p) with_keys += keys_of_partition(Calls, payload.data(), p) > 0 ? 1 : 0;
  return std::exp2(-static_cast<long double>(sealed::width_in(payload.data()))) * static_cast<long double>(with_keys) /
         static_cast<long double>(partitions);
}

}  // namespace

constinit const static_calls fuse_calls = {
    .layout_name = fuse_layout_name,
    .check = check_fuse,
    .geometry = fuse_geometry,
    .rate = static_rate,
    .hits = hits_of<fuse_calls>,
    .may_contain = [](const std::uint8_t* payload, const geometry& g, const hash_span& keys,
                      std::uint64_t* bitmap) { fuse::has_batch(payload, g.bits, keys, bitmap); },
    .look_up = look_up_fuse,
    .most_lines = [](unsigned) { return fuse::probes; },
    .partition_bytes = fuse::partition_bytes,
    .probes = fuse::probes,
    .has_cells = true,
    .has_absent_list = false};

constinit const static_calls ribbon_calls = {
    .layout_name = ribbon_layout_name,
    .check = check_ribbon,
    .geometry = ribbon_geometry,
    .rate = static_rate,
    .hits = hits_of<ribbon_calls>,
    .may_contain = [](const std::uint8_t* payload, const geometry&, const hash_span& keys,
                      std::uint64_t* bitmap) { ribbon::has_batch(payload, keys, bitmap); },
    .look_up = look_up_ribbon,
    .most_lines = lines_of_ribbon,
    .partition_bytes = ribbon::partition_bytes,
    .probes = ribbon::probes,
    .has_cells = false,
    .has_absent_list = false};

constinit const static_calls cascade_calls = {
    .layout_name = cascade_layout_name,
    .check = check_cascade,
    .geometry = cascade_geometry,
    .rate = cascade_rate,
    .hits = [](std::span<const std::uint8_t> payload) { return cascade::share_of_hits(payload.data()); },
    .may_contain = [](const std::uint8_t* payload, const geometry&, const hash_span& keys,
                      std::uint64_t* bitmap) { cascade::has_batch(payload, keys, bitmap); },
    .look_up = look_up_cascade,
    .most_lines = [](unsigned width) { return lines_of_ribbon(width) + lines_of_ribbon(1); },
    .partition_bytes = ribbon::partition_bytes,
    .probes = ribbon::probes,
    .has_cells = false,
    .has_absent_list = true};

namespace {

void check_geometry(const static_calls& calls, const geometry& g) {
  constexpr std::uint64_t unit = 512;
  if (g.bits < 2 * unit || g.bits % unit != 0) {
    throw error(errc::invalid_argument, {"invalid number of bits for a static filter", "geometry",
                                         "a multiple of 512, at least 1024", std::to_string(g.bits), ""});
  }
  if (g.probes != calls.probes) {
    throw error(errc::invalid_argument, {"invalid number of probes for a static filter", "geometry",
                                         std::to_string(calls.probes), std::to_string(g.probes), ""});
  }
}

template <const static_calls& Calls>
cell_scan_result scan(const geometry& g, const byte_slice& all, const block_counters&) {
  check_geometry(Calls, g);
  const std::span<const std::uint8_t> bytes = all.bytes;
  const unsigned width = bytes.size() < sealed::header_bytes ? 1 : sealed::width_in(bytes.data());
  Calls.check(std::clamp(width, 1u, sealed::most_width), bytes, "measure_fill");
  const long double collision = rates::collision(0x1p64L, sealed::keys_in(bytes.data()));
  return {count_ones(bytes), rates::either(Calls.hits(bytes), collision), 0};
}

// Like static_calls::check; also compares the number of keys with the header.
void check_bytes(const params& p, std::span<const std::uint8_t> bytes, const std::string& where) {
  const layout_row& row = *find_layout(p.layout);
  row.sealed->check(row.fingerprint_bits, bytes, where);
  const std::uint64_t keys = sealed::keys_in(bytes.data());
  if (keys == p.capacity) return;
  throw error(errc::damaged, {"the static filter contradicts itself: keys", where, std::to_string(p.capacity),
                              std::to_string(keys), hint::seal_again});
}

// A geometry does not tell the width.
template <const static_calls& Calls, std::size_t... I>
constexpr auto rates_of_widths(std::index_sequence<I...>) {
  using rate = double (*)(const geometry&, std::uint64_t);
  return std::array<rate, sizeof...(I)>{
      [](const geometry&, std::uint64_t keys) { return Calls.rate(static_cast<unsigned>(I + 1), keys); }...};
}

template <const static_calls& Calls>
constexpr auto rates_by_width = rates_of_widths<Calls>(std::make_index_sequence<sealed::most_width>());

template <const static_calls& Calls>
layout_row row_of(unsigned width, const single_key_calls* single) {
  layout_row row{};
  row.name = Calls.layout_name(width);
  row.geometry_for = [](std::uint64_t, double) -> geometry { refuse_making(); };
  row.check = [](const geometry& g) { check_geometry(Calls, g); };
  row.expected_fpr = rates_by_width<Calls>[width - 1];
  row.keys_from_zeros = [](const geometry&, std::uint64_t) { return 0.0; };
  row.may_contain = Calls.may_contain;
  row.single = single;
  row.occupancy = [](const geometry& g) { return occupancy{1, g.bits, 0, g.probes}; };
  row.scan_cells = scan<Calls>;
  row.family = family::static_set;
  row.cell_bits = Calls.has_cells ? width : 1;
  row.fingerprint_bits = width;
  row.most_lines = Calls.most_lines(width);
  row.fixed_probes = Calls.probes;
  row.most_chosen_probes = Calls.probes;
  row.sealed = &Calls;
  row.check_bytes = check_bytes;
  return row;
}

}  // namespace

layout_row row_of_static(static_structure structure, unsigned width, const single_key_calls* single) {
  if (structure == static_structure::ribbon) return row_of<ribbon_calls>(width, single);
  return row_of<fuse_calls>(width, single);
}

layout_row row_of_cascade(unsigned width, const single_key_calls* single) {
  return row_of<cascade_calls>(width, single);
}

void refuse_keys_if_static(const params& p, const std::string& where) {
  if (family_of(p) != family::static_set) return;
  throw error(errc::not_permitted, {"keys cannot be inserted into or removed from a static filter", where, "", "",
                                    hint::seal_old_and_new_keys});
}

void refuse_empty_if_static(const params& p) {
  if (family_of(p) == family::static_set) refuse_making();
}

}  // namespace bloomery
