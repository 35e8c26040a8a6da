// Fill statistics: the selection of kernels, and the current FPR from a cell scan.
#include "registry/fill_statistics.hpp"

#include <bloomery/detail/bits.hpp>
#include <bloomery/error.hpp>
#include <bloomery/scheme.hpp>

#include "kernels/dispatch.hpp"
#include "math/occupancy.hpp"
#include "math/rates.hpp"
#include "registry/tables.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

namespace bloomery {

fill_statistics fill_statistics_of(const layout_row& row, const geometry& g, const cell_scan_result& seen) {
  if (seen.hash_values == 0) return {seen.used, static_cast<double>(seen.hit)};
  if (seen.used == 0) return {};
  const occupancy o = row.occupancy(g);
  const std::uint64_t cells = o.blocks * o.block_bits;
  const double keys = std::round(keys_from_zeros(o, std::max<std::uint64_t>(cells - seen.used, 1)).value);
  const long double collision = rates::collision(seen.hash_values, static_cast<std::uint64_t>(std::min(keys, 0x1p62)));
  return {seen.used, static_cast<double>(std::min(rates::either(seen.hit, collision), 1.0L))};
}

block_counters counters_for(const layout_row& row) noexcept {
  const kernels::fill_kernel& kernel = chosen_kernels().fill_statistics;
  return {kernel.ones, row.block_kernel != nullptr ? kernel.*row.block_kernel : nullptr};
}

std::uint64_t used_ones(std::uint64_t bits, std::span<const std::uint8_t> bytes, bool from_top) {
  std::uint64_t ones = count_ones(bytes);
  if (const std::uint64_t used = bits % 8; used != 0) {
    const unsigned mask = from_top ? 0xFFu >> used : 0xFFu << used & 0xFFu;
    ones -= static_cast<std::uint64_t>(std::popcount(bytes.back() & mask));
  }
  return ones;
}

fill_statistics measure_fill(const params& p, std::span<const std::uint8_t> bytes) {
  const layout_row* layout = find_layout(p.layout);
  const scheme* by_scheme = find_scheme(p.scheme);
  if (layout == nullptr && by_scheme == nullptr) {
    throw error(errc::invalid_argument,
                {"unknown layout or scheme", "", "one of " + layout_names() + ", " + scheme_names(),
                 "'" + p.layout + p.scheme + "'", ""});
  }
  if (bytes.size() != bytes_for(p.geometry.bits)) {
    throw error(errc::invalid_argument, {"wrong number of bytes", "measure_fill",
                                         std::to_string(bytes_for(p.geometry.bits)), std::to_string(bytes.size()), ""});
  }
  if (layout != nullptr) {
    layout->check(p.geometry);
    return fill_statistics_of(*layout, p.geometry, layout->scan_cells(p.geometry, bytes, counters_for(*layout)));
  }
  by_scheme->check(p.geometry);
  return {used_ones(p.geometry.bits, bytes, by_scheme->from_top), by_scheme->current_fpr(p.geometry, bytes)};
}

}  // namespace bloomery
