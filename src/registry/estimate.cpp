// Estimates of key numbers and overlaps from set bits.
#include <bloomery/measure.hpp>

#include <bloomery/detail/bits.hpp>
#include <bloomery/error.hpp>
#include <bloomery/scheme.hpp>

#include "kernels/dispatch.hpp"
#include "math/occupancy.hpp"
#include "registry/occupancy_for.hpp"
#include "registry/tables.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace bloomery {
occupancy occupancy_for(const params& p) {
  if (!p.scheme.empty() && find_scheme(p.scheme) != nullptr) return {1, p.geometry.bits, 0, p.geometry.probes};
  const layout_row* layout = find_layout(p.layout);
  if (layout != nullptr) return layout->occupancy(p.geometry);
  throw error(errc::invalid_argument,
              {"unknown layout or scheme", "", "one of " + layout_names() + ", " + scheme_names(),
               "'" + p.layout + p.scheme + "'", ""});
}

namespace {

std::uint64_t zeros_beside(const params& p, std::uint64_t ones) {
  const std::uint64_t cells = p.geometry.bits / cell_bits_of(p);
  return cells - std::min(ones, cells);
}

// G(n); n may be infinite.
double spread(const occupancy& o, double keys) {
  return static_cast<double>(relative_variance_of_zeros(o, std::min(static_cast<long double>(keys), 0x1p63L)));
}

double root(double variance) { return std::sqrt(std::max(variance, 0.0)); }

}  // namespace

estimate estimated_keys(const params& p, std::uint64_t ones) {
  if (family_of(p) == family::static_set) return {static_cast<double>(p.capacity), 0};  // cells do not depend on it
  if (family_of(p) == family::quotient) return {static_cast<double>(ones), 0};          // a slot per copy
  return keys_from_zeros(occupancy_for(p), zeros_beside(p, ones));
}

estimate expected_ones(const params& p, double keys) {
  if (family_of(p) == family::quotient) return {keys, 0};
  return ones_of_keys(occupancy_for(p), keys);
}

shared_ones count_shared(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  if (a.size() != b.size()) {
    throw error(errc::invalid_argument,
                {"the filters differ in size", "", std::to_string(a.size()) + " bytes", std::to_string(b.size()), ""});
  }
  constexpr std::size_t part = std::size_t{4} << 10;  // counted three times while in the cache
  const kernels::fill_kernel& count = chosen_kernels().fill_statistics;
  shared_ones ones;
  for (std::size_t first = 0; first < a.size(); first += part) {
    const std::size_t size = std::min(part, a.size() - first);
    ones.a += count.ones(a.data() + first, size);
    ones.b += count.ones(b.data() + first, size);
    ones.both += count.common_ones(a.data() + first, b.data() + first, size);
  }
  return ones;
}

// With l = ln Z of a, b and their union u: n = -l B/q. The covariances of the l are G(n_a) for a and u, G(n_b) for b
// and u, and G(n_both) for a and b, because two filters are correlated through their common keys only.
overlap estimate_overlap(const params& p, const shared_ones& ones) {
  if (family_of(p) != family::plain) {
    throw error(errc::incompatible, {"the overlap of two filters requires bits that only keys set", "",
                                     "a plain layout", p.layout, hint::intersect_plain_filters});
  }
  const occupancy o = occupancy_for(p);
  const auto keys_of = [&](std::uint64_t some) { return keys_from_zeros(o, zeros_beside(p, some)); };
  overlap result{keys_of(ones.a), keys_of(ones.b), keys_of(ones.either()), {}, {}, 0};
  result.shared_by_chance =
      static_cast<double>(ones.a) * (static_cast<double>(ones.b) / static_cast<double>(p.geometry.bits));
  if (!std::isfinite(result.keys_either.value)) {
    result.keys_both = result.jaccard = {0, std::numeric_limits<double>::infinity()};
    return result;
  }
  const double a = result.keys_a.value;
  const double b = result.keys_b.value;
  const double either = result.keys_either.value;
  const double both = std::clamp(a + b - either, 0.0, std::min(a, b));
  const double scale = -1 / static_cast<double>(log_of_staying_clear(o));  // B/q
  const double g_a = spread(o, a), g_b = spread(o, b), g_either = spread(o, either), g_both = spread(o, both);
  result.keys_both = {both, scale * root(g_either - g_a - g_b + 2 * g_both)};
  if (either > 0) {
    // J = (a + b) / either - 1
    const double ratio = (a + b) / either;
    result.jaccard = {
        both / either,
        scale / either * root(g_a + g_b + 2 * g_both + ratio * ratio * g_either - 2 * ratio * (g_a + g_b))};
  }
  return result;
}

}  // namespace bloomery
