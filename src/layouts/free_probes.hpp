// Sizes of blocked layouts with k independent probes in blocks of b cells: blocked, blocked_page, counting, sliding and
// sliding64.
#pragma once

#include <bloomery/detail/function_ref.hpp>

#include "math/rates.hpp"

#include <cstdint>
#include <optional>

namespace bloomery::free_probes {

/// The constants of such a layout.
struct family {
  const char* name;
  std::uint32_t cells_of_block;
  std::uint64_t max_blocks;
  std::uint32_t most_chosen_probes;
};

struct size {
  std::uint64_t blocks;
  std::uint32_t probes;
};

/// The assumption for the first guess of a size: a filter with `keys` keys, equally distributed over all blocks, has
/// this FPR.
struct even_load {
  std::uint64_t keys;
  double rate;
};

/// The fewest blocks whose FPR is at most target_fpr, and the number of probes that makes this possible.
/// @param rate  the FPR of `blocks` blocks with `capacity` keys
/// @throws error too_large: no number of probes keeps the target FPR
size fewest_blocks(const family& f, std::uint64_t capacity, double target_fpr, even_load even,
                   function_ref<double(rates::block_rates& in_block, std::uint64_t blocks)> rate);

/// The rates of a block of b cells for k probes. Cached: integrating a rate over the keys (estimate_distinct,
/// expected_losses) needs the same ones a hundred times, and those of a page take a tenth of a millisecond.
template <std::uint32_t CellsOfBlock>
rates::block_rates& rates_in_block(std::uint32_t probes) {
  thread_local std::optional<rates::block_rates> last;
  if (!last || last->probes() != probes) last.emplace(CellsOfBlock, probes);
  return *last;
}

}  // namespace bloomery::free_probes
