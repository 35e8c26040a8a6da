// Causes of a missed target FPR: known faults of Bloom filters, each with the FPR that it leads to at every fill level.
// A cause is likely if this FPR agrees with the measured one at all levels.
//
// n keys, p the target FPR, m bits, k probes.
#pragma once

#include <bloomery/measure.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bloomery::app {

/// What is known of the filter that was measured.
struct filter_claim {
  params expected;              ///< the filter that it should behave like; capacity and target_fpr are set
  bool bits_are_known = false;  ///< otherwise expected.geometry is that of a filter that keeps the target FPR
  bool probes_are_known = false;
};

/// The FPR measured with `keys` keys.
struct fill_level {
  std::uint64_t keys = 0;
  measured_rate measured;
};

/// A cause that explains the measured FPRs.
struct fpr_cause {
  std::string code;  ///< "hash32", for programs
  std::string text;  ///< "32-bit hashes: ..."
  double fpr = 0;    ///< at the last level, by this cause
};

/// The causes that agree with all levels, the likeliest first, at most two. Empty if none does.
///
/// docs/audit.md has the formula of each cause.
std::vector<fpr_cause> likely_causes(const filter_claim& claim, std::span<const fill_level> levels);

}  // namespace bloomery::app
