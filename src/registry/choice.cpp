// The choice of a layout: sizes of all layouts and the rule of advice.hpp.
#include "registry/choice.hpp"

#include <bloomery/advice.hpp>
#include <bloomery/error.hpp>

#include "math/rates.hpp"
#include "registry/tables.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

// A lower bound for the size of any layout: the textbook's m = -n ln(p) / ln(2)^2, which assumes equally loaded bits
// and the best, fractional k. Uneven blocks and whole numbers of probes only add to it, except for rounding; the tests
// compare it with every layout.
double least_thinkable(std::uint64_t capacity, double rate) {
  return 0.999 * -static_cast<double>(capacity) * std::log(rate) / (std::log(2.0) * std::log(2.0));
}

// Empty, with `problem` set, if the layout cannot keep the target FPR.
std::optional<geometry> size_of(const layout_row& row, std::uint64_t capacity, double rate,
                                std::optional<error>& problem) {
  try {
    return row.geometry_for(capacity, rate);
  } catch (const error& e) {
    if (e.code() != errc::too_large) throw;
    problem = e;
    return std::nullopt;
  }
}

}  // namespace

const char* name_of(preference prefer) noexcept { return prefer == preference::speed ? "speed" : "memory"; }

unsigned allowed_percent(preference prefer) noexcept { return prefer == preference::speed ? 25 : 3; }

std::uint64_t most_bits(std::uint64_t fewest, preference prefer) noexcept {
  const std::uint64_t percent = allowed_percent(prefer);
  const std::uint64_t share = fewest / 100 * percent + fewest % 100 * percent / 100;
  const std::uint64_t more = std::max(share, 8 * always_allowed_bytes);
  return fewest > std::numeric_limits<std::uint64_t>::max() - more ? std::numeric_limits<std::uint64_t>::max()
                                                                   : fewest + more;
}

void judge(std::vector<candidate>& candidates, preference prefer) {
  const auto bits = [](const candidate& c) {
    return c.possible() ? c.geometry.bits : std::numeric_limits<std::uint64_t>::max();
  };
  const auto least = std::min_element(candidates.begin(), candidates.end(),
                                      [&](const candidate& a, const candidate& b) { return bits(a) < bits(b); });
  if (least == candidates.end() || !least->possible()) return;
  const std::uint64_t most = most_bits(least->geometry.bits, prefer);
  const unsigned percent = allowed_percent(prefer);
  std::size_t within = 0;
  candidate* chosen = nullptr;
  for (candidate& c : candidates) {
    c.within = c.possible() && c.geometry.bits <= most;
    c.chosen = c.within && chosen == nullptr;
    if (c.chosen) chosen = &c;
    within += c.within ? 1 : 0;
  }
  const bool by_bytes = most - least->geometry.bits == 8 * always_allowed_bytes;
  for (candidate& c : candidates) {
    if (!c.possible()) continue;
    layout_judgement& why = c.why;
    const candidate& than = c.within && !c.chosen ? *chosen : *least;
    why.ground = c.chosen   ? within == 1 ? layout_ground::only_one : layout_ground::quickest
                 : c.within ? layout_ground::slower
                            : layout_ground::needs_more;
    why.than = than.layout;
    why.than_bits_per_key = than.bits_per_key;
    if (!c.within) why.more = static_cast<double>(c.geometry.bits) / static_cast<double>(than.geometry.bits) - 1;
    why.within = within;
    why.allowed_percent = by_bytes ? 0 : percent;
    why.preferred_percent = percent;
  }
}

std::vector<candidate> layout_candidates(std::uint64_t capacity, double target_fpr, preference prefer) {
  rates::check_target_fpr(capacity, target_fpr);
  std::vector<candidate> candidates;
  for (const layout_row& row : layout_rows()) {
    candidate c{std::string(row.name)};
    if (const std::optional<geometry> g = size_of(row, capacity, target_fpr, c.problem)) {
      c.geometry = *g;
      c.rate = row.expected_fpr(*g, capacity);
      c.bits_per_key = static_cast<double>(g->bits) / static_cast<double>(capacity);
    }
    candidates.push_back(std::move(c));
  }
  judge(candidates, prefer);
  return candidates;
}

// layout_rows() has the fastest layout first. Computing the size of blocked_page and classic takes tens of milliseconds
// for a low FPR, that of the others a few. So layouts are sized in this order until the remaining ones cannot change
// the choice.
choice choose_layout(std::uint64_t capacity, double target_fpr, preference prefer) {
  rates::check_target_fpr(capacity, target_fpr);
  const double thinkable = least_thinkable(capacity, target_fpr);
  std::vector<choice> known;
  std::uint64_t fewest = std::numeric_limits<std::uint64_t>::max();
  std::optional<error> problem;
  const auto first_within = [&](std::uint64_t least) {
    const std::uint64_t most = most_bits(least, prefer);
    return std::find_if(known.begin(), known.end(), [&](const choice& c) { return c.geometry.bits <= most; });
  };
  for (const layout_row& row : layout_rows()) {
    const std::optional<geometry> g = size_of(row, capacity, target_fpr, problem);
    if (!g) continue;
    known.push_back({row.name, *g});
    fewest = std::min(fewest, g->bits);
    const double least = std::min(static_cast<double>(fewest), thinkable);
    const auto first = first_within(fewest);
    if (first == first_within(static_cast<std::uint64_t>(least))) return *first;
  }
  if (known.empty()) throw error(*problem);
  return *first_within(fewest);
}

}  // namespace bloomery
