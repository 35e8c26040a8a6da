#include <bloomery/layouts/blocked_page.hpp>

#include "layouts/free_probes.hpp"
#include "layouts/row_of.hpp"

namespace bloomery {
namespace {

constexpr free_probes::family shape = {"blocked_page", blocked_page::block_bits, blocked_page::max_blocks,
                                       blocked_page::most_chosen_probes};

}  // namespace

geometry blocked_page::geometry_for(std::uint64_t capacity, double false_positive_rate) {
  return free_probes::geometry_for(shape, capacity, false_positive_rate);
}

void blocked_page::check(const geometry& g) { free_probes::check(shape, g); }

double blocked_page::false_positive_rate(const geometry& g, std::uint64_t keys) {
  return free_probes::false_positive_rate(shape, g, keys);
}

double blocked_page::keys_from_zeros(const geometry& g, std::uint64_t zeros) {
  return free_probes::keys_from_zeros(shape, g, zeros);
}

template <>
struct certificate<blocked_page> {
  static cells_seen look_at(const geometry& g, std::span<const std::uint8_t> bytes, const block_counters& counters) {
    cells_seen seen{0, 0, 0x1p64L};
    seen.hit = certificates::mean_of_powers<blocked_page>(g, bytes, counters.ones, seen.used);
    return seen;
  }
};

template const layout_row& row_of<blocked_page>() noexcept;

}  // namespace bloomery
