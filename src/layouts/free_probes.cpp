// Sizes of blocked layouts with independent probes.
#include "layouts/free_probes.hpp"

#include <bloomery/detail/geometry.hpp>

#include <algorithm>
#include <cmath>

namespace bloomery {

free_probes::size free_probes::fewest_blocks(const family& f, std::uint64_t capacity, double target_fpr, even_load even,
                                             function_ref<double(rates::block_rates&, std::uint64_t)> rate) {
  const auto ideal = static_cast<std::uint32_t>(std::clamp(std::round(-std::log2(even.rate)), 1.0, double{max_probes}));
  size best{f.max_blocks + 1, 0};
  // Uneven block loads make additional probes less useful, so the best k is at most that for even loads, -log2(p). The
  // size decreases up to the best k and increases after it.
  for (std::uint32_t k = std::min(ideal + 1, f.most_chosen_probes); k >= 1; --k) {
    rates::block_rates in_block(f.cells_of_block, k);
    // Assuming equal block loads: p = (1 - e^(-kn/m))^k, solved for m.
    const double even_cells =
        -static_cast<double>(k) * static_cast<double>(even.keys) / std::log1p(-std::pow(even.rate, 1.0 / k));
    const double guess = std::fmin(even_cells / f.cells_of_block + 1, static_cast<double>(f.max_blocks));
    const std::uint64_t blocks = rates::smallest(static_cast<std::uint64_t>(guess), f.max_blocks,
                                                 [&](std::uint64_t b) { return rate(in_block, b) <= target_fpr; });
    if (blocks <= f.max_blocks && blocks <= best.blocks) {
      best = {blocks, k};
    } else if (best.probes != 0 && blocks > best.blocks) {
      break;
    }
  }
  if (best.probes == 0) rates::refuse_target_fpr(f.name, capacity, target_fpr);
  return best;
}

}  // namespace bloomery
