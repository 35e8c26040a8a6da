// How far one filter's own rate may be from the mean over all filters: by the luck of its fill.
//
// n keys, m bits, k probes.
#pragma once

#include <bloomery/detail/geometry.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/classic.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace bloomery_tests {

/// Relative variance of one classic filter's own rate: that of its set bits [linear counting], times k^2.
inline double fill_variance(const bloomery::geometry& g, double n) {
  const auto m = static_cast<double>(g.bits);
  const double load = n * g.probes / m;
  const double fill = 1 - std::exp(-load);
  const double relative = (std::exp(-load) - (1 + load) * std::exp(-2 * load)) / (m * fill * fill);
  return g.probes * g.probes * relative;
}

/// The same for blocks, by the number i of keys that fell into one (Poisson): its rate is mean_of(i) on average and its
/// square square_of(i). There are n keys in all: what a block has more, others have less, so that only what is not
/// proportional to i varies.
template <class Mean, class Square>
double block_variance(double blocks, double n, Mean mean_of, Square square_of) {
  const double load = n / blocks;
  const double reach = 12 * std::sqrt(load) + 40;
  double mean = 0, square = 0, covariance = 0;
  for (double i = std::max(0.0, std::floor(load - reach)); i < load + reach; ++i) {
    const double weight = std::exp(i * std::log(load) - load - std::lgamma(i + 1));
    mean += weight * mean_of(i);
    square += weight * square_of(i);
    covariance += weight * mean_of(i) * (i - load);
  }
  return ((square - covariance * covariance / load) / (mean * mean) - 1) / blocks;
}

/// Relative variance of the rate of one filter of this layout around the mean of all.
template <class Layout>
double variance_of_rate(const bloomery::geometry& g, double n) {
  if constexpr (std::is_same_v<Layout, bloomery::layouts::classic>) {
    return fill_variance(g, n);
  } else if constexpr (requires { Layout::lane_bits; }) {
    // The words of a block fill independently. Of two bits of one, the same or not, i keys have set both with:
    const double w = Layout::lane_bits;
    const double k = g.probes;
    const auto mean = [&](double i) { return std::pow(1 - std::pow(1 - 1 / w, i), k); };
    const auto square = [&](double i) {
      const double one_clear = std::pow(1 - 1 / w, i);
      const double both_clear = one_clear / w + (1 - 1 / w) * std::pow(1 - 2 / w, i);
      return std::pow(std::max(0.0, 1 - 2 * one_clear + both_clear), k);
    };
    return block_variance(static_cast<double>(g.bits) / Layout::block_bits, n, mean, square);
  } else {
    const double b = 1.0 * Layout::block_bits / bloomery::cell_bits_in<Layout>();
    const double k = g.probes;
    const auto mean = [&](double i) { return std::pow(1 - std::pow(1 - 1 / b, k * i), k); };
    const auto square = [&](double i) {
      // Blocks with equally many keys still differ, as classic filters do.
      return i == 0 ? 0 : mean(i) * mean(i) * (1 + fill_variance({static_cast<std::uint64_t>(b), g.probes}, i));
    };
    return block_variance(static_cast<double>(g.bits) / Layout::block_bits, n, mean, square);
  }
}

}  // namespace bloomery_tests
