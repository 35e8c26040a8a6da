#include <bloomery/layouts/line_free.hpp>

#include "layouts/free_probes.hpp"

namespace bloomery {
namespace {

constexpr free_probes::family family = {"line_free", line_free::block_bits, line_free::max_blocks,
                                        line_free::most_chosen_probes};

}  // namespace

geometry line_free::geometry_for(std::uint64_t capacity, double false_positive_rate) {
  return free_probes::geometry_for(family, capacity, false_positive_rate);
}

void line_free::check(const geometry& g) { free_probes::check(family, g); }

double line_free::false_positive_rate(const geometry& g, std::uint64_t keys) {
  return free_probes::false_positive_rate(family, g, keys);
}

double line_free::keys_from_zeros(const geometry& g, std::uint64_t zeros) {
  return free_probes::keys_from_zeros(family, g, zeros);
}

}  // namespace bloomery
