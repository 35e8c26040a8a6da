// A check of user-defined layouts: whether the FPR that a layout states is the FPR that it has.
#pragma once

#include <bloomery/detail/bits.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layout.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// What check_layout() found for one capacity and one target FPR.
struct layout_check {
  std::uint64_t keys = 0;       ///< n, of each filter
  double target_fpr = 0;        ///< p
  bloomery::geometry geometry;  ///< L::geometry_for(n, p)
  double stated_fpr = 0;        ///< L::expected_fpr(geometry, n)
  double measured_fpr = 0;      ///< mean over the filters
  double z_score = 0;           ///< (measured - stated) / standard error

  /// The broken rule of the contract of `layout`; empty: none.
  std::string fault;
};

namespace detail {

/// Random hashes; the same seed gives the same hashes.
class random_hashes {
 public:
  explicit random_hashes(std::uint64_t seed) noexcept : state_(mix64(seed)) {}
  key_hash operator()() noexcept {
    state_ += 0x9E3779B97F4A7C15u;
    return {mix64(state_), mix64(~state_)};
  }

 private:
  std::uint64_t state_;
};

/// Makes a filter of check.keys random keys and returns its FPR, measured with `lookups` absent keys. Sets check.fault
/// if the layout breaks its contract; at a cell outside the filter it stops, because setting it would damage memory.
template <layout L>
double measure_one_filter(layout_check& check, std::uint64_t lookups, random_hashes& next_hash) {
  const geometry& g = check.geometry;
  const std::uint64_t cells = g.bits / cell_bits_in<L>();
  std::vector<std::uint8_t> bytes(bytes_for(g.bits));
  std::vector<key_hash> inserted(check.keys);
  for (key_hash& hash : inserted) {
    hash = next_hash();
    typename L::cells key(g, hash);
    for (std::uint32_t i = 0; i < key.count(); ++i) {
      if (key.next() < cells) continue;
      check.fault = "a cell is outside the filter";
      return 0;
    }
    insert_one<L>(bytes.data(), g, hash);
  }
  for (const key_hash& hash : inserted) {
    if (!has_one<L>(bytes.data(), g, hash)) check.fault = "an inserted key is not found";
  }
  std::uint64_t hits = 0;
  for (std::uint64_t i = 0; i < lookups; ++i) hits += has_one<L>(bytes.data(), g, next_hash()) ? 1u : 0u;
  return static_cast<double>(hits) / static_cast<double>(lookups);
}

/// Measures several filters of one capacity and target FPR.
template <layout L>
void measure_filters(layout_check& check, std::uint64_t lookups, random_hashes& next_hash) {
  constexpr std::uint64_t filters = 64;
  constexpr double most_sigmas = 5;
  const std::uint64_t per_filter = lookups < filters ? 1 : lookups / filters;
  double sum = 0;
  double squares = 0;
  for (std::uint64_t i = 0; i < filters; ++i) {
    const double fpr = measure_one_filter<L>(check, per_filter, next_hash);
    if (!check.fault.empty()) return;
    sum += fpr;
    squares += fpr * fpr;
  }
  check.measured_fpr = sum / filters;
  // All filters of a tiny FPR may measure 0, so the variance is at least that of the lookups.
  const double of_lookups = check.stated_fpr * (1 - check.stated_fpr) / static_cast<double>(per_filter);
  const double of_filters = (squares - filters * check.measured_fpr * check.measured_fpr) / (filters - 1);
  const double variance = of_filters > of_lookups ? of_filters : of_lookups;
  const double difference = check.measured_fpr - check.stated_fpr;
  if (difference != 0) check.z_score = difference / std::sqrt(variance / filters);
  if (std::abs(check.z_score) > most_sigmas) check.fault = "the measured FPR contradicts the stated FPR";
}

}  // namespace detail

/// Measures layout L against the FPR that it states, for 1, 100 and 10,000 keys at 10%, 1% and 0.1%.
///
/// Each of the nine cases makes 64 filters of different random keys, so that the standard error includes the variation
/// between filters. A fault is:
///
/// - a stated FPR above the target FPR; it is not measured
/// - a cell outside the filter, or an inserted key that is not found
/// - a |z_score| above 5, which a true statement exceeds about once in 20,000 runs of this function: with the variance
///   of 64 filters, z_score has Student's t distribution with 63 degrees of freedom
///
/// Sliding-window layouts, whose lookups depend on the time, are not accepted.
///
/// @param lookups  of absent keys, per case; less than 64 count as 64
/// @param seed     selects the keys; the same seed gives the same result
/// @throws error   what the functions of L throw for these capacities and target FPRs
///
/// Example:
///     for (const layout_check& one : check_layout<layouts::classic>(64'000)) assert(one.fault.empty());
template <layout L>
  requires(cell_bits_in<L>() == 1 || layout_with_kernels<L>)
std::vector<layout_check> check_layout(std::uint64_t lookups = 1'000'000, std::uint64_t seed = 1) {
  std::vector<layout_check> checks;
  detail::random_hashes next_hash(seed);
  for (const std::uint64_t keys : {1u, 100u, 10'000u}) {
    for (const double target : {0.1, 0.01, 0.001}) {
      layout_check& check = checks.emplace_back();
      check.keys = keys;
      check.target_fpr = target;
      check.geometry = L::geometry_for(keys, target);
      L::check(check.geometry);
      check.stated_fpr = L::expected_fpr(check.geometry, keys);
      if (check.stated_fpr <= target)
        detail::measure_filters<L>(check, lookups, next_hash);
      else
        check.fault = "the stated FPR is not at most the target FPR";
    }
  }
  return checks;
}

}  // namespace bloomery
