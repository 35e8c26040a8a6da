#include "playground/findings.hpp"

#include "playground/verdict.hpp"

#include <bloomery/error.hpp>

#include <optional>
#include <variant>
#include <vector>

namespace bloomery::playground {

json json_of(const measured_rate& m) {
  const interval within = m.within();
  return {{"rate", m.rate()}, {"low", within.low}, {"high", within.high}, {"queries", m.queries}};
}

json forecast_of(const std::function<double(std::uint64_t)>& rate_at, std::uint64_t keys) {
  json list = json::array();
  for (const std::uint64_t percent : {10u, 25u, 50u, 100u}) {
    const auto more = static_cast<std::uint64_t>(static_cast<double>(keys) * (1 + static_cast<double>(percent) / 100));
    list.push_back({{"more_percent", percent}, {"keys", more}, {"rate", rate_at(more)}});
  }
  return list;
}

void add_facts(json& seen, const shown_filter& filter, const filter_facts& facts, std::uint64_t keys) {
  const params& p = filter.parameters();
  seen["filter"] = json_of(p, &filter);
  seen["promised"] = p.target_fpr;
  seen["certified"] = facts.certified;
  seen["predicted"] = facts.predicted;
  seen["verdict"] = verdict_of(facts, p);
  seen["facts"] = json_of(facts, p, std::nullopt);
  if (facts.window) seen["facts"]["keys_left"] = nullptr;
  seen["keys"] = keys;
  seen["forecast"] = family_of(p) == family::sealed || facts.window
                         ? json(nullptr)
                         : forecast_of([&](std::uint64_t more) { return filter.rate_at(more); }, keys);
}

json answers_of(const key_list& keys, const std::function<bool(const std::string&)>& may_contain,
                const shown_filter* filter) {
  const auto* texts = std::get_if<std::vector<std::string>>(&keys);
  if (texts == nullptr)
    throw error(errc::invalid_argument, {"keys are wanted here", "keys", "a list", "addresses",
                                         "give them one by one: {\"keys\": [\"Madrid\"]}"});
  json list = json::array();
  for (const std::string& key : *texts) {
    key_view view{key, std::nullopt, may_contain(key), truth::unknown, {}};
    if (filter != nullptr && family_of(filter->parameters()) != family::sealed) {
      view.hash = filter->hash_of(key);
      for (const place& at : filter->places_of(key)) view.cells.push_back({at, filter->values(at.cell, 1).front()});
      list.push_back(json_of(view, *filter));
    } else {
      list.push_back({{"key", json_of_key(key)},
                      {"answer", view.maybe ? "maybe" : "no"},
                      {"truth", nullptr},
                      {"false_positive", false},
                      {"hash", nullptr},
                      {"block", nullptr},
                      {"cells", json::array()}});
    }
  }
  return {{"keys", list}};
}

}  // namespace bloomery::playground
