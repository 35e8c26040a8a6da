// The table of schemes, and common functions.
#include "schemes/schemes.hpp"

#include <bloomery/error.hpp>

#include "math/rates.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace bloomery {

std::span<const scheme> schemes() noexcept {
  static const scheme table[] = {guava_scheme, pharo_scheme, python_scheme, perl_scheme};
  return table;
}

const scheme* find_scheme(std::string_view name) noexcept {
  for (const scheme& row : schemes()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

void check_scheme_geometry(const geometry& g, std::uint64_t most_bits) {
  if (g.bits == 0) throw error(errc::invalid_argument, {"invalid number of bits", "geometry", "at least 1", "0", ""});
  if (g.bits > most_bits) {
    throw error(errc::too_large, {"too many bits for this scheme", "geometry", "at most " + std::to_string(most_bits),
                                  std::to_string(g.bits), hint::use_fewer_keys_or_layout});
  }
  if (g.probes == 0 || g.probes > max_probes) {
    throw error(errc::invalid_argument,
                {"invalid number of probes", "geometry", "1 to 255", std::to_string(g.probes), ""});
  }
}

double remainder_rate(const geometry& g, std::uint64_t keys) {
  const long double hashes = 0x1p32L;
  const auto bits = static_cast<long double>(g.bits);
  const long double probes = static_cast<long double>(keys) * g.probes;
  // A bit that h of the 2^32 hashes select is set with probability fill(h).
  const auto fill = [&](long double h) { return -std::expm1(probes * std::log1p(-std::min(h / hashes, 1.0L))); };
  const long double fewer = std::floor(hashes / bits);
  const long double favoured = hashes - fewer * bits;  // bits with one hash more
  const long double met = (favoured * (fewer + 1) * fill(fewer + 1) + (bits - favoured) * fewer * fill(fewer)) / hashes;
  const long double even = fill(hashes / bits);
  const long double skew = even > 0 ? std::pow(met / even, static_cast<long double>(g.probes)) : 1;
  return static_cast<double>(std::min(1.0L, rates::classic(g.bits, g.probes, keys) * skew));
}

bit_range remainder_favoured(const geometry& g, std::int64_t first, std::uint64_t hashes) {
  const auto bits = static_cast<std::int64_t>(g.bits);
  return {static_cast<std::uint64_t>((first % bits + bits) % bits), hashes % g.bits};
}

double remainder_current_fpr(const geometry& g, const scheme_bits& seen, std::uint64_t hashes) {
  const std::uint64_t fewer = hashes / g.bits;
  const long double led_to = static_cast<long double>(fewer) * static_cast<long double>(seen.ones) +
                             static_cast<long double>(seen.ones_favoured);
  return static_cast<double>(std::pow(led_to / static_cast<long double>(hashes), static_cast<long double>(g.probes)));
}

}  // namespace bloomery
