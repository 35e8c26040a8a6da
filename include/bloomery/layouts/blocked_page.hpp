// blocked_page: a blocked Bloom filter with k bits per key, anywhere in one page of 4096 bytes.
//
//   page = hi64(hash64 * pages)
//   x = (2 * hash64 + 1) * multiplier  (mod 2^64), which is odd: see probe_sequence.hpp
//   k times:  bit = x >> 49;  x = x * step  (mod 2^64)
//
// It takes little more memory than classic (0.1% more at 1%, 0.6% at 1e-6), but a key touches a single page: one page
// fault in a mapped file, one read from cold storage, one TLB entry.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/probe_sequence.hpp>

#include <cstdint>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

namespace layouts {

/// Example:
///     const geometry g = layouts::blocked_page::geometry_for(1'000'000, 0.0001);
///     assert(g.bits < 19'300'000);  // 19.23 bits per key; classic needs 19.17
class blocked_page : public layout_base<blocked_page>, public blocked_layout<blocked_page, 8 * 4096> {
 public:
  static constexpr std::string_view name = "blocked_page";
  static constexpr block_rule blocks_by = block_rule::multiply_high;

  /// Maximum number of probes that geometry_for() chooses.
  static constexpr std::uint32_t most_chosen_probes = 64;
};

}  // namespace layouts

}  // namespace bloomery
