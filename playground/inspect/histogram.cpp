#include "playground/inspect/histogram.hpp"

#include <bloomery/layout.hpp>

#include <algorithm>
#include <cmath>

namespace bloomery::playground {
namespace {

constexpr std::uint64_t run_of_cells = 512;
constexpr std::uint64_t most_bins = 520;
constexpr std::uint64_t most_block = 4096;

// The distribution of occupied cells after one more ball into b cells.
void throw_ball(std::vector<double>& chances, double b) {
  for (std::size_t x = chances.size() - 1; x > 0; --x) {
    const auto filled = static_cast<double>(x);
    chances[x] = chances[x] * filled / b + chances[x - 1] * (b - filled + 1) / b;
  }
  chances[0] = 0;
}

// The distribution of the sum of two independent variables.
std::vector<double> sum_of(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> sum(a.size() + b.size() - 1);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] < 1e-18) continue;
    for (std::size_t j = 0; j < b.size(); ++j) sum[i + j] += a[i] * b[j];
  }
  return sum;
}

// A number of keys per block that is exceeded with negligible probability, for this mean.
std::uint64_t most_load(double mean) { return static_cast<std::uint64_t>(mean + 9 * std::sqrt(mean) + 20); }

// The expected number of blocks with j keys (Poisson).
std::vector<double> poisson(double blocks, double mean) {
  std::vector<double> with(most_load(mean) + 1);
  for (std::size_t j = 0; j < with.size(); ++j) {
    const auto n = static_cast<double>(j);
    with[j] = blocks * (mean == 0 ? (j == 0 ? 1.0 : 0.0) : std::exp(n * std::log(mean) - mean - std::lgamma(n + 1)));
  }
  return with;
}

std::vector<double> binomial(std::uint64_t count, double chance) {
  std::vector<double> result(count + 1);
  const auto n = static_cast<double>(count);
  for (std::uint64_t x = 0; x <= count; ++x) {
    const auto i = static_cast<double>(x);
    const double log_ways = std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1);
    const double log_hits = x == 0 ? 0 : i * std::log(chance);
    const double log_misses = x == count ? 0 : (n - i) * std::log1p(-chance);
    result[x] = std::exp(log_ways + log_hits + log_misses);
  }
  return result;
}

// The normal approximation of the set cells among b, if each of a Poisson number of keys sets k of them. Mean and
// variance follow from the probabilities that one cell, or two cells, are not set.
std::vector<double> normal(std::uint64_t b, double mean_keys, double k) {
  const auto cells = static_cast<double>(b);
  const double one_empty = std::exp(mean_keys * std::expm1(k * std::log1p(-1 / cells)));
  const double two_empty = std::exp(mean_keys * std::expm1(k * std::log1p(-2 / cells)));
  const double mean = cells * (1 - one_empty);
  const double variance = cells * one_empty + cells * (cells - 1) * two_empty - cells * cells * one_empty * one_empty;
  std::vector<double> result(b + 1);
  if (!(variance > 0)) {
    result[static_cast<std::size_t>(std::lround(mean))] = 1;
    return result;
  }
  double below = 0;
  for (std::uint64_t x = 0; x <= b; ++x) {
    const double to = x == b ? 1 : std::erfc((mean - static_cast<double>(x) - 0.5) / std::sqrt(2 * variance)) / 2;
    result[x] = to - below;
    below = to;
  }
  return result;
}

// The upper tail probability of chi-square [Wilson & Hilferty 1931].
double tail_of_chi_square(double chi_square, double degrees) {
  const double nine = 2 / (9 * degrees);
  const double deviation = (std::cbrt(chi_square / degrees) - (1 - nine)) / std::sqrt(nine);
  return std::erfc(deviation / std::sqrt(2.0)) / 2;
}

}  // namespace

std::uint64_t block_of_histogram(const cell_view& cells) {
  return cells.block_cells() == 0 ? std::min(run_of_cells, cells.size()) : cells.block_cells();
}

histogram histogram_of(std::uint64_t block_cells) {
  histogram h;
  h.block_cells = block_cells;
  h.cells_of_bin = (h.block_cells + most_bins) / most_bins;
  h.blocks.resize(h.block_cells / h.cells_of_bin + 1);
  return h;
}

void add_block(histogram& h, std::uint64_t ones) {
  ++h.blocks[std::min<std::uint64_t>(ones / h.cells_of_bin, h.blocks.size() - 1)];
}

void expect(histogram& h, const params& p, double keys) {
  std::uint64_t noted = 0;
  for (const std::uint64_t some : h.blocks) noted += some;
  const std::vector<double> by_cell = expected_blocks(p, h.block_cells, noted, keys);
  h.expected.assign(by_cell.empty() ? 0 : h.blocks.size(), 0);
  for (std::size_t x = 0; x < by_cell.size(); ++x) h.expected[x / h.cells_of_bin] += by_cell[x];
}

