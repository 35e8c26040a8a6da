// Fill statistics from a cell scan: the kernels for the scan, and the current FPR from its result.
#pragma once

#include <bloomery/measure.hpp>

#include "layouts/cell_scan.hpp"
#include "layouts/row.hpp"

namespace bloomery {

/// The chosen kernels for the cell scan of this layout.
block_counters counters_for(const layout_row& row) noexcept;

/// Fill statistics from a cell scan. The current FPR includes the hash collisions of the number of keys that the cells
/// suggest.
fill_statistics fill_statistics_of(const layout_row& row, const geometry& g, const cell_scan_result& seen);

}  // namespace bloomery
