// Histograms of the cells set per block, beside the exact expectation: chosen keys fill blocks unevenly.
#pragma once

#include <bloomery/cells.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace bloomery::playground {

struct histogram {
  std::uint64_t block_cells = 0;  ///< cells per block; 512 for filters without blocks
  /// Bin i has the blocks with i * cells_of_bin to (i + 1) * cells_of_bin - 1 cells set.
  std::uint64_t cells_of_bin = 1;
  std::vector<std::uint64_t> blocks = {};
  std::vector<double> expected = {};  ///< blocks per bin, for the number of distinct keys; empty: unknown
  double tolerated = 0;  ///< tolerated chi-square per block: caused by concurrent writers, not by chosen keys
};

/// The tolerated chi-square per block of filters that are read during inserts, or in which older layers reported some
/// of a layer's keys as present. It is invisible in a histogram, but significant for a million blocks.
inline constexpr double tolerated_while_written = 0.002;

/// The cells per block in a histogram of this filter.
std::uint64_t block_of_histogram(const cell_view& cells);

/// An empty histogram for blocks of this many cells, with a bin for every possible count.
histogram histogram_of(std::uint64_t block_cells);

/// The same for a filter's blocks.
inline histogram histogram_for(const cell_view& cells) { return histogram_of(block_of_histogram(cells)); }

/// Adds a block with this many cells set.
void add_block(histogram& h, std::uint64_t ones);

/// Sets the expected number of blocks per bin, if expected_blocks() has a result.
void expect(histogram& h, const params& p, double keys);

/// The p-value of the histogram for random keys: the probability of blocks at least as uneven. The minimum of three
/// tests, times three (Bonferroni): Pearson's chi-square over bins merged until each has at least five expected blocks,
/// less the tolerated part, by the approximation of Wilson and Hilferty; a block as full as the fullest; one as empty
/// as the emptiest.
/// @return  0 to 1; nothing: no expectation, or too few blocks
std::optional<double> evenness(const histogram& h);

/// A smaller p-value means chosen keys: one in a million filters of random keys is as uneven.
inline constexpr double least_chance = 1e-6;

/// The expected number of blocks, out of `blocks`, with i cells set, i = 0 .. block_cells, for `keys` distinct keys.
///
/// The keys of a block are a Poisson variable of mean keys / blocks. If each of j keys sets k of b cells, the
/// probability of x set cells is that of j k balls in x different cells, which follows from j k - 1 balls:
///
///   P(x) = P'(x) x / b + P'(x - 1) (b - x + 1) / b
///
/// If a key sets one cell in each of l words of b / l cells, the distribution is the l-fold sum of that with j balls.
/// Without blocks, cells are independent: binomial. For blocks of more than 4096 cells the sum takes too long, and the
/// normal distribution of the same mean and variance replaces it.
///
/// @param p     parameters of a filter whose cells are bits or counters
/// @param keys  distinct keys, also as estimated from the bits
/// @return  nothing without blocks, and for nearly full filters
std::vector<double> expected_blocks(const params& p, std::uint64_t block_cells, std::uint64_t blocks, double keys);

/// Whether expected_blocks() has a result for this mean number of keys per block: not for nearly full blocks.
bool can_be_expected(const params& p, std::uint64_t block_cells, double mean);

/// Adds to with[j] the expected number of blocks with j keys, if exactly `keys` keys are distributed among `blocks`
/// blocks (binomial, not Poisson: the difference matters for few blocks).
void add_loads(std::vector<double>& with, std::uint64_t blocks, double keys);

/// The expected number of blocks with i cells set, i = 0 .. block_cells, if with[j] blocks have j keys. Not for
/// classic.
std::vector<double> blocks_of_loads(const params& p, std::uint64_t block_cells, const std::vector<double>& with);

}  // namespace bloomery::playground
