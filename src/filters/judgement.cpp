// Judgment of an FPR: the highest FPR that chance explains for a filter that holds exactly its capacity.
#include <bloomery/judgement.hpp>

#include <bloomery/filter_facts.hpp>
#include <bloomery/layouts/classic.hpp>

#include "filters/uncertainty.hpp"
#include "math/rate_variance.hpp"
#include "registry/occupancy_for.hpp"
#include "registry/tables.hpp"
#include "registry/windows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace bloomery {
namespace {

constexpr double rounding = 1 + 1e-9;

bool has_target(double target) noexcept { return target > 0 && target < 1; }

bool has_slow_rates(const params& p) noexcept { return p.geometry.probes > layouts::classic::most_chosen_probes; }

fpr_judgement judgement_of(double fpr, double target, double limit) {
  const fpr_verdict verdict = fpr <= target * rounding  ? fpr_verdict::kept
                              : fpr <= limit * rounding ? fpr_verdict::within_chance
                                                        : fpr_verdict::broken;
  return {verdict, fpr, target, limit};
}

// E exp(4 s - s^2 / 2): the logarithm has mean ln E - s^2 / 2. The value increases up to s = 4.
double reach(double expected, double variance) {
  const double s = std::min(std::sqrt(std::log1p(variance)), fpr_judgement_sigmas);
  return expected * std::exp(fpr_judgement_sigmas * s - s * s / 2);
}

// The generations of a sliding-window filter are separate filters, whose FPRs and variances add up. On servers they
// have another layout than in memory, and the geometry is that of one generation.
double variance_of_window(const params& p, std::uint64_t keys) {
  const layout_row* row = find_layout(p.layout);
  const bool is_shared = row == nullptr || row->window == nullptr;
  const occupancy of_generation = is_shared ? occupancy_for(p) : row->window->lane(p.geometry);
  const keys_by_generation fullest = fullest_generations(p.window(), keys);
  const auto empty = std::count(fullest.begin(), fullest.end(), std::uint64_t{0});
  return relative_variance_of_rate(of_generation, static_cast<double>(fullest[0])) /
         static_cast<double>(window_generations - empty);
}

double variance_at(const params& p, std::uint64_t keys) {
  if (family_of(p) == family::static_set) return 0;
  if (const slot_calls* const slots = slots_of(find_layout(p.layout)))
    return slots->relative_variance(p.geometry, keys);
  if (p.has_window()) return variance_of_window(p, keys);
  return relative_variance_of_rate(occupancy_for(p), static_cast<double>(keys));
}

// The expected FPR at capacity; the target FPR if computing it takes long, or depends on more than params.
double expected_at(const params& p, std::uint64_t keys) {
  const bool is_shared_window = p.has_window() && family_of(p) != family::sliding_window;
  if (has_slow_rates(p) || p.capacity == 0 || is_shared_window) return p.target_fpr;
  const double expected = expected_fpr(p, keys);
  return expected <= tolerated_by_size_rules * p.target_fpr ? expected : p.target_fpr;
}

// Each bitmap of a Guava chain has the target FPR, or the FPR with half its bits set, at which the next bitmap is
// added.
fpr_judgement judge_chain(const filter_facts& facts, double fpr) {
  const params& p = facts.parameters;
  if (!has_target(p.target_fpr)) return {fpr_verdict::no_target, fpr, p.target_fpr, 1};
  const double of_bitmap = std::max(p.target_fpr, std::pow(0.5, p.geometry.probes));
  const double of_all = -std::expm1(static_cast<double>(facts.chain->growths + 1) * std::log1p(-of_bitmap));
  return judgement_of(fpr, of_all, std::min(reach(of_all, variance_at(p, p.capacity)), 1.0));
}

// An approximate FPR may exceed the limit by its uncertainty.
fpr_judgement judge_with(const params& p, double fpr, double uncertainty) {
  const double target = p.target_fpr;
  if (!has_target(target)) return {fpr_verdict::no_target, fpr, target, 1};
  const std::uint64_t keys = p.capacity != 0 ? p.capacity : keys_within(p, target);
  const double limit = reach(expected_at(p, keys), variance_at(p, keys)) * uncertainty;
  return judgement_of(fpr, target, std::clamp(limit, target, 1.0));
}

}  // namespace

const char* name_of(fpr_verdict verdict) noexcept {
  constexpr std::array names = {"no_target", "kept", "within_chance", "broken"};
  return names[static_cast<std::size_t>(verdict)];
}

fpr_judgement judge_fpr(const params& p, double fpr) { return judge_with(p, fpr, uncertainty_of(p, fpr)); }

fpr_judgement judge_size(const params& p) {
  const double target = p.target_fpr;
  if (!has_target(target) || p.capacity == 0 || has_slow_rates(p)) return {fpr_verdict::no_target, 0, target, 1};
  return judgement_of(expected_fpr(p, p.capacity), target, tolerated_by_size_rules * target);
}

fpr_judgement judge_fpr(const filter_facts& facts) {
  const params& p = facts.parameters;
  const double fpr = facts.fill ? facts.fill->current_fpr : facts.expected_fpr.value_or(0);
  if (facts.chain) return judge_chain(facts, fpr);
  if (facts.layers.empty() || p.has_window()) return judge_with(p, fpr, facts.fill ? facts.fill->uncertainty : 1);
  if (!has_target(p.target_fpr)) return {fpr_verdict::no_target, fpr, p.target_fpr, 1};
  // Layers are independent filters, whose FPRs add up to less than the target FPR.
  double variance = 0;
  for (const layer_facts& layer : facts.layers) {
    params of_layer = p;
    of_layer.geometry = layer.geometry;
    const double share = layer.target_fpr / p.target_fpr;
    variance += share * share * variance_at(of_layer, layer.capacity);
  }
  return judgement_of(fpr, p.target_fpr, std::min(reach(p.target_fpr, variance), 1.0));
}

}  // namespace bloomery
