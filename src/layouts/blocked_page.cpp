#include <bloomery/layouts/blocked_page.hpp>

#include "layouts/free_probes.hpp"
#include "layouts/row_of.hpp"

namespace bloomery {
namespace {

constexpr free_probes::family shape = {"blocked_page", layouts::blocked_page::block_bits,
                                       layouts::blocked_page::max_blocks, layouts::blocked_page::most_chosen_probes};

}  // namespace

geometry layouts::blocked_page::geometry_for(std::uint64_t capacity, double target_fpr) {
  return free_probes::geometry_for(shape, capacity, target_fpr);
}

void layouts::blocked_page::check(const geometry& g) { free_probes::check(shape, g); }

double layouts::blocked_page::expected_fpr(const geometry& g, std::uint64_t keys) {
  return free_probes::expected_fpr(shape, g, keys);
}

double layouts::blocked_page::keys_from_zeros(const geometry& g, std::uint64_t zeros) {
  return free_probes::keys_from_zeros(shape, g, zeros);
}

template <>
struct cell_scan<layouts::blocked_page> {
  static cell_scan_result scan(const geometry& g, std::span<const std::uint8_t> bytes, const block_counters& counters) {
    cell_scan_result seen{0, 0, 0x1p64L};
    seen.hit = cell_scans::mean_of_powers<layouts::blocked_page>(g, bytes, counters.ones, seen.used);
    return seen;
  }
};

template const layout_row& row_of<layouts::blocked_page>() noexcept;

}  // namespace bloomery
