#include <bloomery/fill_check.hpp>

#include <bloomery/layouts/classic.hpp>
#include <bloomery/sizing.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace bloomery {

double fill_check::deviation() const noexcept {
  const double more = static_cast<double>(ones) - expected.value;
  if (more == 0) return 0;
  // No spread at all: the bits of no key are known for certain.
  return expected.sigma > 0 ? more / expected.sigma : std::copysign(std::numeric_limits<double>::infinity(), more);
}

// The bits that keys lose by meeting are a sum of many rare events. While they are few that is no bell curve: one
// meeting, which one nearly empty filter in fifty has, may be ten deviations. The seven bits are what Bernstein's
// inequality adds for sums of steps of one; a Poisson variable of any mean stays within six deviations and seven but
// once in 10^9.
bool fill_check::is_inconsistent() const noexcept {
  return conclusive && std::abs(static_cast<double>(ones) - expected.value) > 6 * expected.sigma + 7;
}

fill_check check_fill(const params& p, std::uint64_t counted, std::uint64_t ones) {
  if (family_of(p) == family::sealed)
    return {ones, {static_cast<double>(ones), 0}, true};  // keys are all known, bits tell nothing
  fill_check result{ones, {}, false};
  // Rates of very many probes take a second each; a scheme's bits are not spread as evenly as the formula supposes.
  const bool known = p.scheme.empty() && p.geometry.probes <= layouts::classic::most_chosen_probes;
  const auto rate = [&](std::uint64_t n) { return expected_fpr(p, n); };
  const bool copies = family_of(p) == family::counting;  // of keys that may have come more than once
  const std::uint64_t keys = known && !copies ? estimate_distinct(counted, rate) : counted;
  result.expected = expected_ones(p, static_cast<double>(keys));
  if (!known) return result;
  if (rate(keys) > 0.5 && !copies) {
    // How many keys were not counted is anybody's guess; those that were leave their bits.
    fill_check of_counted{ones, expected_ones(p, static_cast<double>(counted)), true};
    return of_counted.is_inconsistent() && of_counted.deviation() < 0 ? of_counted : result;
  }
  result.conclusive = true;

  // The keys that were not new were not counted, and their number is known but for its own chance. A filter with more
  // bits than usual takes more keys for seen: its count is lower, which lets expect fewer bits still.
  const double lost = static_cast<double>(keys - std::min(keys, counted));
  const double bits_of_a_key =
      expected_ones(p, static_cast<double>(keys) + 1).value - expected_ones(p, static_cast<double>(keys)).value;
  const double feedback = lost * p.geometry.probes * bits_of_a_key / std::max(result.expected.value, 1.0);
  result.expected.sigma = std::hypot(result.expected.sigma * (1 + feedback), bits_of_a_key * std::sqrt(lost));
  // Fewer cells than so many different keys would use: some are copies of one.
  if (copies && result.deviation() < 0 && result.is_inconsistent()) result.conclusive = false;
  return result;
}

}  // namespace bloomery
