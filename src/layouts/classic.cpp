#include <bloomery/layouts/classic.hpp>

#include <bloomery/error.hpp>

#include "rates.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>

namespace bloomery {
namespace {

constexpr std::uint64_t most_bits = std::uint64_t{1} << 63;

// Keys whose lines are on their way from memory together.
constexpr std::size_t group = 16;

// At half fill an absent key is refused after two probes on average: fetching all k lines would waste most of them.
constexpr std::uint32_t looked_ahead = 3;

long double rate(std::uint64_t bits, std::uint32_t probes, std::uint64_t keys) {
  return rates::either(rates::classic(bits, probes, keys), rates::collision(0x1p128L, keys));
}

std::uint32_t clamp_probes(double k, std::uint32_t most) {
  if (!(k > 1)) return 1;
  return k < most ? static_cast<std::uint32_t>(k) : most;
}

}  // namespace

std::uint32_t classic::best_probes(std::uint64_t bits, std::uint64_t capacity) {
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

geometry classic::geometry_for(std::uint64_t capacity, double false_positive_rate) {
  rates::check_promise(capacity, false_positive_rate);
  const long double n = static_cast<long double>(capacity);
  const long double p = false_positive_rate;
  const std::uint32_t ideal = clamp_probes(static_cast<double>(std::round(-std::log2(p))), most_chosen_probes);
  geometry best{most_bits + 1, 0};
  // In tiny filters the exact optimum lies below the textbook's -log2(p), elsewhere beside it.
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
    throw error(errc::too_large, {"no classic filter keeps this promise", "rate",
                                  "at most 2^62 bits, and a rate above the hash's own n / 2^128",
                                  std::to_string(capacity) + " keys", "ask for fewer keys or a higher rate"});
  }
  return best;
}

void classic::check(const geometry& g) {
  if (g.bits == 0 || g.bits > most_bits) {
    throw error(errc::invalid_argument,
                {"bits of a classic filter", "geometry", "1 to 2^63", std::to_string(g.bits), ""});
  }
  if (g.probes == 0 || g.probes > max_probes) {
    throw error(errc::invalid_argument,
                {"probes of a classic filter", "geometry", "1 to 255", std::to_string(g.probes), ""});
  }
}

double classic::false_positive_rate(const geometry& g, std::uint64_t keys) {
  return static_cast<double>(rate(g.bits, g.probes, keys));
}

double classic::keys_from_zeros(const geometry& g, std::uint64_t zeros) {
  if (zeros == 0) return std::numeric_limits<double>::infinity();
  const auto m = static_cast<long double>(g.bits);
  if (g.bits == 1) return 0;
  return static_cast<double>(std::log(static_cast<long double>(zeros) / m) / (g.probes * std::log1p(-1 / m)));
}

void classic::insert_batch(std::uint8_t* bytes, const geometry& g, std::span<const key_hash> hashes,
                           std::uint8_t* is_new) noexcept {
  std::array<std::uint64_t, group * max_probes> positions;
  for (std::size_t first = 0; first < hashes.size(); first += group) {
    const std::size_t keys = std::min(group, hashes.size() - first);
    std::size_t filled = 0;
    for (std::size_t i = 0; i < keys; ++i) {
      cells probes(g, hashes[first + i]);
      for (std::uint32_t probe = 0; probe < g.probes; ++probe) {
        const std::uint64_t cell = probes.next();
        positions[filled++] = cell;
        __builtin_prefetch(bytes + (cell >> 3), 1, 2);
      }
    }
    const std::uint64_t* cell = positions.data();
    for (std::size_t i = 0; i < keys; ++i) {
      bool fresh = false;
      for (std::uint32_t probe = 0; probe < g.probes; ++probe) fresh |= set_bit(bytes, *cell++);
      if (is_new != nullptr) is_new[first + i] = fresh ? 1 : 0;
    }
  }
}

void classic::has_batch(const std::uint8_t* bytes, const geometry& g, std::span<const key_hash> hashes,
                        std::uint64_t* bitmap) noexcept {
  const std::uint32_t ahead = std::min(looked_ahead, g.probes);
  for (std::size_t first = 0; first < hashes.size(); first += group) {
    const std::size_t keys = std::min(group, hashes.size() - first);
    for (std::size_t i = 0; i < keys; ++i) {
      cells probes(g, hashes[first + i]);
      for (std::uint32_t probe = 0; probe < ahead; ++probe) __builtin_prefetch(bytes + (probes.next() >> 3), 0, 2);
    }
    for (std::size_t i = first; i < first + keys; ++i) {
      if (i % 64 == 0) bitmap[i / 64] = 0;
      bitmap[i / 64] |= std::uint64_t{has_cells<classic>(bytes, g, hashes[i])} << (i % 64);
    }
  }
}

}  // namespace bloomery
