// blocked_page: sizes, rates and cell scans.
#include <bloomery/layouts/blocked_page.hpp>

#include "layouts/blocked_layout.hpp"
#include "layouts/row_of.hpp"

namespace bloomery {

template class layouts::blocked_layout<layouts::blocked_page, layouts::blocked_page::block_bits>;

template <>
struct cell_scan<layouts::blocked_page> {
  static cell_scan_result scan(const geometry& g, const byte_slice& slice, const block_counters& counters) {
    cell_scan_result seen{0, 0, 0x1p64L};
    seen.hit = cell_scans::mean_of_powers<layouts::blocked_page>(g, slice.bytes, counters.ones, seen.used);
    return seen;
  }
};

template const layout_row& row_of<layouts::blocked_page>() noexcept;

}  // namespace bloomery
