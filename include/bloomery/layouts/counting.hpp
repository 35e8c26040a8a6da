// counting: a blocked counting Bloom filter with 4-bit counters, so that keys can be removed. All counters of a key are
// in one cache line of 128 counters.
//
//   line = hi64(hash64 * lines)
//   x = (2 * hash64 + 1) * multiplier  (mod 2^64), which is odd: see probe_sequence.hpp
//   k times:  cell = 128 * line + (x >> 57);  x = x * step  (mod 2^64)
//
//   cell c is a nibble of byte c >> 1, the lower nibble first:
//
//     byte   |      0      |      1      |  ...  |      63       |  one cache line
//     bits   | 7654   3210 | 7654   3210 |       | 7654     3210 |
//     cell   |    1      0 |    3      2 |       |  127      126 |
//
// The cells of a key are a set: if two of its probes select the same counter, it is incremented once. So a counter is
// the number of copies of keys with this cell. A counter that reaches 15 is saturated and never changes again: the
// true number of copies is unknown, and decrementing it could cause false negatives. Saturated counters only cause
// false positives.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/probe_sequence.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

namespace layouts {

/// A layout that supports removal. It takes 4.1 times the memory of blocked at 5%, 4.4 times at 1% and 5.6 times at
/// 0.01%: cache lines have fewer cells, so they fill less evenly. geometry::bits are memory bits, four per counter.
///
/// Only inserted keys may be removed: see filter::remove(). Copies of a key count once in expected_fpr(), and saturated
/// counters count as if their keys were still present.
///
/// Example:
///     const geometry g = layouts::counting::geometry_for(1'000'000, 0.01);
///     assert(g.probes == 6);
///     assert(g.bits < 43'400'000);  // 43.39 bits per key, which are 10.85 counters
class counting : public layout_base<counting>, public blocked_layout<counting, 512, 4> {
 public:
  static constexpr std::string_view name = "counting";
  static constexpr std::uint32_t cell_bits = 4;

  /// The value of a saturated counter.
  static constexpr std::uint32_t full = 15;

  /// Maximum number of probes that geometry_for() chooses.
  static constexpr std::uint32_t most_chosen_probes = 32;

  /// Inserts one copy. True: the key is certainly new.
  static bool insert_one(std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept;
  static bool has_one(const std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept;

  /// Removes one copy. Changes nothing if one of the counters is 0.
  static removal remove_one(std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept;

  /// The same for keys in order; is_new and results may be null. Returns the number of new or removed keys.
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

  /// Number of non-zero counters.
  static std::uint64_t cells_used(std::span<const std::uint8_t> bytes) noexcept;

  /// Number of saturated counters.
  static std::uint64_t cells_full(std::span<const std::uint8_t> bytes) noexcept;

  /// Estimated copies of keys: the sum of the counters divided by the mean number of distinct cells of a key,
  /// c (1 - (1 - 1/c)^k) for c = 128. Copies that saturated counters did not count are missing.
  static double copies_in(const geometry& g, std::span<const std::uint8_t> bytes) noexcept;

  /// Adds the counters of `from` to `into`, saturating at 15: the result has the copies of both. Both have the same
  /// size.
  ///
  /// Example:
  ///     std::uint8_t bytes[] = {0x91};  // 1 and 9
  ///     const std::uint8_t others[] = {0x82};
  ///     layouts::counting::merge_bytes(bytes, others);
  ///     assert(bytes[0] == 0xF3);
  static void merge_bytes(std::span<std::uint8_t> into, std::span<const std::uint8_t> from) noexcept;
};

}  // namespace layouts

/// Expected number of undetected removals of absent keys. The removal of an absent key is refused with probability
/// 1 - p and otherwise decrements counters of other keys, so for `refused` refused ones there were about
///
///   refused * p / (1 - p)
///
/// undetected ones, with a standard deviation of its square root. Each may have caused false negatives.
///
/// @param refused  key_counts::refused_removals
/// @param rate     p, the FPR at the time of the removals, 0 to 1; it falls as keys are removed
/// @return         a number of removals; infinity at a rate of 1
///
/// Example:
///     assert(unnoticed_removals(100, 0.5) == 100);
double unnoticed_removals(std::uint64_t refused, double rate) noexcept;

}  // namespace bloomery
