// A check of user-defined layouts: whether the FPR that a layout states is the FPR that it has.
#pragma once

#include <bloomery/detail/bits.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layout.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// What check_layout() found for one capacity and one target FPR.
struct layout_check {
  std::uint64_t keys = 0;   ///< n, of each filter
  double target_fpr = 0;    ///< p
  geometry shape;           ///< L::geometry_for(n, p)
  double stated_fpr = 0;    ///< L::expected_fpr(shape, n)
  double measured_fpr = 0;  ///< mean over the filters
  double z_score = 0;       ///< (measured - stated) / standard error

  /// The broken rule of the contract of `layout`; empty: none.
  std::string fault;
};

/// Measures layout L against the FPR that it states, for 1, 100 and 10,000 keys at 10%, 1% and 0.1%.
///
/// Each of the nine cases makes 64 filters of different random keys, so that the standard error includes the variation
/// between filters. A fault is:
///
/// - a stated FPR above the target FPR
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
  constexpr std::uint64_t filters = 64;
  constexpr double most_sigmas = 5;
  std::vector<layout_check> results;
  std::uint64_t next = mix64(seed);
  const auto random_hash = [&] {
    next += 0x9E3779B97F4A7C15u;
    return key_hash{mix64(next), mix64(~next)};
  };
  for (const std::uint64_t keys : {1u, 100u, 10'000u}) {
    for (const double target : {0.1, 0.01, 0.001}) {
      layout_check& one = results.emplace_back();
      one.keys = keys;
      one.target_fpr = target;
      one.shape = L::geometry_for(keys, target);
      L::check(one.shape);
      one.stated_fpr = L::expected_fpr(one.shape, keys);
      if (!(one.stated_fpr <= target)) one.fault = "the stated FPR exceeds the target FPR";
      const std::uint64_t cells = one.shape.bits / cell_bits_in<L>();
      const std::uint64_t per_filter = std::max<std::uint64_t>(lookups / filters, 1);
      double sum = 0;
      double squares = 0;
      for (std::uint64_t i = 0; i < filters; ++i) {
        std::vector<std::uint8_t> bytes(bytes_for(one.shape.bits));
        std::vector<key_hash> inserted(keys);
        for (key_hash& hash : inserted) {
          hash = random_hash();
          typename L::cells probe(one.shape, hash);
          for (std::uint32_t c = 0; c < probe.count(); ++c) {
            if (probe.next() < cells) continue;
            one.fault = "a cell is outside the filter";
            return results;  // writing it would damage memory
          }
          insert_one<L>(bytes.data(), one.shape, hash);
        }
        for (const key_hash& hash : inserted) {
          if (!has_one<L>(bytes.data(), one.shape, hash)) one.fault = "an inserted key is not found";
        }
        std::uint64_t hits = 0;
        for (std::uint64_t k = 0; k < per_filter; ++k)
          hits += has_one<L>(bytes.data(), one.shape, random_hash()) ? 1u : 0u;
        const double fpr = static_cast<double>(hits) / static_cast<double>(per_filter);
        sum += fpr;
        squares += fpr * fpr;
      }
      one.measured_fpr = sum / filters;
      const double variance = std::max((squares - filters * one.measured_fpr * one.measured_fpr) / (filters - 1),
                                       one.stated_fpr * (1 - one.stated_fpr) / static_cast<double>(per_filter));
      const double difference = one.measured_fpr - one.stated_fpr;
      one.z_score = variance > 0      ? difference / std::sqrt(variance / filters)
                    : difference == 0 ? 0
                                      : std::copysign(HUGE_VAL, difference);
      if (one.fault.empty() && std::abs(one.z_score) > most_sigmas)
        one.fault = "the measured FPR contradicts the stated FPR";
    }
  }
  return results;
}

}  // namespace bloomery
