#include <bloomery/layouts/blocked_page.hpp>

#include "layouts/free_probes.hpp"

namespace bloomery {
namespace {

constexpr free_probes::family family = {"blocked_page", blocked_page::block_bits, blocked_page::max_blocks,
                                        blocked_page::most_chosen_probes};

}  // namespace

geometry blocked_page::geometry_for(std::uint64_t capacity, double false_positive_rate) {
  return free_probes::geometry_for(family, capacity, false_positive_rate);
}

void blocked_page::check(const geometry& g) { free_probes::check(family, g); }

double blocked_page::false_positive_rate(const geometry& g, std::uint64_t keys) {
  return free_probes::false_positive_rate(family, g, keys);
}

double blocked_page::keys_from_zeros(const geometry& g, std::uint64_t zeros) {
  return free_probes::keys_from_zeros(family, g, zeros);
}

}  // namespace bloomery
