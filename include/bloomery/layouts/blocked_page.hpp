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

class blocked_page : public layout_base<blocked_page> {
 public:
  static constexpr std::string_view name = "blocked_page";
  static constexpr std::uint32_t block_bits = 8 * 4096;
  static constexpr block_rule blocks_by = block_rule::multiply_high;
  static constexpr std::uint64_t max_blocks = std::uint64_t{1} << 40;
  static constexpr std::uint64_t multiplier = probe_sequence::multiplier;
  static constexpr std::uint64_t step = probe_sequence::step;

  /// Maximum number of probes that geometry_for() chooses.
  static constexpr std::uint32_t most_chosen_probes = 64;

  /// The page of a key: hi64(hash64 * pages), below `pages`.
  static constexpr std::uint64_t block_of(std::uint64_t hash64, std::uint64_t blocks) noexcept {
    return multiply_high(hash64, blocks);
  }

  /// The k cells of a key.
  class cells {
   public:
    constexpr cells(const geometry& g, key_hash hash) noexcept
        : base_(block_of(hash.hash64, g.bits / block_bits) * block_bits),
          x_(probe_sequence::first(hash.hash64)),
          count_(g.probes) {}
    constexpr std::uint32_t count() const noexcept { return count_; }
    constexpr std::uint64_t next() noexcept {
      const std::uint64_t cell = base_ + (x_ >> 49);
      x_ *= step;
      return cell;
    }

   private:
    std::uint64_t base_;
    std::uint64_t x_;
    std::uint32_t count_;
  };

  /// Example:
  ///     const geometry g = layouts::blocked_page::geometry_for(1'000'000, 0.0001);
  ///     assert(g.bits < 19'300'000);  // 19.23 bits per key; classic needs 19.17
  static geometry geometry_for(std::uint64_t capacity, double target_fpr);
  static void check(const geometry& g);

  /// r(i) = classic(32768, k, i), as in blocked.
  static double expected_fpr(const geometry& g, std::uint64_t keys);

  /// q = 1 - (1 - 1/32768)^k
  static double keys_from_zeros(const geometry& g, std::uint64_t zeros);
};

}  // namespace layouts

}  // namespace bloomery
