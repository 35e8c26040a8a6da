#include "layouts/free_probes.hpp"

#include <bloomery/error.hpp>

#include "math/occupancy.hpp"
#include "math/rates.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

namespace bloomery::free_probes {
namespace {

double rate(rates::block_rates& in_block, std::uint64_t blocks, std::uint64_t keys) {
  return static_cast<double>(
      rates::either(rates::blocked(keys, static_cast<long double>(blocks), [&](long double i) { return in_block(i); }),
                    rates::collision(0x1p64L, keys)));
}

}  // namespace

geometry geometry_for(const family& f, std::uint64_t capacity, double target_fpr) {
  rates::check_target_fpr(capacity, target_fpr);
  const double p = target_fpr;
  const auto ideal = static_cast<std::uint32_t>(std::clamp(std::round(-std::log2(p)), 1.0, double{max_probes}));
  std::uint64_t fewest = f.max_blocks + 1;
  std::uint32_t best = 0;
  // Uneven block loads make additional probes less useful, so the best k is at most classic's -log2(p). The size
  // decreases up to the best k and increases after it.
  for (std::uint32_t k = std::min(ideal + 1, f.most_chosen_probes); k >= 1; --k) {
    rates::block_rates in_block(f.block_bits, k);
    // Assuming equal block loads: p = (1 - e^(-kn/m))^k, solved for m.
    const double even_bits =
        -static_cast<double>(k) * static_cast<double>(capacity) / std::log1p(-std::pow(p, 1.0 / k));
    const double guess = std::fmin(even_bits / f.block_bits + 1, static_cast<double>(f.max_blocks));
    const std::uint64_t blocks = rates::smallest(static_cast<std::uint64_t>(guess), f.max_blocks,
                                                 [&](std::uint64_t b) { return rate(in_block, b, capacity) <= p; });
    if (blocks <= f.max_blocks && blocks <= fewest) {
      fewest = blocks;
      best = k;
    } else if (best != 0 && blocks > fewest) {
      break;
    }
  }
  if (best == 0) {
    rates::refuse_target_fpr(f.name, capacity, p);
  }
  return {fewest * f.block_bits, best};
}

void check(const family& f, const geometry& g) {
  rates::check_blocks(f.name, g.bits, f.block_bits, f.max_blocks);
  if (g.probes == 0 || g.probes > max_probes) {
    throw error(errc::invalid_argument, {std::string("probes of a ") + f.name + " filter", "geometry", "1 to 255",
                                         std::to_string(g.probes), ""});
  }
}

double expected_fpr(const family& f, const geometry& g, std::uint64_t keys) {
  // Integrating the rate over the keys (estimate_distinct, expected_losses) calls this a hundred times with one family
  // and k, and rates of a page take a tenth of a millisecond.
  struct known {
    std::uint32_t block_bits, probes;
    rates::block_rates in_block;
  };
  thread_local std::optional<known> last;
  if (!last || last->block_bits != f.block_bits || last->probes != g.probes) {
    last.emplace(known{f.block_bits, g.probes, {f.block_bits, g.probes}});
  }
  return rate(last->in_block, g.bits / f.block_bits, keys);
}

double keys_from_zeros(const family& f, const geometry& g, std::uint64_t zeros) {
  return bloomery::keys_from_zeros(occupancy{g.bits / f.block_bits, f.block_bits, 0, g.probes}, zeros).value;
}

}  // namespace bloomery::free_probes
