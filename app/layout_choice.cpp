#include "app/layout_choice.hpp"

#include "app/advice_text.hpp"
#include "app/numbers.hpp"

#include <bloomery/advice.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/classic.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace bloomery::app {
namespace {

const layout_facts& facts_of(const std::string& layout) {
  const layout_facts* found = find_layout_facts(layout);
  if (found != nullptr && (found->family == family::plain || found->family == family::counting)) return *found;
  throw error(errc::invalid_argument, {"no such layout", "", "one of " + layout_names(), "'" + layout + "'", ""});
}

void check_probes(const layout_facts& s, std::optional<std::uint64_t> probes) {
  if (s.fixed_probes == 0 || !probes || *probes == s.fixed_probes) return;
  std::vector<std::string_view> free;
  for (const layout_facts& other : layouts_of(family::plain)) {
    if (other.user_chooses_probes()) free.push_back(other.name);
  }
  throw error(errc::invalid_argument, {fmt::format("{} always has {} probes", s.name, s.fixed_probes), "--probes",
                                       std::to_string(s.fixed_probes), std::to_string(*probes),
                                       fmt::format("leave out --probes, or choose one of {}", fmt::join(free, ", "))});
}

params params_of(const layout_facts& s, geometry g, std::uint64_t capacity) {
  params p;
  p.layout = s.name;
  p.geometry = g;
  p.capacity = capacity;
  return p;
}

double rate_of(const layout_facts& s, geometry g, std::uint64_t capacity) {
  return expected_fpr(params_of(s, g, capacity), capacity);
}

// The FPR has one minimum in the number of probes; uneven blocks put it below the textbook value m/n ln 2.
std::uint32_t best_probes(const layout_facts& s, std::uint64_t bits, std::uint64_t capacity) {
  if (s.block_bits == 0) return layouts::classic::best_probes(bits, capacity);
  const double cells = static_cast<double>(bits) / s.cell_bits;
  const double ideal = cells / static_cast<double>(capacity) * std::log(2.0);
  auto best = static_cast<std::uint32_t>(std::clamp(std::floor(ideal) + 1, 1.0, 1.0 * s.most_chosen_probes));
  double lowest = rate_of(s, {bits, best}, capacity);
  while (best > 1) {
    const double fewer = rate_of(s, {bits, best - 1}, capacity);
    if (fewer > lowest) break;
    lowest = fewer;
    --best;
  }
  return best;
}

// The minimum of bits for FPR p at n keys with k probes.
geometry smallest_with(const layout_facts& s, std::uint64_t n, double p, std::uint32_t k) {
  const auto keeps = [&](std::uint64_t blocks) { return rate_of(s, {blocks * s.unit_bits(), k}, n) <= p; };
  // Assuming uniformly distributed bits: p = (1 - e^(-kn/m))^k, solved for m.
  const double even_bits = -1.0 * k * static_cast<double>(n) / std::log1p(-std::pow(p, 1.0 / k));
  const double guess = even_bits / static_cast<double>(s.unit_bits());
  std::uint64_t enough = guess < 1                                   ? 1
                         : guess < static_cast<double>(s.max_blocks) ? static_cast<std::uint64_t>(guess)
                                                                     : 1;
  while (!keeps(enough)) {
    if (enough >= s.max_blocks) {
      throw error(errc::too_large, {fmt::format("{} reaches this FPR at no size with this number of probes", s.name),
                                    "--probes", "", std::to_string(k), "leave out --probes"});
    }
    enough = std::min(2 * enough, s.max_blocks);
  }
  std::uint64_t short_of = enough / 2;
  while (short_of > 0 && keeps(short_of)) {
    enough = short_of;
    short_of /= 2;
  }
  while (enough - short_of > 1) {
    const std::uint64_t middle = short_of + (enough - short_of) / 2;
    (keeps(middle) ? enough : short_of) = middle;
  }
  return {enough * s.unit_bits(), k};
}

std::uint64_t whole_blocks(const layout_facts& s, std::uint64_t bits) {
  if (bits >= s.unit_bits()) return bits / s.unit_bits() * s.unit_bits();
  throw error(errc::invalid_argument, {fmt::format("a {} filter consists of blocks of {} bits", s.name, s.unit_bits()),
                                       "--bits", fmt::format("{} or more", s.unit_bits()), std::to_string(bits),
                                       "choose a larger size or --layout classic"});
}

// The maximum number of keys for these bits and this FPR, with `probes` or the best number of probes.
params roomiest(const layout_facts& s, std::uint64_t bits, double rate, std::optional<std::uint64_t> probes) {
  const std::uint64_t whole = whole_blocks(s, bits);
  const auto holds = [&](std::uint32_t k) {
    params p = params_of(s, {whole, k}, whole / 8);
    p.capacity = keys_within(p, rate);
    return p;
  };
  params best;
  if (s.fixed_probes != 0 || probes) {
    best = holds(s.fixed_probes != 0 ? s.fixed_probes : static_cast<std::uint32_t>(*probes));
  } else {
    // The number of keys has one maximum in k, at or below the textbook value -log2(p).
    const double ideal = std::clamp(std::round(-std::log2(rate)), 1.0, 1.0 * s.most_chosen_probes);
    for (auto k = std::min(static_cast<std::uint32_t>(ideal) + 1, s.most_chosen_probes); k >= 1; --k) {
      params p = holds(k);
      if (p.capacity < best.capacity) break;
      best = std::move(p);
    }
  }
  if (best.capacity == 0) {
    throw error(errc::invalid_argument, {"too small for a single key at this FPR", "--bits", "", "", ""});
  }
  best.target_fpr = rate;
  return complete(std::move(best));
}

// The geometry of this layout that fits into `bits`, with `probes` or the number with the lowest FPR.
geometry geometry_within(const std::string& layout, std::uint64_t bits, std::optional<std::uint64_t> probes,
                         std::uint64_t capacity) {
  const layout_facts& s = facts_of(layout);
  check_probes(s, probes);
  const std::uint64_t whole = whole_blocks(s, bits);
  if (s.fixed_probes != 0) return {whole, s.fixed_probes};
  return {whole, probes ? static_cast<std::uint32_t>(*probes) : best_probes(s, whole, capacity)};
}

// One layout, given two of capacity, FPR and size.
params solve(const layout_facts& s, const size_request& w) {
  check_probes(s, w.probes);
  if (!w.capacity) return roomiest(s, *w.bits, *w.rate, w.probes);
  params p = params_of(s, {}, *w.capacity);
  if (w.bits) {
    p.geometry = geometry_within(p.layout, *w.bits, w.probes, *w.capacity);
  } else {
    p.target_fpr = *w.rate;
    if (w.probes && s.fixed_probes == 0) {
      p.geometry = smallest_with(s, *w.capacity, *w.rate, static_cast<std::uint32_t>(*w.probes));
    }
  }
  return complete(std::move(p));
}

std::vector<layout_plan> solve_all(const size_request& w) {
  std::vector<layout_plan> plans;
  for (const layout_facts& s : layouts_of(family::plain)) {
    layout_plan plan;
    plan.p.layout = s.name;
    try {
      plan.p = solve(s, w);
      plan.rate = expected_fpr(plan.p, plan.p.capacity);
    } catch (const error& e) {
      plan.problem = e.what();
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

// Given capacity and FPR: the library's rule.
void judge_sizes(std::vector<layout_plan>& plans, preference prefer) {
  std::vector<candidate> candidates;
  for (const layout_plan& plan : plans) {
    candidate c{plan.p.layout};
    if (plan.possible()) {
      c.geometry = plan.p.geometry;
      c.bits_per_key = plan.bits_per_key();
    }
    candidates.push_back(std::move(c));
  }
  judge(candidates, prefer);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    plans[i].within = candidates[i].within;
    plans[i].chosen = candidates[i].chosen;
    if (plans[i].possible()) plans[i].reason = reason_text(candidates[i]);
  }
}

// The quality of a layout for a given size: its capacity; for a given capacity, a low FPR.
struct merit {
  bool by_keys;

  bool less(const layout_plan& a, const layout_plan& b) const {
    if (!a.possible() || !b.possible()) return b.possible() && !a.possible();
    return by_keys ? a.p.capacity < b.p.capacity : a.rate > b.rate;
  }
  std::string text(const layout_plan& plan) const {
    return plan.p.layout + ", " + (by_keys ? counted(plan.p.capacity, "key") : rate_text(plan.rate));
  }
  std::string shortfall(const layout_plan& plan, const layout_plan& best) const {
    if (!by_keys)
      return fmt::format("{:.3g} times as many false positives as {}", plan.rate / best.rate, best.p.layout);
    const double fewer = 1 - static_cast<double>(plan.p.capacity) / static_cast<double>(best.p.capacity);
    return fmt::format("holds {:.0f}% fewer keys than {}", 100 * fewer, best.p.layout);
  }
};

// Given a size: within the allowance if as good as the best layout in a size smaller by the allowance.
void judge_merits(std::vector<layout_plan>& plans, const size_request& w, preference prefer) {
  const merit m{!w.capacity};
  const auto less = [&](const layout_plan& a, const layout_plan& b) { return m.less(a, b); };
  const layout_plan best = *std::max_element(plans.begin(), plans.end(), less);
  const std::uint64_t slack = 8 * always_allowed_bytes;
  std::vector<layout_plan> in_less;
  std::string less_text;
  if (*w.bits > slack) {
    const std::uint64_t percent = 100 + allowed_percent(prefer);
    const std::uint64_t share = *w.bits / percent * 100 + *w.bits % percent * 100 / percent;
    size_request smaller = w;
    smaller.bits = std::min(share, *w.bits - slack);
    in_less = solve_all(smaller);
    less_text = *smaller.bits == share ? fmt::format("{:.0f}% of this size", 100.0 * 100 / static_cast<double>(percent))
                                       : fmt::format("{} bytes less", always_allowed_bytes);
  }
  const auto enough = std::max_element(in_less.begin(), in_less.end(), less);
  const bool any_will_do = enough == in_less.end() || !enough->possible();
  std::size_t within = 0;
  layout_plan* chosen = nullptr;
  for (layout_plan& plan : plans) {
    // The best layout is always within: a search that ends at a local optimum may find a better one in the smaller
    // size.
    plan.within = plan.possible() && (any_will_do || !m.less(plan, *enough) || !m.less(plan, best));
    plan.chosen = plan.within && chosen == nullptr;
    if (plan.chosen) chosen = &plan;
    within += plan.within ? 1 : 0;
  }
  for (layout_plan& plan : plans) {
    if (!plan.possible() || plan.chosen) continue;
    plan.reason = plan.within ? "slower than " + chosen->p.layout : m.shortfall(plan, best);
  }
  chosen->reason = within == 1 ? "the only layout" : fmt::format("the fastest of {}", within);
  if (any_will_do) {
    chosen->reason += fmt::format("; a difference of {} bytes is ignored", always_allowed_bytes);
  } else {
    const char* verb = m.by_keys
                           ? (within == 1 ? "holds what" : "hold what")
                           : (within == 1 ? "has no more false positives than" : "have no more false positives than");
    chosen->reason += fmt::format(" that {} the best would in {} ({})", verb, less_text, m.text(*enough));
  }
}

}  // namespace

std::vector<layout_plan> plan_layouts(const size_request& wanted) {
  std::vector<layout_plan> plans = solve_all(wanted);
  if (std::none_of(plans.begin(), plans.end(), [](const layout_plan& plan) { return plan.possible(); })) {
    throw error(errc::invalid_argument, {"no layout is possible: " + plans.back().problem, "", "", "", ""});
  }
  const preference prefer = wanted.prefer.value_or(preference::speed);
  if (wanted.bits)
    judge_merits(plans, wanted, prefer);
  else
    judge_sizes(plans, prefer);
  return plans;
}

params sized_by_bits(params p, size_request wanted) {
  if (!p.scheme.empty()) {
    p.geometry = {*wanted.bits, wanted.probes ? static_cast<std::uint32_t>(*wanted.probes)
                                              : layouts::classic::best_probes(*wanted.bits, p.capacity)};
    return complete(std::move(p));
  }
  wanted.capacity = p.capacity;
  if (p.layout.empty()) p.layout = chosen_of(plan_layouts(wanted)).p.layout;
  p.geometry = geometry_within(p.layout, *wanted.bits, wanted.probes, p.capacity);
  return complete(std::move(p));
}

const layout_plan& chosen_of(const std::vector<layout_plan>& plans) {
  return *std::find_if(plans.begin(), plans.end(), [](const layout_plan& plan) { return plan.chosen; });
}

}  // namespace bloomery::app
