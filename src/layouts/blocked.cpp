// blocked: sizes, rates and cell scans.
#include <bloomery/layouts/blocked.hpp>

#include "layouts/blocked_layout.hpp"
#include "layouts/row_of.hpp"

namespace bloomery {

template class layouts::blocked_layout<layouts::blocked, layouts::blocked::block_bits>;

template <>
struct cell_scan<layouts::blocked> {
  static cell_scan_result scan(const geometry& g, const byte_slice& slice, const block_counters& counters) {
    using namespace cell_scans;
    const auto hit = powers_of_fill<layouts::blocked::cells_of_block>(g.probes);
    long double sum = 0;
    const std::uint64_t ones = each_block(counters.blocks, layouts::blocked::block_bits / 8, slice.bytes,
                                          [&](const std::uint64_t* ones_of_line, std::size_t count) {
                                            // Four independent sums, for instruction-level parallelism.
                                            double a = 0, b = 0, c = 0, d = 0;
                                            std::size_t i = 0;
                                            for (; i + 4 <= count; i += 4) {
                                              a += hit[ones_of_line[i]];
                                              b += hit[ones_of_line[i + 1]];
                                              c += hit[ones_of_line[i + 2]];
                                              d += hit[ones_of_line[i + 3]];
                                            }
                                            for (; i < count; ++i) a += hit[ones_of_line[i]];
                                            sum += a + b + (c + d);
                                          });
    return {ones, sum / static_cast<long double>(g.bits / layouts::blocked::block_bits), 0x1p64L};
  }
};

template const layout_row& row_of<layouts::blocked>() noexcept;

}  // namespace bloomery
