// fill_check: the comparison of set bits with the number expected from the key count.
#include <bloomery/measure.hpp>

#include <bloomery/layouts/classic.hpp>
#include <bloomery/sizing.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace bloomery {

double fill_check::deviation() const noexcept {
  const double more = static_cast<double>(ones) - expected.value;
  if (more == 0) return 0;
  // Sigma is 0 for an empty filter, whose bits are known exactly.
  return expected.sigma > 0 ? more / expected.sigma : std::copysign(std::numeric_limits<double>::infinity(), more);
}

// The number of bits lost to collisions between keys is a sum of rare events. While they are few, its distribution is
// not normal: a single collision, which one nearly empty filter in fifty has, may be ten standard deviations. The seven
// bits come from Bernstein's inequality for sums of steps of one: a Poisson variable of any mean exceeds six standard
// deviations plus seven with probability below 10^-9.
bool fill_check::is_inconsistent() const noexcept {
  return conclusive && std::abs(static_cast<double>(ones) - expected.value) > 6 * expected.sigma + 7;
}

fill_check check_fill(const params& p, std::uint64_t counted, std::uint64_t ones) {
  if (family_of(p) == family::static_set)
    return {ones, {static_cast<double>(ones), 0}, true};  // the number of keys is exact and independent of the bits
  if (family_of(p) == family::quotient) return {ones, {static_cast<double>(counted), 0}, true};
  fill_check result{ones, {}, false};
  // With many probes a rate takes a second; the bits of schemes are less uniform than the formula assumes.
  const bool known = p.scheme.empty() && p.geometry.probes <= layouts::classic::most_chosen_probes;
  const auto rate = [&](std::uint64_t n) { return expected_fpr(p, n); };
  const bool copies = family_of(p) == family::counting;  // counts include repeated keys
  const std::uint64_t keys = known && !copies ? estimate_distinct(counted, rate) : counted;
  result.expected = expected_ones(p, static_cast<double>(keys));
  if (!known) return result;
  if (rate(keys) > 0.5 && !copies) {
    // The number of uncounted keys is unknown, but at least the bits of the counted keys must be set.
    fill_check of_counted{ones, expected_ones(p, static_cast<double>(counted)), true};
    return of_counted.is_inconsistent() && of_counted.deviation() < 0 ? of_counted : result;
  }
  result.conclusive = true;

  // The number of keys that were not counted, because they were false positives when inserted, is random. A filter with
  // more set bits than expected has more such keys, so its count is lower, and even fewer bits are expected.
  const double lost = static_cast<double>(keys - std::min(keys, counted));
  const double bits_of_a_key =
      expected_ones(p, static_cast<double>(keys) + 1).value - expected_ones(p, static_cast<double>(keys)).value;
  const double feedback = lost * p.geometry.probes * bits_of_a_key / std::max(result.expected.value, 1.0);
  result.expected.sigma = std::hypot(result.expected.sigma * (1 + feedback), bits_of_a_key * std::sqrt(lost));
  // Fewer used cells than for distinct keys: some copies are of the same key.
  if (copies && result.deviation() < 0 && result.is_inconsistent()) result.conclusive = false;
  return result;
}

}  // namespace bloomery
