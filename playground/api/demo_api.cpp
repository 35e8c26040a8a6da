#include "playground/api/demo_api.hpp"

#include "playground/api/plans.hpp"
#include "playground/json/steps.hpp"

#include <bloomery/error.hpp>
#include <bloomery/params.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace bloomery::playground {
namespace {

constexpr std::uint64_t most_cells_of_call = 100'000;
constexpr std::uint64_t most_ranges = 16'384;
constexpr std::uint64_t most_searched = 1'000'000;
constexpr std::uint64_t all = ~std::uint64_t{0};

// The requested cells: from .. to - 1, limited to existing ones.
std::pair<std::uint64_t, std::uint64_t> stretch(const request& r, std::uint64_t cells) {
  const std::uint64_t from = queried(r, "from", 0);
  const std::uint64_t to = std::min(queried(r, "to", cells), cells);
  if (from < to) return {from, to};
  throw error(errc::invalid_argument, {"invalid range of cells", "from", "cells below " + std::to_string(cells),
                                       std::to_string(from) + " to " + std::to_string(to),
                                       "choose a 'from' that is below 'to' and below the number of cells"});
}

json state_of(const std::string& id, const demo_session& e) {
  return {{"id", id},
          {"filter", params_json(e.facts())},
          {"facts", facts_json(e.facts(), e.knows_keys() ? std::optional(e.distinct()) : std::nullopt)},
          {"steps", e.step_count()},
          {"can_undo", e.can_undo()},
          {"truth", e.knows_keys()},
          {"next_address", e.next_address()}};
}

json answers_json(const answers& a, const shown_filter& filter) {
  json keys = json::array();
  for (const key_view& view : a.keys) keys.push_back(json_of(view, filter.block_cells()));
  return {{"keys", keys}, {"count", a.count}};
}

// A POST request of a filter; nothing: there is no such endpoint.
std::optional<response> posted(const request& r, const std::string& what, const std::string& id, demo_session& e) {
  if (what == "undo" || what == "reset") {
    what == "undo" ? e.undo() : e.reset();
    return json_response(state_of(id, e));
  }
  fields body(r.body);
  if (what == "add" || what == "ask") {
    const bool joins = what == "add" && body.flag("joins");
    key_list keys = body.keys(most_keys_of_call);
    body.end();
    const answers a = what == "add" ? e.add(std::move(keys), joins) : e.ask(std::move(keys));
    json result = answers_json(a, e.filter());
    if (what == "add") {
      result["new"] = a.yes;
      result["state"] = state_of(id, e);
    } else {
      result["maybe"] = a.yes;
      result["false_positives"] = e.knows_keys() ? json(a.false_positives) : json(nullptr);
    }
    return json_response(result);
  }
  if (what == "remove") {
    const std::string key = body.key("key");
    const bool by_force = body.flag("by_force");
    body.end();
    const removal_view removed = e.remove(key, by_force);
    json cells = json::array();
    for (const place& at : removed.cells) cells.push_back(at.cell);
    return json_response({{"result", removed.found ? "removed" : "not_found"},
                          {"cells", cells},
                          {"lost", json_of_keys(removed.lost)},
                          {"lost_count", removed.lost_count},
                          {"state", state_of(id, e)}});
  }
  if (what == "tick") {
    const std::uint64_t milliseconds = body.number("milliseconds", 1, most_exact);
    body.end();
    e.tick(milliseconds);
    return json_response(state_of(id, e));
  }
  if (what == "search") {
    const std::uint64_t count = body.number("count", 1, most_searched);
    const std::uint64_t seed = body.seed("seed");
    body.end();
    const search_result s = e.search(count, seed);
    const interval within = s.measured.within();
    return json_response({{"queries", s.measured.queries},
                          {"hits", s.measured.hits},
                          {"rate", s.measured.rate()},
                          {"low", within.low},
                          {"high", within.high},
                          {"found", json_of_keys(s.found)}});
  }
  return std::nullopt;
}

// A GET request of a filter; nothing: there is no such endpoint.
std::optional<response> read(const request& r, const std::string& what, const demo_session& e) {
  if (what == "cells") {
    const auto [from, to] = stretch(r, e.filter().cells());
    const std::uint64_t count = std::min({to - from, queried(r, "count", all), most_cells_of_call});
    const std::vector<std::uint8_t> values = e.filter().values(from, count);
    return response{200, "application/octet-stream", {values.begin(), values.end()}};
  }
  if (what == "fill") {
    const auto [from, to] = stretch(r, e.filter().cells());
    const std::uint64_t ranges = std::clamp<std::uint64_t>(queried(r, "ranges", 1024), 1, most_ranges);
    const fill_ranges fill = e.filter().fill(from, to, ranges);
    return json_response({{"from", from}, {"to", to}, {"cells_of_range", fill.cells_of_range}, {"ones", fill.ones}});
  }
  if (what == "keys") {
    const std::uint64_t from = std::min(queried(r, "from", 0), e.keys().ever());
    const std::uint64_t to = from + std::min({queried(r, "count", 100), std::uint64_t{1000}, e.keys().ever() - from});
    json keys = json::array();
    for (std::uint64_t i = from; i < to; ++i) {
      const std::string& key = e.keys().at(i);
      keys.push_back({{"key", json_of_key(key)}, {"copies", e.keys().find(key)->copies}});
    }
    return json_response({{"total", e.keys().ever()}, {"distinct", e.distinct()}, {"keys", keys}});
  }
  if (what == "curve") {
    const std::uint64_t most = std::max(e.filter().parameters().capacity / 2 * 3, 2 * e.distinct()) + 1;
    return json_response({{"points", curve_of(e.filter().parameters(), e.filter().has_layers(), most, [] {})}});
  }
  if (what == "steps") {
    const std::uint64_t most = queried(r, "most", all);
    const bool whole = e.knows_keys() && text_size_of(e.steps()) <= most;
    return json_response({{"steps", whole ? json_of(e.steps()) : json(nullptr)}});
  }
  if (what == "file") return response{200, "application/octet-stream", e.filter().file()};
  return std::nullopt;
}

response owners_of(const std::string& number, const demo_session& e) {
  const std::uint64_t cell = number_from("cell", number);
  if (cell >= e.filter().cells()) {
    throw error(errc::not_found, {"no such cell", "cell", "below " + std::to_string(e.filter().cells()),
                                  std::to_string(cell), "use a smaller number"});
  }
  const owners_of_cell owners = e.owners(cell, 20);
  return json_response({{"cell", cell},
                        {"value", owners.value},
                        {"layer", owners.layer},
                        {"owners", json_of_keys(owners.named)},
                        {"owner_count", owners.count}});
}

}  // namespace

