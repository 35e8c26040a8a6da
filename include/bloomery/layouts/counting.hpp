// counting: counters of 4 bits instead of bits, so that keys can be removed. All counters of a key are in one cache
// line, which has 128 of them.
//
//   line = hi64(hash64 * lines)
//   x = (2 * hash64 + 1) * multiplier  (mod 2^64), which is odd: see probe_sequence.hpp
//   k times:  cell = 128 * line + (x >> 57);  x = x * step  (mod 2^64)
//
//   cell c is half of byte c >> 1, the lower half first:
//
//     byte   |      0      |      1      |  ...  |      63       |  one line
//     bits   | 7654   3210 | 7654   3210 |       | 7654     3210 |
//     cell   |    1      0 |    3      2 |       |  127      126 |
//
// A key's cells are a set: where two of its probes meet, the counter goes up by one. So a counter is the number of
// copies of keys that have this cell. One that reaches 15 is full and stays so for good: nobody knows how many copies
// it stands for, and lowering it could make others vanish. What remains of full counters is false positives.
#pragma once

#include <bloomery/export.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/probe_sequence.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

namespace layouts {

/// A layout from which keys can be removed, for 4.1 times the memory of blocked at 5 %, 4.4 times at 1 %, 5.6 times at
/// 0.01 %: lines have fewer cells, and so fill less evenly. Its geometry's bits are those of the memory, four for each
/// counter.
///
/// Only what was inserted may be removed: see filter::remove().
class counting {
 public:
  static constexpr std::string_view name = "counting";
  static constexpr std::uint32_t cell_bits = 4;
  static constexpr std::uint32_t block_bits = 512;
  static constexpr std::uint32_t cells_of_line = block_bits / cell_bits;
  static constexpr std::uint64_t max_blocks = std::uint64_t{1} << 40;
  static constexpr std::uint64_t multiplier = probe_sequence::multiplier;
  static constexpr std::uint64_t step = probe_sequence::step;

  /// A counter that has reached this stays there.
  static constexpr std::uint32_t full = 15;

  /// The most probes that geometry_for() chooses.
  static constexpr std::uint32_t most_chosen_probes = 32;

  /// The line of a key: hi64(hash64 * lines), below `lines`.
  static constexpr std::uint64_t block_of(std::uint64_t hash64, std::uint64_t blocks) noexcept {
    return multiply_high(hash64, blocks);
  }

  /// The k cells of a key, numbers of counters; two of them may be equal.
  class cells {
   public:
    constexpr cells(const geometry& g, key_hash hash) noexcept
        : base_(block_of(hash.hash64, g.bits / block_bits) * cells_of_line),
          x_(probe_sequence::first(hash.hash64)),
          count_(g.probes) {}
    constexpr std::uint32_t count() const noexcept { return count_; }
    constexpr std::uint64_t next() noexcept {
      const std::uint64_t cell = base_ + (x_ >> 57);
      x_ *= step;
      return cell;
    }

   private:
    std::uint64_t base_;
    std::uint64_t x_;
    std::uint32_t count_;
  };

  /// The fewest lines, with the number of probes that allows them, whose exact rate at n distinct keys is at most p.
  ///
  /// @param capacity             n, keys, at least 1
  /// @param target_fpr  p, a probability in (0, 1)
  /// @throws error  invalid_argument: n is 0, p is outside (0, 1) or NaN;
  ///                too_large: more than 2^40 lines (64 TiB) are needed
  ///
  /// Example:
  ///     const geometry g = layouts::counting::geometry_for(1'000'000, 0.01);
  ///     assert(g.probes == 6);
  ///     assert(g.bits < 43'400'000);  // 43.39 bits a key, which are 10.85 counters
  static geometry geometry_for(std::uint64_t capacity, double target_fpr);

  /// geometry_for(n, p).bits
  static std::uint64_t bits_for(std::uint64_t capacity, double target_fpr) {
    return geometry_for(capacity, target_fpr).bits;
  }

  /// @throws error invalid_argument: bits is 0 or no multiple of 512, probes is outside 1 .. 255; too_large
  static void check(const geometry& g);

  /// Exact rate at n distinct keys in B lines: blocked's, with 128 cells a line.
  ///
  ///   f = sum over i of Binomial(i; n, 1/B) * classic(128, k, i),    result 1 - (1 - f) * (1 - 2^-64)^n
  ///
  /// Copies of a key count once. Counters that are full raise it as if their keys were still there.
  static double expected_fpr(const geometry& g, std::uint64_t keys);

  /// n = ln(z / c) / ln(1 - q / B), q = 1 - (1 - 1/128)^k, for z counters at 0 of all c in B lines; infinity for z = 0.
  static double keys_from_zeros(const geometry& g, std::uint64_t zeros);

  /// One copy more; true: the key is certainly new.
  static bool insert_one(std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept;
  static bool has_one(const std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept;

  /// One copy less, unless one of the counters is 0: then nothing is changed.
  static removal remove_one(std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept;

  /// The same for keys one after another; is_new and results may be null. Returns how many were new, or removed.
  static std::uint64_t insert_batch(std::uint8_t* bytes, const geometry& g, const hash_span& keys,
                                    std::uint8_t* is_new) noexcept;
  static void has_batch(const std::uint8_t* bytes, const geometry& g, const hash_span& keys,
                        std::uint64_t* bitmap) noexcept;
  static std::uint64_t remove_batch(std::uint8_t* bytes, const geometry& g, const hash_span& keys,
                                    removal* results) noexcept;

  /// The counter of a cell, 0 to 15.
  static std::uint32_t counter(const std::uint8_t* bytes, std::uint64_t cell) noexcept {
    return bytes[cell >> 1] >> 4 * (cell & 1) & 15u;
  }

  /// Counters that are not 0.
  static std::uint64_t cells_used(std::span<const std::uint8_t> bytes) noexcept;

  /// Counters that are full.
  static std::uint64_t cells_full(std::span<const std::uint8_t> bytes) noexcept;

  /// Copies of keys that most likely made these counters: their sum, divided by the mean number of distinct cells of a
  /// key, c (1 - (1 - 1/c)^k) for c = 128. Copies beyond what full counters tell are not among them.
  static double copies_in(const geometry& g, std::span<const std::uint8_t> bytes) noexcept;

  /// Adds counters to others, up to 15: a filter that has the copies of both. Equally many bytes.
  ///
  /// Example:
  ///     std::uint8_t bytes[] = {0x91};  // 1 and 9
  ///     const std::uint8_t others[] = {0x82};
  ///     layouts::counting::merge_bytes(bytes, others);
  ///     assert(bytes[0] == 0xF3);
  static void merge_bytes(std::span<std::uint8_t> into, std::span<const std::uint8_t> from) noexcept;
};

}  // namespace layouts

/// Removals of keys that never were in, and that nobody noticed: a stranger is refused with probability 1 - p and
/// otherwise taken for a key that is there, so beside `refused` of them there were
///
///   refused * p / (1 - p)
///
/// give or take its square root. Each may have made others vanish.
///
/// @param refused  key_counts::refused_removals
/// @param rate     p, the filter's false-positive rate when they came, 0 to 1: it falls as keys are removed
/// @return         a number of removals; infinity at a rate of 1
///
/// Example:
///     assert(unnoticed_removals(100, 0.5) == 100);
double unnoticed_removals(std::uint64_t refused, double rate) noexcept;

}  // namespace bloomery
