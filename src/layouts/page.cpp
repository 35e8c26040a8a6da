#include <bloomery/layouts/page.hpp>

#include "layouts/free_probes.hpp"

namespace bloomery {
namespace {

constexpr free_probes::family family = {"page", page::block_bits, page::max_blocks, page::most_chosen_probes};

}  // namespace

geometry page::geometry_for(std::uint64_t capacity, double false_positive_rate) {
  return free_probes::geometry_for(family, capacity, false_positive_rate);
}

void page::check(const geometry& g) { free_probes::check(family, g); }

double page::false_positive_rate(const geometry& g, std::uint64_t keys) {
  return free_probes::false_positive_rate(family, g, keys);
}

double page::keys_from_zeros(const geometry& g, std::uint64_t zeros) {
  return free_probes::keys_from_zeros(family, g, zeros);
}

}  // namespace bloomery
