// Fill statistics from a cell scan: the kernels for the scan, and the current FPR from its result.
#pragma once

#include <bloomery/measure.hpp>
#include <bloomery/scheme.hpp>

#include "layouts/cell_scan.hpp"
#include "layouts/row.hpp"

namespace bloomery {

/// The chosen kernels for the cell scan of this layout.
block_counters counters_for(const layout_row& row) noexcept;

/// Number of set bits of a slice that are in a range of bits.
/// @param bits      of the filter
/// @param from_top  the range counts the bits of a byte from the top
std::uint64_t ones_in(const byte_slice& slice, const bit_range& range, std::uint64_t bits, bool from_top);

/// Fill statistics from the sum of the cell scans of all slices. The current FPR includes the hash collisions of the
/// number of keys that the cells suggest.
fill_statistics fill_statistics_of(const layout_row& row, const geometry& g, const cell_scan_result& seen);

}  // namespace bloomery