response demo_api::handle(const request& r) {
  return answered([&]() -> response {
    const std::vector<std::string> parts = parts_of(r);
    const bool posts = parts.size() == 1 && r.method == "POST";
    if (parts[0] == "filters" && posts) return made(from_request(r));
    if (parts[0] == "filters" && parts.size() > 1) return answer_of_filter(r, parts);
    if (parts[0] == "files" && posts) {
      check_body(r, most_file);
      return made(demo_session(r.body));
    }
    return rest_.handle(r);
  });
}

demo_session demo_api::from_request(const request& r) {
  check_body(r, most_body);
  fields body(r.body);
  const wanted_filter wanted = wanted_from(body);
  const std::string keys_of = body.text_if_any("keys_of");
  std::vector<step> steps = steps_from(body);
  body.end();
  if (!keys_of.empty()) {
    if (!steps.empty()) {
      throw error(errc::invalid_argument,
                  {"the keys are given twice", "keys_of", "", "keys_of and steps", "omit keys_of or steps"});
    }
    steps = session(keys_of).insertions();
  }
  return demo_session(wanted, steps);
}

response demo_api::made(demo_session session) {
  const std::string id = std::to_string(++made_);
  const auto at = sessions_.emplace(id, std::move(session)).first;
  return json_response(state_of(id, at->second), 201);
}

demo_session& demo_api::session(const std::string& id) {
  const auto at = sessions_.find(id);
  if (at != sessions_.end()) return at->second;
  throw error(errc::not_found, {"no such filter", "id", "", id.substr(0, 40), "create it again"});
}

response demo_api::answer_of_filter(const request& r, const std::vector<std::string>& parts) {
  check_body(r, most_body);
  const std::string& id = parts[1];
  demo_session& e = session(id);
  if (parts.size() == 2 && r.method == "GET") return json_response(state_of(id, e));
  if (parts.size() == 2 && r.method == "DELETE") {
    sessions_.erase(id);
    return {204, "", ""};
  }
  std::optional<response> done;
  if (parts.size() == 3 && r.method == "POST") done = posted(r, parts[2], id, e);
  if (parts.size() == 3 && r.method == "GET") done = read(r, parts[2], e);
  if (parts.size() == 4 && r.method == "GET" && parts[2] == "cells") done = owners_of(parts[3], e);
  if (!done) no_such_endpoint(r);
  return *done;
}

}  // namespace bloomery::playground
