#include "cli/commands/error_facts.hpp"

#include "cli/commands/commands.hpp"
#include "cli/commands/window.hpp"

#include <bloomery/layouts/counting.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bloomery::cli {

std::string distance_text(const audit& count) {
  const double deviations = std::abs(count.deviation());
  return std::isfinite(deviations) ? fmt::format("by {:.3g} standard deviations", deviations) : "beyond all chance";
}

error_facts error_facts_of(const file_info& file, std::span<const std::uint8_t> bytes) {
  const params& p = file.parameters;
  if (family_of(p) == family::windowed) return error_facts_of_window(file, bytes);
  error_facts f;
  f.bits = take_census(p, bytes);
  f.keys_from_bits = estimated_keys(p, f.bits.ones);
  // Full counters outlast their keys.
  const bool copies = family_of(p) == family::counting;
  f.count = audit_count(p, file.counts.inserted, f.bits.ones - (copies ? counting::cells_full(bytes) : 0));
  f.count_is_estimate = file.counts.is_estimate || !file.clean;
  f.alarming = f.count.alarming() && !f.count_is_estimate;
  f.counted = distinct_keys(p, file.counts.inserted);
  const auto by_bits =
      static_cast<std::uint64_t>(std::llround(std::min(f.keys_from_bits.value, static_cast<double>(beyond_counting))));
  // Far past capacity hardly a key is counted.
  const std::uint64_t cells = p.geometry.bits / cell_bits_of(p);
  const bool nearly_full = static_cast<double>(f.bits.ones) > 0.75 * static_cast<double>(cells);
  // Copies of one key count once.
  const bool repeated = copies && !f.count.conclusive;
  f.keys = repeated || f.count_is_estimate || f.alarming ? by_bits
           : nearly_full                                 ? std::max(f.counted, by_bits)
                                                         : f.counted;
  f.predicted = false_positive_rate(p, f.keys);
  return f;
}

}  // namespace bloomery::cli
