// Creation of a layout_row from the layout's type. The .cpp file of a layout specializes cell_scan<L> and then
// instantiates row_of<L>().
#pragma once

#include <bloomery/error.hpp>

#include "layouts/cell_scan.hpp"
#include "layouts/facts_of.hpp"
#include "layouts/occupancy_of.hpp"
#include "layouts/row.hpp"

namespace bloomery {

namespace rows {

template <class L>
void cells_of(const geometry& g, key_hash hash, std::uint64_t* out) {
  typename L::cells cells(g, hash);
  for (std::uint32_t i = 0; i < cells.count(); ++i) out[i] = cells.next();
}

template <sliding_window_layout L>
occupancy lane_of(const geometry& g) {
  return {L::blocks_of(g), L::cells_of_block, 0, g.probes};
}

template <sliding_window_layout L>
inline constexpr window_calls window_calls_of = {L::insert_keys, L::look_up_keys, L::unite,    L::geometry_for,
                                                 L::scan_cells,  L::rate_of,      L::block_at, lane_of<L>};

template <layout_with_removal L>
inline constexpr removal_calls removal_calls_of = {
    .remove = L::remove_batch,
    .cells = [](const geometry& g) { return g.bits / L::cell_bits; },
    .cells_used = [](const geometry&, std::span<const std::uint8_t> bytes) { return L::cells_used(bytes); },
    .cells_full = [](const geometry&, std::span<const std::uint8_t> bytes) { return L::cells_full(bytes); },
    .copies_in = L::copies_in,
    .merge = [](const geometry&, std::span<std::uint8_t> into,
                std::span<const std::uint8_t> from) { L::merge_bytes(into, from); }};

/// Sliding-window filters have no occupancy: a key may be in several of the eight generations.
inline occupancy no_occupancy(const geometry&) {
  throw error(errc::incompatible, {"the set bits of a sliding-window filter do not determine its number of keys", "",
                                   "", "a sliding-window filter", ""});
}

inline double no_keys_from_zeros(const geometry& g, std::uint64_t) {
  no_occupancy(g);
  return 0;
}

template <class L>
constexpr layout_row made() noexcept {
  layout_row row{};
  static_cast<layout_facts&>(row) = facts_of<L>();
  row.geometry_for = L::geometry_for;
  row.check = L::check;
  row.expected_fpr = L::expected_fpr;
  row.cells = cells_of<L>;
  row.scan_cells = cell_scan<L>::scan;
  if constexpr (sliding_window_layout<L>) {
    // Inserts and lookups need an epoch, so the functions without an epoch are absent.
    row.keys_from_zeros = no_keys_from_zeros;
    row.occupancy = no_occupancy;
    row.window = &window_calls_of<L>;
  } else {
    row.keys_from_zeros = L::keys_from_zeros;
    row.insert = insert_batch<L>;
    row.may_contain = has_batch<L>;
    row.occupancy = occupancy_of<L>;
  }
  if constexpr (layout_by_hash64<L>) row.bulk = bulk_target_of<L>;
  if constexpr (layout_with_removal<L>) row.removals = &removal_calls_of<L>;
  return row;
}

}  // namespace rows

template <class L>
const layout_row& row_of() noexcept {
  static constexpr layout_row row = rows::made<L>();
  return row;
}

}  // namespace bloomery
