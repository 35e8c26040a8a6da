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

/// A request for a filter; absent values are derived.
struct size_request {
  std::optional<std::uint64_t> capacity = {};
  std::optional<double> rate = {};  ///< target FPR
  std::optional<std::uint64_t> bits = {};
  std::optional<std::uint64_t> probes = {};
  std::optional<preference> prefer = {};  ///< default: speed
};

/// A layout with its properties for the request.
struct layout_plan {
  params p;             ///< complete, if possible
  std::string problem;  ///< why it is impossible, in words
  double rate = 0;      ///< expected FPR at p.capacity
  bool within = false;  ///< within the allowance of the preference
  bool chosen = false;
  std::string reason;  ///< why it is chosen or not

  bool possible() const { return problem.empty(); }
  double bits_per_key() const { return static_cast<double>(p.geometry.bits) / static_cast<double>(p.capacity); }
};

/// All layouts, the fastest first, for two of capacity, FPR and bits.
/// @throws error invalid_argument: no layout satisfies the request
std::vector<layout_plan> plan_layouts(const size_request& wanted);

/// The chosen layout.
const layout_plan& chosen_of(const std::vector<layout_plan>& plans);

/// A filter of p.layout or p.scheme for p.capacity keys, in at most wanted.bits, with wanted.probes or the number of
/// probes with the lowest FPR. Without a layout or scheme, the choice of plan_layouts().
/// @throws error  invalid_argument: too few bits for the layout, or an unsupported number of probes; as
///        complete()
params sized_by_bits(params p, size_request wanted);

}  // namespace bloomery::app
