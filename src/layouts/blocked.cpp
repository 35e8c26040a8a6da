#include <bloomery/layouts/blocked.hpp>

#include "layouts/free_probes.hpp"

namespace bloomery {
namespace {

constexpr free_probes::family family = {"blocked", blocked::block_bits, blocked::max_blocks,
                                        blocked::most_chosen_probes};

}  // namespace

geometry blocked::geometry_for(std::uint64_t capacity, double false_positive_rate) {
  return free_probes::geometry_for(family, capacity, false_positive_rate);
}

void blocked::check(const geometry& g) { free_probes::check(family, g); }

double blocked::false_positive_rate(const geometry& g, std::uint64_t keys) {
  return free_probes::false_positive_rate(family, g, keys);
}

double blocked::keys_from_zeros(const geometry& g, std::uint64_t zeros) {
  return free_probes::keys_from_zeros(family, g, zeros);
}

}  // namespace bloomery
