#include <bloomery/layouts/blocked.hpp>

#include "layouts/free_probes.hpp"
#include "layouts/row_of.hpp"

namespace bloomery {
namespace {

constexpr free_probes::family shape = {"blocked", layouts::blocked::block_bits, layouts::blocked::max_blocks,
                                       layouts::blocked::most_chosen_probes};

}  // namespace

geometry layouts::blocked::geometry_for(std::uint64_t capacity, double target_fpr) {
  return free_probes::geometry_for(shape, capacity, target_fpr);
}

void layouts::blocked::check(const geometry& g) { free_probes::check(shape, g); }

double layouts::blocked::expected_fpr(const geometry& g, std::uint64_t keys) {
  return free_probes::expected_fpr(shape, g, keys);
}

double layouts::blocked::keys_from_zeros(const geometry& g, std::uint64_t zeros) {
  return free_probes::keys_from_zeros(shape, g, zeros);
}

template <>
struct cell_scan<layouts::blocked> {
  static cell_scan_result scan(const geometry& g, std::span<const std::uint8_t> bytes, const block_counters& counters) {
    using namespace cell_scans;
    std::array<double, layouts::blocked::block_bits + 1> hit;
    for (std::uint32_t x = 0; x < hit.size(); ++x) {
      hit[x] = static_cast<double>(power(static_cast<long double>(x) / layouts::blocked::block_bits, g.probes));
    }
    long double sum = 0;
    const std::uint64_t ones = each_block(counters.blocks, layouts::blocked::block_bits / 8, bytes,
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
