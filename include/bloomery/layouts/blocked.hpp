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
#include <bloomery/layout.hpp>
#include <bloomery/layouts/kernel_calls.hpp>
#include <bloomery/layouts/probe_sequence.hpp>

#include <cstdint>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

namespace layouts {
class blocked;
}
template <>
bool kernel_calls<layouts::blocked>::insert_into(std::uint8_t* block, std::uint64_t hash64,
                                                 std::uint32_t probes) noexcept;
template <>
bool kernel_calls<layouts::blocked>::has_in(const std::uint8_t* block, std::uint64_t hash64,
                                            std::uint32_t probes) noexcept;

namespace layouts {

class blocked : public kernel_calls<blocked> {
 public:
  static constexpr std::string_view name = "blocked";
  static constexpr std::uint32_t block_bits = 512;
  static constexpr block_rule blocks_by = block_rule::multiply_high;
  static constexpr std::uint64_t max_blocks = std::uint64_t{1} << 40;
  static constexpr std::uint64_t multiplier = probe_sequence::multiplier;
  static constexpr std::uint64_t step = probe_sequence::step;

  /// Maximum number of probes that geometry_for() chooses: more are never useful in 512 bits.
  static constexpr std::uint32_t most_chosen_probes = 32;

  /// The block of a key, one cache line: hi64(hash64 * lines), below `lines`.
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
      const std::uint64_t cell = base_ + (x_ >> 55);
      x_ *= step;
      return cell;
    }

   private:
    std::uint64_t base_;
    std::uint64_t x_;
    std::uint32_t count_;
  };

  /// Example:
  ///     const geometry g = layouts::blocked::geometry_for(1'000'000, 0.01);
  ///     assert(g.probes == 6);
  ///     assert(g.bits < 9'940'000);  // 9.92 bits per key
  static geometry geometry_for(std::uint64_t capacity, double target_fpr);
  static void check(const geometry& g);

  /// r(i) = classic(512, k, i), the exact FPR of i keys with k independent probes each in 512 bits.
  static double expected_fpr(const geometry& g, std::uint64_t keys);

  /// q = 1 - (1 - 1/512)^k
  static double keys_from_zeros(const geometry& g, std::uint64_t zeros);
};

}  // namespace layouts

}  // namespace bloomery
