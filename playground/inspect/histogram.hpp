// Histograms of the cells set per block, beside the exact expectation: chosen keys fill blocks unevenly.
#pragma once

#include <bloomery/cells.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace bloomery::playground {

struct histogram {
  std::uint64_t block_cells = 0;  ///< cells of a block; where there are none, runs of 512
  /// Blocks with i * cells_of_bin to (i + 1) * cells_of_bin - 1 cells set are in bin i.
  std::uint64_t cells_of_bin = 1;
  std::vector<std::uint64_t> blocks = {};
  std::vector<double> expected = {};  ///< of each bin, at the number of distinct keys; empty: unknown
  double unseen = 0;                  ///< chi-square per block that comes from writers and not from chosen keys
};

/// What is unseen where others insert while blocks are read, or where older layers seemed to have some of a layer's
/// keys. It is less than anybody sees in a picture, and beyond chance where there are a million blocks.
inline constexpr double of_live_filters = 0.002;

/// Cells of the blocks that a histogram of such a filter counts.
std::uint64_t block_of_histogram(const cell_view& cells);

/// An empty histogram for blocks of this many cells, with a bin for every possible count.
histogram histogram_of(std::uint64_t block_cells);

/// The same for a filter's blocks.
inline histogram histogram_for(const cell_view& cells) { return histogram_of(block_of_histogram(cells)); }

/// Adds a block with this many cells set.
void add_block(histogram& h, std::uint64_t ones);

/// Sets what is expected of the blocks that were noted. Nothing, where expected_blocks() knows nothing.
void expect(histogram& h, const params& p, double keys);

/// How likely random keys fill blocks so unevenly, or more: Pearson's chi-square over bins that were put
/// together until each lets expect five blocks, less what is unseen, by the approximation of Wilson and Hilferty; or,
/// if that is less, that any block is as full as the fullest, or as empty as the emptiest. The least of the three,
/// three times: one of them is more often small than each.
/// @return  0 to 1; nothing: nothing is expected, or there are too few blocks to tell
std::optional<double> evenness(const histogram& h);

/// Below this the keys were chosen: one of a million filters of random keys looks like that.
inline constexpr double least_chance = 1e-6;

/// How many of `blocks` blocks have i cells set, i = 0 .. block_cells, once `keys` distinct keys are in.
///
/// A block takes keys as a Poisson variable of mean keys / blocks. With j keys, each of which sets k of b cells
/// anywhere, it has x set with the probability of x different ones among j k balls, which follows from j k - 1 by
///
///   P(x) = P'(x) x / b + P'(x - 1) (b - x + 1) / b
///
/// and where each of l lanes of b / l cells has one ball of a key, from the l-fold sum of that with j balls. Where
/// there are no blocks, cells are set independently of each other: binomial. Blocks of more than 4096 cells, for which
/// the sum takes too long, have the normal distribution of the same mean and variance.
///
/// @param p     of a filter whose cells are bits or counters
/// @param keys  distinct keys, also as estimated from the bits
/// @return  nothing without blocks, and for filters that are as good as full
std::vector<double> expected_blocks(const params& p, std::uint64_t block_cells, std::uint64_t blocks, double keys);

/// Whether that is known of blocks with so many keys in the mean: not of those that are as good as full.
bool can_be_expected(const params& p, std::uint64_t block_cells, double mean);

/// Adds how many of `blocks` blocks have j keys, with[j], where `keys` keys fell on them, so many and no others:
/// binomial. A few blocks differ less from each other than those of a filter that has them by the thousand.
void add_loads(std::vector<double>& with, std::uint64_t blocks, double keys);

/// How many blocks have i cells set, i = 0 .. block_cells, if with[j] blocks have j keys. Not for classic.
std::vector<double> blocks_of_loads(const params& p, std::uint64_t block_cells, const std::vector<double>& with);

}  // namespace bloomery::playground
