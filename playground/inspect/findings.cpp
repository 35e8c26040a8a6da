#include "playground/inspect/findings.hpp"

#include "playground/inspect/verdict.hpp"
#include "playground/session/shown_filter.hpp"

#include <bloomery/cells.hpp>
#include <bloomery/error.hpp>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace bloomery::playground {
namespace {

json json_of(const measured_rate& m) {
  const interval within = m.within();
  return {{"rate", m.rate()}, {"low", within.low}, {"high", within.high}, {"queries", m.queries}};
}

// The FPR with more keys. Null for filters that accept no more keys or a limited number, grow, or drop old keys.
json forecast_of(const filter_facts& facts) {
  const bool grows = facts.shared && facts.shared->grows;
  if (facts.static_keys || facts.quotient || facts.parameters.has_window() || grows) return nullptr;
  json list = json::array();
  for (const std::uint64_t percent : {10u, 25u, 50u, 100u}) {
    const auto more =
        static_cast<std::uint64_t>(static_cast<double>(facts.distinct_keys) * (1 + static_cast<double>(percent) / 100));
    list.push_back({{"more_percent", percent}, {"keys", more}, {"rate", expected_fpr(facts.parameters, more)}});
  }
  return list;
}

json growth_of(const filter_facts& facts) {
  if (!facts.shared || !facts.shared->grows) return nullptr;
  return {{"most_keys", facts.shared->maximum ? json(*facts.shared->maximum) : json(nullptr)}};
}

}  // namespace

json finding_of(const filter_facts& facts, const std::optional<measured_rate>& measured) {
  const file_facts file = facts.file.value_or(file_facts{});
  return {{"file_bytes", facts.file ? json(file.bytes) : json(nullptr)},
          {"clean", file.clean},
          {"note", file.metadata},
          {"expires_at", facts.expires_at ? json(*facts.expires_at) : json(nullptr)},
          {"measured", measured ? json_of(*measured) : json(nullptr)},
          {"growth", growth_of(facts)},
          {"shards", nullptr},
          {"nodes", nullptr},
          {"heat", nullptr},
          {"histogram", nullptr},
          {"filter", params_json(facts)},
          {"promised", facts.parameters.target_fpr},
          {"certified", facts.fill->current_fpr},
          {"predicted", facts.expected_fpr.value_or(facts.fill->current_fpr)},
          {"verdict", verdict_of(facts)},
          {"facts", facts_json(facts, std::nullopt)},
          {"keys", facts.distinct_keys},
          {"forecast", forecast_of(facts)}};
}

json answers_of(const key_list& keys, filter_handle& filter) {
  const auto* texts = std::get_if<std::vector<std::string>>(&keys);
  if (texts == nullptr)
    throw error(errc::invalid_argument,
                {"this request needs keys", "keys", "a list", "addresses", "list the keys: {\"keys\": [\"Madrid\"]}"});
  const bool is_local = !filter.capabilities().is_remote;
  const cell_view numbers(filter.parameters(), {});
  json list = json::array();
  for (const std::string& key : *texts) {
    key_view view{key, std::nullopt, contains(filter, key), membership::unknown, {}};
    const key_explanation why = is_local ? explain(filter, key) : key_explanation{};
    if (is_local && !why.fingerprint) {
      view.hash = why.hash;
      for (const explained_layer& layer : why.layers) {
        for (const explained_cell& cell : layer.cells) view.add_cell({numbers.number_of(cell.cell, 0), 0}, cell.value);
      }
    }
    list.push_back(playground::json_of(view, is_local ? numbers.block_cells() : 0));
  }
  return {{"keys", list}};
}

}  // namespace bloomery::playground
