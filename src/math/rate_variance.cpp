// The relative variance of an FPR: n keys, B blocks of b bits in words of w bits, k probes; X set bits, R the FPR, i
// keys in a block.
#include "math/rate_variance.hpp"

#include <algorithm>
#include <cmath>

namespace bloomery {
namespace {

// One block: R = (X/b)^k, so the relative deviation of R is k times that of X.
double variance_in_block(const occupancy& o, double n) {
  const estimate ones = ones_of_keys(o, n);
  if (!(ones.value > 0)) return 0;
  const double relative = o.probes * ones.sigma / ones.value;
  return relative * relative;
}

// Many blocks, whose numbers of keys i are approximately independent and Poisson-distributed. R is the mean over the
// blocks of mean_of(i), and its square that of square_of(i). Because the total number of keys is n, keys in one block
// are missing in others, so only the part that is not proportional to i contributes to the variance.
template <class Mean, class Square>
double variance_of_blocks(double blocks, double n, Mean mean_of, Square square_of) {
  const double load = n / blocks;
  const double reach = 12 * std::sqrt(load) + 40;
  double mean = 0, square = 0, covariance = 0;
  for (double i = std::max(0.0, std::floor(load - reach)); i < load + reach; ++i) {
    const double weight = std::exp(i * std::log(load) - load - std::lgamma(i + 1));
    const double rate = mean_of(i);
    mean += weight * rate;
    square += weight * square_of(i, rate);
    covariance += weight * rate * (i - load);
  }
  if (!(mean > 0)) return 0;
  return std::max(((square - covariance * covariance / load) / (mean * mean) - 1) / blocks, 0.0);
}

}  // namespace

double relative_variance_of_rate(const occupancy& o, double n) {
  if (!(n > 0)) return 0;
  const auto blocks = static_cast<double>(o.blocks);
  const double k = o.probes;
  if (o.word_bits != 0) {
    // The words of a block fill independently. The probabilities that i keys have set two bits of one word (equal or
    // different):
    const double w = o.word_bits;
    const auto mean = [&](double i) { return std::pow(1 - std::pow(1 - 1 / w, i), k); };
    const auto square = [&](double i, double) {
      const double one_clear = std::pow(1 - 1 / w, i);
      const double both_clear = one_clear / w + (1 - 1 / w) * std::pow(1 - 2 / w, i);
      return std::pow(std::max(0.0, 1 - 2 * one_clear + both_clear), k);
    };
    if (o.blocks > 1) return variance_of_blocks(blocks, n, mean, square);
    const double rate = mean(n);
    return rate > 0 ? std::max(square(n, rate) / (rate * rate) - 1, 0.0) : 0;
  }
  if (o.blocks == 1) return variance_in_block(o, n);
  const auto b = static_cast<double>(o.block_bits);
  const occupancy one_block{1, o.block_bits, 0, o.probes};
  const auto mean = [&](double i) { return std::pow(1 - std::pow(1 - 1 / b, k * i), k); };
  // Blocks with the same number of keys still differ, as classic filters do.
  const auto square = [&](double i, double rate) { return rate * rate * (1 + variance_in_block(one_block, i)); };
  return variance_of_blocks(blocks, n, mean, square);
}

}  // namespace bloomery
