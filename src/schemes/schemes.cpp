// The table of schemes, and common functions.
#include "schemes/schemes.hpp"

#include <bloomery/error.hpp>
#include <bloomery/layouts/classic.hpp>

#include "math/rates.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

namespace bloomery {

std::span<const scheme> schemes() noexcept {
  static const scheme table[] = {
    guava_scheme,
    guava32_scheme,
#if !defined(__EMSCRIPTEN__)  // without their files, the page has no use for these schemes and stays small
    spark_scheme,
    spark2_scheme,
    dcso_scheme,
    bits_and_blooms_scheme,
#endif
    pharo_scheme,
    python_scheme,
    perl_scheme,
#if !defined(__EMSCRIPTEN__)
    redisbloom_scheme,
    datasketches_scheme,
    bloom_filters_scheme,
    bloomfilter_js_scheme,
    leveldb_scheme,
    rocksdb_scheme,
    rocksdb_4_scheme,
    valkey_bloom_scheme,
#endif
  };
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

void check_words(const geometry& g, std::uint64_t most_bits, std::uint64_t word_bits) {
  check_scheme_geometry(g, most_bits);
  if (g.bits % word_bits != 0) {
    throw error(errc::invalid_argument, {"invalid number of bits for this scheme", "geometry",
                                         "a multiple of " + std::to_string(word_bits), std::to_string(g.bits), ""});
  }
}

double go_bits(std::uint64_t capacity, double target_fpr) {
  rates::check_target_fpr(capacity, target_fpr);
  return -static_cast<double>(capacity) * std::log(target_fpr) / (std::log(2.0) * std::log(2.0));
}

geometry ceil_probes_geometry(std::uint64_t capacity, double bits) {
  const double probes = std::ceil(std::log(2.0) * bits / static_cast<double>(capacity));
  if (bits > static_cast<double>(most_go_bits) || probes > max_probes) {
    throw error(errc::too_large, {"too many bits or probes for this scheme", "geometry",
                                  "at most 2^48 bits, 255 probes", "", hint::use_fewer_keys_or_layout});
  }
  return {std::max<std::uint64_t>(1, static_cast<std::uint64_t>(bits)),
          std::max(1u, static_cast<std::uint32_t>(probes))};
}

double independent_rate(const geometry& g, std::uint64_t keys) {
  return static_cast<double>(rates::classic(g.bits, g.probes, keys));
}

double independent_current_fpr(const geometry& g, const scheme_bits& seen) {
  const long double fill = static_cast<long double>(seen.ones) / static_cast<long double>(g.bits);
  return static_cast<double>(std::pow(fill, static_cast<long double>(g.probes)));
}

std::uint64_t keys_of(const geometry& g, const scheme_bits& seen) {
  if (seen.ones == 0) return 0;
  const std::uint64_t clear = g.bits - std::min(seen.ones, g.bits);
  return static_cast<std::uint64_t>(
      std::llround(layouts::classic::keys_from_zeros(g, std::max<std::uint64_t>(clear, 1))));
}

namespace {

// The number of common bits of a key and each kind of other key that has the same progression h1 + i h2 modulo m,
// shifted by some steps in either direction, or reversed. Of m^2 keys, one is of each kind.
std::vector<std::uint32_t> shared_bits(std::uint32_t k, second_bit second) {
  const bool has_step = second == second_bit::step && k > 1;
  const auto steps = static_cast<std::int64_t>(k);
  const auto is_of = [&](std::int64_t i) { return i >= 0 && i < steps && !(has_step && i == 1); };
  std::vector<std::uint32_t> shared;
  for (std::int64_t shift = 1 - steps; shift < steps; ++shift) {
    std::uint32_t same = 0, reversed = 0;
    for (std::int64_t i = 0; i < steps; ++i) {
      same += is_of(i) && is_of(i + shift) ? 1 : 0;
      reversed += is_of(i) && is_of(steps - 1 + shift - i) ? 1 : 0;
    }
    shared.push_back(has_step && same > 0 ? same + 1 : same);  // equal steps are equal second bits
    shared.push_back(reversed);
  }
  return shared;
}

}  // namespace

// The part already counted by the formula for independent bits, where such a key sets exactly one bit or none, is
// subtracted.
double with_double_hashing(long double rate, const geometry& g, std::uint64_t keys, long double share,
                           second_bit second) {
  if (keys == 0) return static_cast<double>(rate);
  const auto m = static_cast<long double>(g.bits);
  const auto n = static_cast<long double>(keys);
  const std::uint32_t k = g.probes;
  const long double fill = -std::expm1(n * k * std::log1p(-1 / m));
  const long double all = std::pow(fill, static_cast<long double>(k));
  long double sum = 0;
  for (const std::uint32_t shared : shared_bits(k, second)) {
    const long double rest = std::pow(fill, static_cast<long double>(k - shared));
    sum += rest - all * (1 + shared * (1 / fill - 1));
  }
  return static_cast<double>(rates::either(rate, std::clamp(share * n / (m * m) * sum, 0.0L, 1.0L)));
}

// A step of order t in the integers modulo m, of which there are phi(t) for each divisor t of m, selects t bits. With
// another step of order u, it selects the least common multiple of t and u.
double with_short_cycles(long double rate, const geometry& g, std::uint64_t keys, long double share,
                         std::uint64_t order, second_bit second) {
  if (keys == 0) return static_cast<double>(rate);
  const auto m = static_cast<long double>(g.bits);
  const long double fill = -std::expm1(static_cast<long double>(keys) * g.probes * std::log1p(-1 / m));
  const long double all = std::pow(fill, static_cast<long double>(g.probes));
  long double sum = 0;
  for (std::uint32_t t = 1; t < g.probes && t <= g.bits; ++t) {
    const std::uint64_t bits = std::lcm(t, order) + (second == second_bit::step ? 1 : 0);
    if (g.bits % t != 0 || bits >= g.probes) continue;
    std::uint32_t steps = 0;
    for (std::uint32_t i = 1; i <= t; ++i) steps += std::gcd(i, t) == 1 ? 1 : 0;
    sum += steps * (std::pow(fill, static_cast<long double>(bits)) - all);
  }
  return static_cast<double>(rates::either(rate, std::clamp(share * sum / m, 0.0L, 1.0L)));
}

double with_progressions(long double rate, const geometry& g, std::uint64_t keys, second_bit second) {
  long double share = 1;
  if (!std::has_single_bit(g.bits)) {
    const long double probes = static_cast<long double>(keys) * g.probes;
    const long double fill = -std::expm1(probes * std::log1p(-1 / static_cast<long double>(g.bits)));
    share = fill * std::min(1.0L, 8.6L / g.probes);
  }
  return with_short_cycles(with_double_hashing(rate, g, keys, share, second), g, keys, share, 1, second);
}

double remainder_rate(const geometry& g, std::uint64_t keys, std::uint64_t hashes) {
  const auto all = static_cast<long double>(hashes);
  const auto bits = static_cast<long double>(g.bits);
  const long double probes = static_cast<long double>(keys) * g.probes;
  // A bit that h of the hashes select is set with probability fill(h).
  const auto fill = [&](long double h) { return -std::expm1(probes * std::log1p(-std::min(h / all, 1.0L))); };
  const long double fewer = std::floor(all / bits);
  const long double favoured = all - fewer * bits;  // bits with one hash more
  const long double met = (favoured * (fewer + 1) * fill(fewer + 1) + (bits - favoured) * fewer * fill(fewer)) / all;
  const long double even = fill(all / bits);
  const long double skew = even > 0 ? std::pow(met / even, static_cast<long double>(g.probes)) : 1;
  return static_cast<double>(std::min(1.0L, rates::classic(g.bits, g.probes, keys) * skew));
}

double remainder_rate_of_32_bits(const geometry& g, std::uint64_t keys) {
  return remainder_rate(g, keys, std::uint64_t{1} << 32);
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
