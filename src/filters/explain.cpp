// Explanation of a lookup: the cells of a key of a filter in memory or in a file.
#include "filters/explain.hpp"

#include <bloomery/detail/bits.hpp>
#include <bloomery/detail/generations.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/layouts/sliding.hpp>

#include "registry/tables.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace bloomery {
namespace {

void explain_fingerprint(const any_filter& filter, std::uint64_t hash64, key_explanation& result) {
  const std::span<const std::uint8_t> payload = filter.bytes();
  const unsigned width = sealed::width_in(payload.data());
  const static_lookup found = find_layout(filter.parameters().layout)->sealed->look_up(width, payload, hash64, {});
  explained_fingerprint shown{width, 0, found.fingerprint};
  std::vector<explained_cell> cells;
  for (const static_lookup::cell& cell : found.cells) {
    cells.push_back({cell.number, cell.value});
    shown.exclusive_or ^= cell.value;
  }
  result.maybe_present = !cells.empty() && shown.exclusive_or == shown.expected;
  result.fingerprint = shown;
  if (!cells.empty()) result.layers.emplace_back().cells = std::move(cells);
}

void explain_slots(const any_filter& filter, std::uint64_t hash64, key_explanation& result) {
  const params& p = filter.parameters();
  const layout_row& layout = *find_layout(p.layout);
  const slot_calls* const slots = slots_of(&layout);
  if (slots == nullptr) return;
  const slot_lookup found = slots->look_up(filter.bytes().data(), p.geometry, hash64);
  explained_layer& layer = result.layers.emplace_back();
  layer.bytes = layout.block_bits / 8;
  layer.blocks = p.geometry.bits / layout.block_bits;
  layer.block = found.blocks.front().number;
  layer.first_byte = layer.block * layer.bytes;
  for (const slot_lookup::block& block : found.blocks) {
    layer.cells.push_back({block.number, block.copies});
    result.maybe_present |= block.copies > 0;
  }
  result.slots = explained_slots{found.bucket, found.remainder, layout.fingerprint_bits};
}

// A cell is a byte with one bit per generation; the block begins with the epoch in which it was last written.
void explain_generations(const any_filter& filter, const std::vector<std::uint64_t>& cells, key_explanation& result) {
  const params& p = filter.parameters();
  const std::span<const std::uint8_t> bytes = filter.bytes();
  const std::uint64_t epoch = facts_of_window(p, bytes).epoch;
  explained_layer& layer = result.layers.emplace_back();
  layer.bytes = block_bits_of(p) / 8;
  layer.block = (cells.front() / window_generations - window_state_bytes) / layer.bytes;
  layer.blocks = (p.geometry.bits / 8 - window_state_bytes) / layer.bytes;
  layer.first_byte = window_state_bytes + layer.block * layer.bytes;
  std::uint32_t stamp = 0;
  std::memcpy(&stamp, bytes.data() + layer.first_byte, sizeof stamp);
  const std::uint8_t live = live_generations(stamp, static_cast<std::uint32_t>(epoch));
  for (const std::uint64_t cell : cells) {
    const std::uint64_t byte = cell / window_generations;
    layer.cells.push_back({byte, std::uint32_t{bytes[byte]} & live});
  }
  const std::uint64_t oldest = epoch - std::min<std::uint64_t>(epoch, window_slices);
  for (std::uint64_t e = epoch + 1; e-- > oldest;) {
    const std::uint32_t lane = 1u << e % window_generations;
    const auto set = std::count_if(layer.cells.begin(), layer.cells.end(),
                                   [&](const explained_cell& cell) { return (cell.value & lane) != 0; });
    const bool all = static_cast<std::size_t>(set) == cells.size();
    result.generations.push_back({e, static_cast<std::uint32_t>(set), all});
    result.maybe_present |= all;
  }
}

void explain_cells(const params& p, const std::vector<std::uint64_t>& cells, const cell_values& value,
                   key_explanation& result) {
  explained_layer& layer = result.layers.emplace_back();
  result.maybe_present = true;
  for (const std::uint64_t cell : cells) {
    layer.cells.push_back({cell, value(cell)});
    result.maybe_present &= layer.cells.back().value != 0;
  }
  if (const std::uint64_t block_bits = block_bits_of(p)) {
    layer.bytes = block_bits / 8;
    layer.block = cells.front() * cell_bits_of(p) / block_bits;
    layer.blocks = p.geometry.bits / block_bits;
    layer.first_byte = layer.block * layer.bytes;
  }
}

}  // namespace

std::vector<std::uint64_t> cells_of_key(const any_filter& filter, key_span one_key) {
  if (one_key.is_text()) return filter.cells(one_key.text(0));
  if (one_key.form() == key_span::form_of_keys::integers) return filter.cells(one_key.integers()[0]);
  if (one_key.form() == key_span::form_of_keys::hash64s) return filter.cells(key_hash{one_key.hash64s()[0], 0});
  return filter.cells(one_key.hashes()[0]);
}

std::uint32_t cell_value(std::uint32_t cell_bits, const std::uint8_t* bytes, std::uint64_t cell) noexcept {
  return cell_bits > 1 ? layouts::counting::counter(bytes, cell) : test_bit(bytes, cell) ? 1 : 0;
}

key_explanation explain_key(const any_filter& filter, key_span one_key, const cell_values& value) {
  if (one_key.empty()) throw error(errc::invalid_argument, {"no key to explain", "keys", "1", "0", hint::none});
  key_explanation result;
  key_span key = one_key.part(0, 1);
  key_hash hash{};
  if (filter.uses_hashes()) {
    filter.hash(key, std::span(&hash, 1));
    result.hash = hash;
    key = std::span<const key_hash>(&hash, 1);
  }
  const params& p = filter.parameters();
  if (value) {
    explain_cells(p, cells_of_key(filter, key), value, result);
    return result;
  }
  std::uint64_t found = 0;
  filter.may_contain(key, std::span(&found, 1));  // verifies the pages that are read below
  const auto in_memory = [&](std::uint64_t cell) { return cell_value(cell_bits_of(p), filter.bytes().data(), cell); };
  switch (family_of(p)) {
    case family::static_set: explain_fingerprint(filter, hash.hash64, result); break;
    case family::quotient: explain_slots(filter, hash.hash64, result); break;
    case family::sliding_window: explain_generations(filter, cells_of_key(filter, key), result); break;
    case family::plain:
    case family::counting: explain_cells(p, cells_of_key(filter, key), in_memory, result); break;
  }
  return result;
}

}  // namespace bloomery
