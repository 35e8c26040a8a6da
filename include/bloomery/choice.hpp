// Which layout for n keys at rate p: all of them, with what each costs, and which one complete() takes, and why.
//
// The rule: let `best` be the fewest bits with which any layout keeps the promise. Of the layouts that need at most
// 25 % more (preference::speed) or 3 % more (preference::memory), the quickest is taken. Sizes are whole blocks, so up
// to 4096 bytes more count as nothing: else ten keys would get the slowest layout for the sake of a few bytes.
#pragma once

#include <bloomery/error.hpp>
#include <bloomery/export.hpp>
#include <bloomery/geometry.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

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

/// Why a layout is taken or not.
enum class layout_ground : std::uint8_t {
  impossible,          ///< cannot keep the target FPR: see candidate::problem
  needs_more,          ///< needs more memory than the preference allows
  slower,              ///< within the allowance, but slower than the layout taken
  only_one,            ///< taken: no other layout is within the allowance
  quickest,            ///< taken: the quickest of those within the allowance
  quickest_that_fits,  ///< taken by advise(): the quickest that fits the memory, where the layout of the rule does not
};

/// What the rule found for a layout, in figures.
struct layout_judgement {
  layout_ground ground = layout_ground::impossible;
  std::string than = {};         ///< slower: the layout taken; otherwise the one with the fewest bits
  double than_bits_per_key = 0;  ///< bits per key of `than`
  double more = 0;               ///< needs_more: bits beyond those of `than`, as a share of them: 0.37
  std::uint64_t within = 0;      ///< number of layouts within the allowance
  unsigned allowed_percent = 0;  ///< the allowance above the fewest bits; 0: it is always_allowed_bytes, which is more
  unsigned preferred_percent = 0;  ///< allowed_percent() of the preference
};

/// A layout, and what it would take to keep the promise.
struct candidate {
  std::string layout;
  bloomery::geometry geometry = {};  ///< the smallest that keeps the promise; no bits if there is none
  double rate = 0;                   ///< exact, at the capacity
  double bits_per_key = 0;
  bool within = false;  ///< needs no more than the preference allows
  bool chosen = false;
  layout_judgement why = {};
  std::optional<error> problem = {};  ///< why it cannot keep the promise

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
///     assert(all.back().layout == "classic" && all.back().why.ground == layout_ground::slower && all.back().why.than == "split_block");
std::vector<candidate> layout_candidates(std::uint64_t capacity, double target_fpr,
                                         preference prefer = preference::speed);

/// Applies the rule to candidates, the quickest first, whose geometry is known: sets `within`, `chosen` and `why`
/// of those that are possible.
void judge(std::vector<candidate>& candidates, preference prefer);

}  // namespace bloomery
