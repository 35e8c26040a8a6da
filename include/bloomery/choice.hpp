// Choice of a layout for n keys at target FPR p: all candidates, the size of each, the one complete() takes, and why.
//
// The rule: let `best` be the fewest bits with which any layout keeps the target FPR. Among the layouts that need at
// most 25% more (preference::speed) or 3% more (preference::memory), the fastest is taken. Sizes are whole blocks, so
// 4096 bytes more are always allowed; otherwise ten keys would get the slowest layout to save a few bytes.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/geometry.hpp>
#include <bloomery/error.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// Percentage by which a layout may exceed the smallest size: 25 for speed, 3 for memory.
unsigned allowed_percent(preference prefer) noexcept;

/// Bytes by which a layout may always exceed the smallest size.
inline constexpr std::uint64_t always_allowed_bytes = 4096;

/// Maximum size of a layout in bits, if the smallest candidate needs `fewest` bits.
///
/// Example:
///     assert(most_bits(100'000'000, preference::speed) == 125'000'000);
///     assert(most_bits(100'000'000, preference::memory) == 103'000'000);
///     assert(most_bits(100, preference::memory) == 100 + 8 * 4096);
std::uint64_t most_bits(std::uint64_t fewest, preference prefer) noexcept;

/// The reason for taking or rejecting a layout.
enum class layout_ground : std::uint8_t {
  impossible,          ///< cannot keep the target FPR: see candidate::problem
  needs_more,          ///< needs more memory than the preference allows
  slower,              ///< within the allowance, but slower than the layout taken
  only_one,            ///< taken: no other layout is within the allowance
  quickest,            ///< taken: the fastest layout within the allowance
  quickest_that_fits,  ///< taken by advise(): the fastest that fits into memory, because the rule's layout does not
};

/// The result of the rule for one layout, with its figures.
struct layout_judgement {
  layout_ground ground = layout_ground::impossible;
  std::string than = {};           ///< the layout compared with: for slower the one taken, otherwise the smallest
  double than_bits_per_key = 0;    ///< bits per key of `than`
  double more = 0;                 ///< needs_more: additional bits relative to `than`: 0.37 for 37% more
  std::uint64_t within = 0;        ///< number of layouts within the allowance
  unsigned allowed_percent = 0;    ///< the allowance above the fewest bits; 0: always_allowed_bytes, which is larger
  unsigned preferred_percent = 0;  ///< allowed_percent() of the preference
};

/// A layout and its size for the target FPR.
struct candidate {
  std::string layout;
  bloomery::geometry geometry = {};  ///< the smallest that keeps the target FPR; 0 bits if there is none
  double rate = 0;                   ///< exact FPR at capacity
  double bits_per_key = 0;
  bool within = false;  ///< within the allowance of the preference
  bool chosen = false;
  layout_judgement why = {};
  std::optional<error> problem = {};  ///< why it cannot keep the target FPR

  bool possible() const noexcept { return geometry.bits != 0; }
};

/// All layouts for n keys at target FPR p, the fastest first; complete() takes the chosen one. None is chosen if no
/// layout can keep the target FPR.
///
/// @throws error  invalid_argument: n is 0, p is outside (0, 1) or NaN
///
/// Example:
///     const std::vector<candidate> all = layout_candidates(1'000'000, 0.01);
///     assert(all.front().layout == "split_block" && all.front().chosen);
///     assert(all.back().layout == "classic" && all.back().why.ground == layout_ground::slower && all.back().why.than == "split_block");
std::vector<candidate> layout_candidates(std::uint64_t capacity, double target_fpr,
                                         preference prefer = preference::speed);

/// Applies the rule to candidates with known geometry, ordered from the fastest to the slowest. Sets `within`, `chosen`
/// and `why` of the possible ones.
void judge(std::vector<candidate>& candidates, preference prefer);

}  // namespace bloomery
