// split_block: a split block Bloom filter with blocks of 256 bits. A key sets one bit in each of eight 32-bit words.
//
//   hash64:  | high 32 bits: which block      | low 32 bits x: which bit of each word |
//
//   block = ((hash64 >> 32) * blocks) >> 32
//   word j of the block gets bit  (x * salt[j] mod 2^32) >> 27          j = 0 .. 7
//
// Salts and block rule are those of Apache Parquet. A key touches one cache line. It takes 10.5 bits per key at 1%.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/kernel_calls.hpp>

#include <cstdint>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

namespace layouts {

class split_block : public kernel_calls<split_block> {
 public:
  static constexpr std::string_view name = "split_block";
  static constexpr std::uint32_t block_bits = 256;
  static constexpr std::uint32_t hash_bits = 64;
  static constexpr std::uint32_t lanes = 8;
  static constexpr std::uint32_t lane_bits = 32;
  static constexpr block_rule blocks_by = block_rule::upper_half;
  static constexpr std::uint64_t max_blocks = std::uint64_t{1} << 32;
  static constexpr std::uint32_t salt[lanes] = {0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D,
                                                0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31};

  /// The block of a key: ((hash64 >> 32) * blocks) >> 32, below `blocks`, for at most 2^32 blocks.
  static constexpr std::uint64_t block_of(std::uint64_t hash64, std::uint64_t blocks) noexcept {
    return ((hash64 >> 32) * blocks) >> 32;
  }

  /// The eight cells of a key.
  class cells {
   public:
    constexpr cells(const geometry& g, key_hash hash) noexcept
        : base_(block_of(hash.hash64, g.bits / block_bits) * block_bits), x_(static_cast<std::uint32_t>(hash.hash64)) {}
    static constexpr std::uint32_t count() noexcept { return lanes; }
    constexpr std::uint64_t next() noexcept {
      const std::uint32_t bit = (x_ * salt[lane_]) >> 27;
      return base_ + lane_++ * lane_bits + bit;
    }

   private:
    std::uint64_t base_;
    std::uint32_t x_;
    std::uint32_t lane_ = 0;
  };

  /// Parquet's rule -8n / ln(1 - p^(1/8)) assumes that all blocks fill alike; its FPR is 1.46% for p = 1%.
  ///
  /// Example:
  ///     const geometry g = layouts::split_block::geometry_for(1'000'000, 0.01);
  ///     assert(layouts::split_block::expected_fpr(g, 1'000'000) <= 0.01);
  ///     assert(g.bits < 10'540'000);  // 10.53 bits per key
  static geometry geometry_for(std::uint64_t capacity, double target_fpr);
  static void check(const geometry& g);

  /// r(i) = (1 - (31/32)^i)^8, and c = 1 / (B * 2^32), the probability that another key has the same block and the same
  /// x. Since B need not divide 2^32, the probability of a block is not 1/B but q/2^32 or (q+1)/2^32 with
  /// q = floor(2^32 / B): the result is the mean over both kinds of blocks, weighted by their probability.
  static double expected_fpr(const geometry& g, std::uint64_t keys);

  /// q / B = 8 / m
  static double keys_from_zeros(const geometry& g, std::uint64_t zeros);
};

}  // namespace layouts

}  // namespace bloomery
