// Which layout for two of keys, error rate and size: what plan prints, and what build -m takes.
//
// For keys and rate the rule is the library's (bloomery/choice.hpp). With a given size it is the same rule read the
// other way: a layout is within the allowance if it does as well as the best one would in less memory by that
// allowance.
#pragma once

#include "cli/commands/commands.hpp"

#include <bloomery/params.hpp>

#include <string>
#include <vector>

namespace bloomery::cli {

/// A layout, and what it makes of the two that are given.
struct layout_plan {
  params p;             ///< complete, if possible
  std::string problem;  ///< why not, in words
  double rate = 0;      ///< exact, at p.capacity
  bool within = false;  ///< as good as the best one, but for what the preference allows
  bool chosen = false;
  std::string reason;  ///< why it is taken or why it is not

  bool possible() const { return problem.empty(); }
  double bits_per_key() const { return static_cast<double>(p.geometry.bits) / static_cast<double>(p.capacity); }
};

/// All layouts, the quickest first, for two of -n, -p and -m, with -k if given.
/// @throws error invalid_argument: no layout does this
std::vector<layout_plan> plan_layouts(const making_options& wanted);

/// The one that is chosen.
const layout_plan& chosen_of(const std::vector<layout_plan>& plans);

/// The geometry of this layout that fits into `bits`, with `probes` or else the number that errs least at capacity.
/// @throws error invalid_argument: too few bits for the layout, or a number of probes that it cannot have
geometry geometry_within(const std::string& layout, std::uint64_t bits, std::optional<std::uint64_t> probes,
                         std::uint64_t capacity);

}  // namespace bloomery::cli
