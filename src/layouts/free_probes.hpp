// What blocked and blocked_page share: blocks of b bits in which a key has k independent bits. Only b differs.
#pragma once

#include <bloomery/geometry.hpp>

#include <cstdint>

namespace bloomery::free_probes {

/// What a layout of this family is.
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