std::optional<double> evenness(const histogram& h) {
  constexpr double least_expected = 5;
  if (h.expected.empty()) return std::nullopt;
  struct group {
    double expected = 0;
    double found = 0;
  };
  std::vector<group> groups(1);
  double all = 0;
  for (std::size_t i = 0; i < h.blocks.size(); ++i) {
    if (groups.back().expected >= least_expected) groups.emplace_back();
    groups.back().expected += h.expected[i];
    groups.back().found += static_cast<double>(h.blocks[i]);
    all += static_cast<double>(h.blocks[i]);
  }
  if (groups.size() > 1 && groups.back().expected < least_expected) {
    const group rest = groups.back();
    groups.pop_back();
    groups.back().expected += rest.expected;
    groups.back().found += rest.found;
  }
  if (all < 2 * least_expected) return std::nullopt;
  double chance = 1;
  if (groups.size() > 2) {
    double chi_square = 0;
    for (const group& g : groups) chi_square += (g.found - g.expected) * (g.found - g.expected) / g.expected;
    // Two degrees of freedom fewer: the sum is given, and the mean was fitted.
    chance = tail_of_chi_square(std::max(chi_square - h.tolerated * all, 0.0), static_cast<double>(groups.size() - 2));
  }
  double beyond = 0;
  for (std::size_t i = h.blocks.size(); i-- > 0;) {
    beyond += h.expected[i];
    if (h.blocks[i] != 0) break;
  }
  double before = 0;
  for (std::size_t i = 0; i < h.blocks.size(); ++i) {
    before += h.expected[i];
    if (h.blocks[i] != 0) break;
  }
  return std::min(3 * std::min({chance, beyond, before}), 1.0);
}

std::vector<double> expected_blocks(const params& p, std::uint64_t block_cells, std::uint64_t blocks, double keys) {
  if (blocks == 0 || !std::isfinite(keys)) return {};
  const auto all = static_cast<double>(blocks);
  std::vector<double> expected(block_cells + 1);
  if (block_bits_of(p) == 0) {
    const double balls = keys * p.geometry.probes;
    expected = binomial(block_cells, -std::expm1(balls * std::log1p(-1 / static_cast<double>(p.geometry.bits))));
    for (double& chance : expected) chance *= all;
    return expected;
  }
  const double mean = keys / all;
  if (block_cells > most_block) {
    expected = normal(block_cells, mean, p.geometry.probes);
    for (double& chance : expected) chance *= all;
    return expected;
  }
  if (!can_be_expected(p, block_cells, mean)) return {};
  return blocks_of_loads(p, block_cells, poisson(all, mean));
}

bool can_be_expected(const params& p, std::uint64_t block_cells, double mean) {
  return mean * p.geometry.probes <= 20 * static_cast<double>(block_cells);
}

void add_loads(std::vector<double>& with, std::uint64_t blocks, double keys) {
  const auto all = static_cast<double>(blocks);
  const double n = std::max(std::round(keys), 0.0);
  const double log_chance = -std::log(all);
  const double log_other = blocks == 1 ? 0 : std::log1p(-1 / all);
  const double log_ways = std::lgamma(n + 1);
  const std::uint64_t most = std::min(most_load(n / all), static_cast<std::uint64_t>(n));
  if (with.size() <= most) with.resize(most + 1);
  for (std::uint64_t j = blocks == 1 ? most : 0; j <= most; ++j) {
    const auto here = static_cast<double>(j);
    const double log_of = log_ways - std::lgamma(here + 1) - std::lgamma(n - here + 1);
    with[j] += all * std::exp(log_of + here * log_chance + (n - here) * log_other);
  }
}

std::vector<double> blocks_of_loads(const params& p, std::uint64_t block_cells, const std::vector<double>& with) {
  const auto b = static_cast<double>(block_cells);
  const layout_facts* facts = find_layout_facts(p.layout);
  const bool by_lanes = facts != nullptr && facts->lanes != 0;
  const std::uint64_t words = by_lanes ? facts->lanes : 1;
  const std::uint64_t balls_of_key = by_lanes ? 1 : p.geometry.probes;
  std::vector<double> expected(block_cells + 1);
  std::vector<double> lane(block_cells / words + 1);
  lane[0] = 1;
  for (std::size_t j = 0; j < with.size(); ++j) {
    for (std::uint64_t i = 0; j > 0 && i < balls_of_key; ++i) throw_ball(lane, b / static_cast<double>(words));
    if (with[j] < 1e-15) continue;
    std::vector<double> block = lane;
    for (std::uint64_t doubled = 1; doubled < words; doubled *= 2) block = sum_of(block, block);  // there are 8 words
    for (std::size_t x = 0; x < block.size(); ++x) expected[x] += with[j] * block[x];
  }
  return expected;
}

}  // namespace bloomery::playground
