// blocked: a blocked Bloom filter with k bits per key, anywhere in one cache line of 512 bits.
//
//   line = hi64(hash64 * lines)
//   x = (2 * hash64 + 1) * multiplier  (mod 2^64), which is odd: see probe_sequence.hpp
//   k times:  bit = x >> 55;  x = x * step  (mod 2^64)
//
// k is chosen for the target FPR, so it needs less memory than split_block512 where eight bits per key are too many (2%
// less at 1%, 10% at 5%) or too few (1% less at 0.1%, 7% at 0.01%, 25% at 1e-6), and about the same in between. A
// lookup takes 1.5 times as long.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/layouts/kernel_calls.hpp>
#include <bloomery/layouts/probe_sequence.hpp>

#include <cstdint>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

namespace layouts {

/// Example:
///     const geometry g = layouts::blocked::geometry_for(1'000'000, 0.01);
///     assert(g.probes == 6);
///     assert(g.bits < 9'940'000);  // 9.92 bits per key
class blocked : public kernel_calls<blocked>, public blocked_layout<blocked, 512> {
 public:
  static constexpr std::string_view name = "blocked";
  static constexpr block_rule blocks_by = block_rule::multiply_high;

  /// Maximum number of probes that geometry_for() chooses: more are never useful in 512 bits.
  static constexpr std::uint32_t most_chosen_probes = 32;
};

}  // namespace layouts

}  // namespace bloomery
