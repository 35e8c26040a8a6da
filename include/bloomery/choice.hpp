// Which layout for n keys at rate p: all of them, with what each costs, and which one complete() takes, and why.
//
// The rule: let `best` be the fewest bits with which any layout keeps the promise. Of the layouts that need at most
// 25 % more (preference::speed) or 3 % more (preference::memory), the quickest is taken. Sizes are whole blocks, so up to
// 4096 bytes more count as nothing: else ten keys would get the slowest layout for the sake of a few bytes.
#pragma once

#include <bloomery/geometry.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace bloomery {

/// Percent of memory above the least that a layout may need: 25 for speed, 3 for memory.
unsigned allowed_percent(preference prefer) noexcept;

/// Bytes above the least that a layout may always need.
inline constexpr std::uint64_t always_allowed_bytes = 4096;

/// The most bits that a layout may need where the best one needs `fewest`.
///
/// Example:
///     assert(most_bits(100'000'000, preference::speed) == 125'000'000);
///     assert(most_bits(100'000'000, preference::memory) == 103'000'000);
///     assert(most_bits(100, preference::memory) == 100 + 8 * 4096);
std::uint64_t most_bits(std::uint64_t fewest, preference prefer) noexcept;

/// A layout, and what it would take to keep the promise.
struct candidate {
  std::string layout;
  bloomery::geometry geometry = {};  ///< the smallest that keeps the promise; no bits if there is none
  double rate = 0;                   ///< exact, at the capacity
  double bits_a_key = 0;
  bool within = false;  ///< needs no more than the preference allows
  bool chosen = false;
  std::string reason = {};  ///< why it is taken, why it is not, or why it cannot keep the promise

  bool possible() const noexcept { return geometry.bits != 0; }
};

/// All layouts for n keys at rate p, the quickest first; complete() takes the one that is chosen. None is chosen if
/// none can keep the promise.
///
/// @throws error  invalid_argument: n is 0, p is outside (0, 1) or NaN
///
/// Example:
///     const std::vector<candidate> all = layout_candidates(1'000'000, 0.01);
///     assert(all.front().layout == "split_block" && all.front().chosen);
///     assert(all.back().layout == "classic" && all.back().reason == "slower than split_block");
std::vector<candidate> layout_candidates(std::uint64_t capacity, double false_positive_rate,
                                         preference prefer = preference::speed);

/// Applies the rule to candidates, the quickest first, whose geometry is known: sets within, chosen and the reason of
/// those that are possible.
void judge(std::vector<candidate>& candidates, preference prefer);

}  // namespace bloomery
