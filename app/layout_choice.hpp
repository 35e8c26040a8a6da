// The choice of a layout and its size by two of capacity, target FPR and bits.
//
// For capacity and FPR the rule is the library's (bloomery/advice.hpp). For a given size the same rule is read the
// other way: a layout is within the allowance if it does as well as the best layout would in memory smaller by the
// allowance.
#pragma once

#include <bloomery/params.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bloomery::app {

/// The size of a filter to be made; what is absent is derived.
struct size_request {
  std::optional<std::uint64_t> capacity = {};
  std::optional<double> rate = {};  ///< target FPR
  std::optional<std::uint64_t> bits = {};
  std::optional<std::uint64_t> probes = {};
  std::optional<preference> prefer = {};  ///< absent: speed
};

/// A layout, and what follows from the request.
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

/// All layouts, the quickest first, for two of capacity, rate and bits.
/// @throws error invalid_argument: no layout does this
std::vector<layout_plan> plan_layouts(const size_request& wanted);

/// The one that is chosen.
const layout_plan& chosen_of(const std::vector<layout_plan>& plans);

/// A filter of p.layout or p.scheme for p.capacity keys, in at most wanted.bits and with wanted.probes or else the
/// number that gives the lowest FPR. Without a layout or scheme the chosen one of plan_layouts().
/// @throws error  invalid_argument: too few bits for the layout, or a number of probes that it cannot have; as
///        complete()
params sized_by_bits(params p, size_request wanted);

}  // namespace bloomery::app
