#include "playground/api/plans.hpp"

#include "playground/api/written_filter.hpp"

#include "app/advice_text.hpp"

#include <bloomery/advice.hpp>
#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/layouts/classic.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace bloomery::playground {
namespace {

double rate_of(const params& p, bool grows, std::uint64_t keys) {
  return grows ? scalable_fpr(p.target_fpr, keys, p.capacity) : expected_fpr(p, keys);
}

// The number of points of a curve: fewer where an FPR is slow to compute.
std::uint64_t points_of(const params& p) {
  return p.scheme == "pharo" || p.geometry.probes > layouts::classic::most_chosen_probes ? 12 : 60;
}

// The FPR for every number of probes, with the same bits and keys.
json probes_of(const params& p) {
  const layout_facts* facts = find_layout_facts(p.layout);
  const bool any_number =
      facts != nullptr ? facts->user_chooses_probes() && !p.has_window() : !p.scheme.empty() && p.scheme != "pharo";
  if (!any_number) return nullptr;
  const std::uint32_t most = std::min(2 * p.geometry.probes + 2, 32u);
  json list = json::array();
  std::size_t best = 0;
  for (std::uint32_t k = 1; k <= most; ++k) {
    params other = p;
    other.geometry.probes = k;
    list.push_back({{"probes", k}, {"rate", expected_fpr(other, p.capacity)}});
    if (list.back()["rate"] < list[best]["rate"]) best = list.size() - 1;
  }
  list[best]["best"] = true;
  return list;
}

json why_json(const layout_judgement& why) {
  constexpr std::array names = {"impossible", "needs_more", "slower", "only_one", "quickest", "quickest_that_fits"};
  return {{"ground", names[static_cast<std::size_t>(why.ground)]},
          {"than", why.than},
          {"more", why.more},
          {"within", why.within},
          {"allowed_percent", why.allowed_percent},
          {"allowed_bytes", why.allowed_percent == 0 ? always_allowed_bytes : 0},
          {"preferred_percent", why.preferred_percent}};
}

json layouts_of(const wanted_filter& wanted, const params& p) {
  if (wanted.grows || !p.scheme.empty() || p.target_fpr <= 0 || p.target_fpr >= 1) return nullptr;
  const std::vector<candidate> candidates = layout_candidates(p.capacity, p.target_fpr);
  const auto is_taken = [&](const candidate& c) { return c.layout == p.layout; };
  if (std::none_of(candidates.begin(), candidates.end(), is_taken)) return nullptr;  // a counting or sliding layout
  json list = json::array();
  for (const candidate& c : candidates) {
    list.push_back({{"layout", c.layout},
                    {"possible", c.possible()},
                    {"bits_a_key", c.bits_per_key},
                    {"rate", c.rate},
                    {"chosen", c.chosen},
                    {"reason", app::reason_text(c)},
                    {"why", why_json(c.why)}});
  }
  return list;
}

}  // namespace

json plan_of(const wanted_filter& wanted, const std::function<void()>& check) {
  const params p = params_of(wanted);
  const std::uint64_t most = p.capacity + p.capacity / 2 + 1;
  json filter = json_of(p);
  if (wanted.grows) filter["family"] = "growing";
  return {{"filter", filter},
          {"rate", rate_of(p, wanted.grows, p.capacity)},
          {"bits_a_key",
           static_cast<double>(p.geometry.bits) / static_cast<double>(std::max<std::uint64_t>(p.capacity, 1))},
          {"bytes", bytes_for(p.geometry.bits)},
          {"curve", curve_of(p, wanted.grows, most, check)},
          {"command", command_of(wanted, p)},
          {"cpp", cpp_of(wanted, p)},
          {"probes", wanted.grows ? json(nullptr) : probes_of(p)},
          {"layouts", layouts_of(wanted, p)}};
}

json curve_of(const params& p, bool grows, std::uint64_t most, const std::function<void()>& check) {
  const std::uint64_t points = points_of(p);
  json curve = json::array();
  std::uint64_t before = ~std::uint64_t{0};
  for (std::uint64_t i = 0; i <= points; ++i) {
    const auto keys =
        static_cast<std::uint64_t>(static_cast<double>(most) * static_cast<double>(i) / static_cast<double>(points));
    if (keys == before) continue;
    before = keys;
    check();
    curve.push_back({{"keys", keys}, {"rate", rate_of(p, grows, keys)}});
  }
  return curve;
}

}  // namespace bloomery::playground
