// Facts about a copy of a shared filter with a window: its slices, and the rates of those that have not expired.
#pragma once

#include <bloomery/filter_facts.hpp>
#include <bloomery/layered_filter.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace bloomery {

/// The parameters of a plain filter that consists of one layer of one shard, to compute FPRs.
inline params plain_layer(const params& p, const filter_layer& layer) {
  params result = p;
  result.extra = {};
  result.geometry = layer.geometry;
  result.capacity = layer.capacity;
  return result;
}

/// FPRs of independent filters that are looked up together: 1 - product of (1 - FPR).
class combined_fpr {
 public:
  void add(double fpr) { none_ += std::log1p(-std::min(fpr, 1.0)); }
  double value() const { return 0 - std::expm1(none_); }

 private:
  double none_ = 0;  // ln of the probability that no filter reports a key
};

/// Adds the slices; with more than info_depth::counts also the statistics of their bits as of `now`.
/// @param now  milliseconds since 1970, not before the copy was made
void add_slices(filter_facts& facts, const layered_filter& filter, std::uint64_t now, info_depth depth);

}  // namespace bloomery
