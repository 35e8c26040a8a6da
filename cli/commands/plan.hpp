// Options of plan, for its files: sizes (plan.cpp), schemes (plan_scheme.cpp), a comparison of structures
// (plan_advice.cpp), and filters on Redis (redis_plan.cpp).
#pragma once

#include "cli/commands/options.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace bloomery::cli {

struct plan_options {
  making_options wanted;
  bool table = false;
  bool json = false;
  bool deletes = false;
  bool sealed = false;
  bool threat = false;
  std::optional<std::uint64_t> never_for;  ///< --never-for: number of known absent keys
  std::optional<std::uint64_t> most_keys;  ///< --max-keys
  std::optional<std::uint64_t> memory;     ///< --memory, bits
  std::optional<bool> log;                 ///< --log, --no-log
  bool redis = false;                      ///< a filter on Redis, shared by several machines
  std::uint64_t nodes = 1;                 ///< --nodes: number of servers

  /// Whether requirements are given: then all kinds of filters are compared, not only layouts.
  bool advised() const {
    return deletes || sealed || never_for || threat || most_keys || memory || log || wanted.growing ||
           wanted.window.length;
  }
};

/// A number of bits per key or a ratio: "0.0146", "6.64", "43.39", "6,647".
std::string figure_text(double figure);

/// The ratio of bits per key to a lower bound: "1.58"; "-" if the bound is 0, as at an FPR of 100%.
std::string times_lower_bound_text(double bits_per_key, double bound);

/// "1.58 times the lower bound of 6.64 bits per key", with the ratio of times_lower_bound_text().
std::string lower_bound_text(double bits_per_key, double bound);

exit_status plan_advice(const plan_options& options);
exit_status plan_shared(const plan_options& options);
exit_status plan_scheme(const plan_options& options);

}  // namespace bloomery::cli
