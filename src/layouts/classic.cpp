// classic: sizes, rates and cell scans.
#include <bloomery/layouts/classic.hpp>

#include <bloomery/error.hpp>

#include "layouts/occupancy_of.hpp"
#include "layouts/row_of.hpp"
#include "math/occupancy.hpp"
#include "math/rates.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace bloomery {
namespace {

constexpr std::uint64_t most_bits = std::uint64_t{1} << 63;

long double rate(std::uint64_t bits, std::uint32_t probes, std::uint64_t keys) {
  return rates::either(rates::classic(bits, probes, keys), rates::collision(0x1p128L, keys));
}

std::uint32_t clamp_probes(double k, std::uint32_t most) {
  if (!(k > 1)) return 1;
  return k < most ? static_cast<std::uint32_t>(k) : most;
}

}  // namespace

std::uint32_t layouts::classic::best_probes(std::uint64_t bits, std::uint64_t capacity) {
  const double ideal =
      static_cast<double>(bits) / static_cast<double>(std::max<std::uint64_t>(capacity, 1)) * std::log(2.0);
  // In tiny filters the exact optimum lies below the textbook's m/n ln 2.
  std::uint32_t best = clamp_probes(std::floor(ideal) + 1, most_chosen_probes);
  long double lowest = rates::classic(bits, best, capacity);
  while (best > 1) {
    const long double fewer = rates::classic(bits, best - 1, capacity);
    if (fewer > lowest) break;
    lowest = fewer;
    --best;
  }
  return best;
}

geometry layouts::classic::geometry_for(std::uint64_t capacity, double target_fpr) {
  rates::check_target_fpr(capacity, target_fpr);
  const long double n = static_cast<long double>(capacity);
  const long double p = target_fpr;
  const std::uint32_t ideal = clamp_probes(static_cast<double>(std::round(-std::log2(p))), most_chosen_probes);
  geometry best{most_bits + 1, 0};
  // In tiny filters the exact optimum lies below the textbook's -log2(p), in others next to it.
  for (std::uint32_t k = std::min(ideal + 1, most_chosen_probes); k >= 1; --k) {
    // Textbook: p = (1 - e^(-kn/m))^k, solved for m.
    const long double guess = -static_cast<long double>(k) * n / std::log1p(-std::pow(p, 1.0L / k));
    if (!(guess < 0x1p62L)) continue;
    const std::uint64_t bits = rates::smallest(static_cast<std::uint64_t>(guess) + 1, most_bits,
                                               [&](std::uint64_t m) { return rate(m, k, capacity) <= p; });
    if (bits > most_bits) continue;
    if (bits <= best.bits)
      best = {bits, k};
    else if (k < ideal)
      break;
  }
  if (best.probes == 0) {
    throw error(errc::too_large, {"no classic filter keeps the target FPR", "rate",
                                  "at most 2^62 bits, and an FPR above n / 2^128, that of hash collisions",
                                  std::to_string(capacity) + " keys", hint::use_fewer_keys});
  }
  return best;
}

void layouts::classic::check(const geometry& g) {
  if (g.bits == 0 || g.bits > most_bits) {
    throw error(errc::invalid_argument,
                {"invalid number of bits for a classic filter", "geometry", "1 to 2^63", std::to_string(g.bits), ""});
  }
  rates::check_probes("classic", g.probes);
}

double layouts::classic::expected_fpr(const geometry& g, std::uint64_t keys) {
  return static_cast<double>(rate(g.bits, g.probes, keys));
}

double layouts::classic::keys_from_zeros(const geometry& g, std::uint64_t zeros) {
  return bloomery::keys_from_zeros(occupancy_of<layouts::classic>(g), zeros).value;
}

template <>
struct cell_scan<layouts::classic> {
  static cell_scan_result scan(const geometry& g, const byte_slice& slice, const block_counters&) {
    return {used_ones(g.bits, slice, false), 0, 0x1p128L};
  }
};

template const layout_row& row_of<layouts::classic>() noexcept;

}  // namespace bloomery
