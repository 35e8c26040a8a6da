// Kernels for the certificates of the layouts; include/bloomery/census.hpp says what a certificate is.
#pragma once

#include <bloomery/fill_statistics.hpp>

#include "layouts/certificate.hpp"
#include "layouts/row.hpp"

namespace bloomery {

/// The chosen kernels, as the certificate of this layout wants them.
block_counters counters_for(const layout_row& row) noexcept;

/// The certificate of these cells: their own rate, and the collisions of as many keys as the cells suggest.
fill_statistics certify(const layout_row& row, const geometry& g, const cells_seen& seen);

}  // namespace bloomery
