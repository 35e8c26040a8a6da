// Cell scans: one pass over the bytes of a filter that counts the used cells and computes the exact current FPR. The
// bytes may come in slices.
#pragma once

#include <bloomery/detail/geometry.hpp>

#include "layouts/row.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace bloomery {

/// Specialized by each layout: static cell_scan_result scan(geometry, slice, counters).
template <class L>
struct cell_scan;

/// Number of set bits of a slice of a filter of `bits` bits; ignores unused bits of the last byte, which may be set in
/// an untrusted file.
/// @param from_top  the bits of a byte are counted from the top
std::uint64_t used_ones(std::uint64_t bits, const byte_slice& slice, bool from_top);

/// The scan for split_block. The 2^32 values of the upper 32 bits are not a multiple of B blocks: 2^32 mod B blocks are
/// selected by one value more than the others. Above `even_blocks` blocks each block has its own weight. (Without
/// weights, the relative error at 2^25 blocks is at most 3e-4.)
cell_scan_result cells_of_split_block(const geometry& g, const byte_slice& slice, const block_counters& counters,
                                      std::uint64_t even_blocks);

namespace cell_scans {

inline constexpr std::size_t batch = 512;  // blocks counted together: their results fit into the first-level cache

inline long double power(long double x, std::uint32_t k) {
  long double result = 1;
  for (; k > 0; k >>= 1, x *= x) {
    if ((k & 1) != 0) result *= x;
  }
  return result;
}

/// (x/b)^k for x = 0 .. b: the FPR of a block of b cells, x of which are used.
template <std::uint32_t CellsOfBlock>
std::array<double, CellsOfBlock + 1> powers_of_fill(std::uint32_t probes) {
  std::array<double, CellsOfBlock + 1> hit;
  for (std::uint32_t x = 0; x < hit.size(); ++x) {
    hit[x] = static_cast<double>(power(static_cast<long double>(x) / CellsOfBlock, probes));
  }
  return hit;
}

// Calls sum(results, count) for the results of `kernel` on all blocks, batch by batch; returns the number of ones.
template <class Sum>
std::uint64_t each_block(std::uint64_t (*kernel)(const std::uint8_t*, std::size_t, std::uint64_t*),
                         std::uint64_t block_bytes, std::span<const std::uint8_t> bytes, Sum sum) {
  std::array<std::uint64_t, batch> results;
  const std::uint64_t blocks = bytes.size() / block_bytes;
  std::uint64_t ones = 0;
  for (std::uint64_t first = 0; first < blocks; first += batch) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(batch, blocks - first));
    ones += kernel(bytes.data() + first * block_bytes, count, results.data());
    sum(results.data(), count);
  }
  return ones;
}

// An exact sum of products below 2^49, added in batches of 512.
struct exact_sum {
  long double total = 0;
  void operator()(const std::uint64_t* products, std::size_t count) {
    std::uint64_t part = 0;
    for (std::size_t i = 0; i < count; ++i) part += products[i];
    total += static_cast<long double>(part);
  }
};

template <class L>
long double per_block(long double sum, std::uint64_t blocks) {
  return sum / static_cast<long double>(blocks) / power(L::lane_bits, L::lanes);
}

/// The slice's part of the mean over blocks of the probability (x/b)^k, where x of the b bits of a block are set.
template <class L>
long double mean_of_powers(const geometry& g, std::span<const std::uint8_t> bytes,
                           std::uint64_t (*ones)(const std::uint8_t*, std::size_t), std::uint64_t& used) {
  constexpr std::uint64_t block_bytes = L::block_bits / 8;
  long double sum = 0;
  for (std::uint64_t at = 0; at < bytes.size(); at += block_bytes) {
    const std::uint64_t here = ones(bytes.data() + at, block_bytes);
    used += here;
    sum += power(static_cast<long double>(here) / L::block_bits, g.probes);
  }
  return sum / static_cast<long double>(g.bits / L::block_bits);
}

}  // namespace cell_scans
}  // namespace bloomery
