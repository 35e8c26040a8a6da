// Blocked layouts with k independent probes in blocks of b bits: the common code of blocked, blocked_page and counting.
#pragma once

#include <bloomery/detail/geometry.hpp>

#include <cstdint>

namespace bloomery::free_probes {

/// The constants of such a layout.
struct family {
  const char* name;
  std::uint32_t block_bits;
  std::uint64_t max_blocks;
  std::uint32_t most_chosen_probes;
};

geometry geometry_for(const family& f, std::uint64_t capacity, double target_fpr);
void check(const family& f, const geometry& g);
double expected_fpr(const family& f, const geometry& g, std::uint64_t keys);
double keys_from_zeros(const family& f, const geometry& g, std::uint64_t zeros);

}  // namespace bloomery::free_probes
