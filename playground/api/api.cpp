#include "playground/api/api.hpp"
#include "playground/api/written_filter.hpp"

#include "app/advice_text.hpp"

#include <bloomery/advice.hpp>
#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/kernel.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/scheme.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

namespace bloomery::playground {
namespace {

constexpr std::uint64_t most_keys_of_call = 100'000;
constexpr std::uint64_t most_cells_of_call = 100'000;
constexpr std::uint64_t most_ranges = 16'384;
constexpr std::uint64_t most_searched = 1'000'000;
constexpr std::uint64_t all = ~std::uint64_t{0};
constexpr int most_waiting = 48;  // long-polling requests: half of the server's threads

response json_response(const json& value, int status = 200) { return {status, "application/json", text_of(value)}; }

response error_response(const error& e) { return json_response(json_of(e), status_of(e.code())); }

[[noreturn]] void no_such_thing(const request& r) {
  throw error(errc::not_found, {"no such endpoint", "path", "a method and path of the API",
                                r.method + " " + r.path.substr(0, 100), "see docs/playground-api.md"});
}

// The parts of a path: "/api/1/filters" has three.
std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (end > at) parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::uint64_t number_from(const std::string& name, const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!text.empty() && problem == std::errc() && end == text.data() + text.size()) return number;
  throw error(errc::invalid_argument,
              {"invalid value", name, "a whole number below 2^64", "'" + text.substr(0, 40) + "'", "use digits only"});
}

std::uint64_t queried(const request& r, const std::string& name, std::uint64_t otherwise) {
  const auto at = r.query.find(name);
  return at == r.query.end() ? otherwise : number_from(name, at->second);
}

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
          {"steps", e.steps()},
          {"can_undo", e.can_undo()},
          {"truth", e.knows_keys()}};
}

json answers_json(const answers& a, const shown_filter& filter) {
  json keys = json::array();
  for (const key_view& view : a.keys) keys.push_back(json_of(view, filter.block_cells()));
  return {{"keys", keys}, {"count", a.count}};
}

// ---- plans ----------------------------------------------------------------------------------------------------------

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

json api::plan_of(const wanted_filter& wanted) const {
  const params p = params_of(wanted);
  const std::uint64_t most = p.capacity + p.capacity / 2 + 1;
  json filter = json_of(p);
  if (wanted.grows) filter["family"] = "growing";
  return {{"filter", filter},
          {"rate", rate_of(p, wanted.grows, p.capacity)},
          {"bits_a_key",
           static_cast<double>(p.geometry.bits) / static_cast<double>(std::max<std::uint64_t>(p.capacity, 1))},
          {"bytes", bytes_for(p.geometry.bits)},
          {"curve", curve_of(p, wanted.grows, most)},
          {"command", command_of(wanted, p)},
          {"cpp", cpp_of(wanted, p)},
          {"probes", wanted.grows ? json(nullptr) : probes_of(p)},
          {"layouts", layouts_of(wanted, p)}};
}

json api::curve_of(const params& p, bool grows, std::uint64_t most) const {
  const std::uint64_t points = points_of(p);
  json curve = json::array();
  std::uint64_t before = all;
  for (std::uint64_t i = 0; i <= points; ++i) {
    const auto keys =
        static_cast<std::uint64_t>(static_cast<double>(most) * static_cast<double>(i) / static_cast<double>(points));
    if (keys == before) continue;
    before = keys;
    check_goes_on();
    curve.push_back({{"keys", keys}, {"rate", rate_of(p, grows, keys)}});
  }
  return curve;
}

void api::check_goes_on() const {
  if (!stopped_) return;
  throw error(errc::unavailable, {"the playground is shutting down", "", "", "", "start it again"});
}

api::api(api_options options)
    : threads_(options.threads), filters_(options.most), inspections_(std::move(options.inspections)) {}

response api::handle(const request& r) {
  try {
    return answer(r);
  } catch (const error& e) {
    return error_response(e);
  } catch (const std::bad_alloc&) {
    return error_response(
        error(errc::unavailable, {"not enough memory", "", "", "", "make a smaller request, or try again later"}));
  } catch (const std::exception& e) {
    return error_response(error(errc::io, {e.what(), "", "", "", "try again"}));
  }
}

response api::answer(const request& r) {
  const std::vector<std::string> parts = parts_of(r.path);
  if (parts.size() < 3 || parts[0] != "api" || parts[1] != "1") no_such_thing(r);
  const std::string& what = parts[2];
  const std::size_t most = what == "files" ? most_file : most_body;
  if (r.body.size() > most) {
    throw error(errc::too_large,
                {"the request is too large", "body", "at most " + std::to_string(most >> 20) + " MiB",
                 std::to_string(r.body.size()) + " bytes",
                 what == "files" ? "name the file when you start the playground" : "split it into several requests"});
  }
  const std::vector<std::string> rest(parts.begin() + 3, parts.end());
  const bool get = r.method == "GET";
  const bool post = r.method == "POST";

  if (what == "about" && rest.empty() && get) return json_response(about());
  if (what == "plans" && rest.empty() && post) {
    fields body(r.body);
    const wanted_filter wanted = wanted_from(body);
    body.end();
    return json_response(plan_of(wanted));
  }
  if (what == "filters" && rest.empty() && post) {
    fields body(r.body);
    const wanted_filter wanted = wanted_from(body);
    body.end();
    demo_session::check_size(wanted);
    const std::string id =
        filters_.put(bytes_for(params_of(wanted).geometry.bits), [&] { return demo_session(wanted); });
    const auto filter = filters_.get(id);
    const std::lock_guard lock(filter->turn);
    return json_response(state_of(id, filter->it), 201);
  }
  if (what == "files" && rest.empty() && post) {
    const std::string id = filters_.put(2 * r.body.size(), [&] { return demo_session(r.body); });
    const auto filter = filters_.get(id);
    const std::lock_guard lock(filter->turn);
    return json_response(state_of(id, filter->it), 201);
  }
  if (what == "filters" && !rest.empty()) return answer_of_filter(r, rest[0], {rest.begin() + 1, rest.end()});
  if (what == "jobs" && rest.empty() && post)
    return json_response(jobs_.look(add_job(jobs_, fields(r.body), threads_)), 202);
  if (what == "jobs" && rest.size() == 1 && get) return json_response(jobs_.look(rest[0]));
  if (what == "jobs" && rest.size() == 1 && r.method == "DELETE") {
    jobs_.cancel(rest[0]);
    return {204, "", ""};
  }
  if (what == "inspections" && !rest.empty()) return answer_of_inspection(r, rest);
  no_such_thing(r);
}

json api::about() const {
  json layouts = json::array();
  for (const char* name : layouts_to_choose()) {
    const params p{.layout = name};
    layouts.push_back({{"name", name},
                       {"family", name_of(family_of(p))},
                       {"block_bits", block_bits_of(p)},
                       {"cell_bits", cell_bits_of(p)}});
  }
  json schemes_here = json::array();
  for (const scheme& s : schemes()) schemes_here.push_back({{"name", s.name}, {"origin", s.origin}});
  json named = json::array();
  for (std::size_t i = 0; i < inspections_.size(); ++i) {
    named.push_back({{"number", i}, {"name", inspections_[i]->name()}, {"kind", inspections_[i]->kind()}});
  }
  return {{"version", BLOOMERY_VERSION},
          {"api", 1},
          {"session", session_},
          {"kernel", kernel_name()},
          {"threads", threads_},
          {"layouts", layouts},
          {"schemes", schemes_here},
          {"hashes", hashes_to_choose()},
          {"limits",
           {{"bits", demo_session::most_bits},
            {"keys", demo_session::most_keys},
            {"keys_of_call", most_keys_of_call},
            {"owned_keys", demo_session::most_owned_keys},
            {"key_bytes", demo_session::most_key_bytes},
            {"body_bytes", most_body},
            {"filters", filters_.most().filters},
            {"jobs", jobs::most_waiting}}},
          {"inspections", named}};
}

response api::answer_of_filter(const request& r, const std::string& id, const std::vector<std::string>& rest) {
  const bool get = r.method == "GET";
  const bool post = r.method == "POST";
  if (rest.empty() && r.method == "DELETE") {
    filters_.drop(id);
    return {204, "", ""};
  }
  const std::string what = rest.empty() ? "" : rest[0];
  const auto filter = filters_.get(id);
  std::unique_lock lock(filter->turn);
  demo_session& e = filter->it;
  const auto changed = [&] {
    filters_.weigh(id, e.byte_size());
    return state_of(id, e);
  };

  if (rest.empty() && get) return json_response(state_of(id, e));
  if (rest.size() == 1 && post) {
    if (what == "undo" || what == "reset") {
      what == "undo" ? e.undo() : e.reset();
      return json_response(changed());
    }
    fields body(r.body);
    if (what == "add" || what == "ask") {
      key_list keys = body.keys(most_keys_of_call);
      body.end();
      std::optional<session_store::reservation> room;
      if (what == "add") room.emplace(filters_.make_room(demo_session::byte_size_of(keys)));
      const answers a = what == "add" ? e.add(std::move(keys)) : e.ask(std::move(keys));
      json result = answers_json(a, e.filter());
      if (what == "add") {
        result["new"] = a.yes;
        result["state"] = changed();
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
                            {"state", changed()}});
    }
    if (what == "tick") {
      const std::uint64_t milliseconds = body.number("milliseconds", 1, (std::uint64_t{1} << 53) - 1);
      body.end();
      e.tick(milliseconds);
      return json_response(changed());
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
  }
  if (rest.size() == 1 && get) {
    if (what == "cells") {
      const auto [from, to] = stretch(r, e.filter().cells());
      const std::uint64_t count = std::min({to - from, queried(r, "count", all), most_cells_of_call});
      const std::vector<std::uint8_t> values = e.filter().values(from, count);
      return {200, "application/octet-stream", {values.begin(), values.end()}};
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
      const params p = e.filter().parameters();
      const bool grows = e.filter().has_layers();
      lock.unlock();  // slow for some schemes
      return json_response({{"points", curve_of(p, grows, most)}});
    }
    if (what == "file") return {200, "application/octet-stream", e.filter().file(), "filter.bloom"};
  }
  if (rest.size() == 2 && what == "cells" && get) {
    const std::uint64_t cell = number_from("cell", rest[1]);
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
  no_such_thing(r);
}

// Waits in short steps, so that stopping the server takes effect soon.
json api::news_of(inspection& i, std::uint64_t after) {
  json seen = i.look(0, std::chrono::milliseconds(0));
  if (after == 0 || seen["version"].get<std::uint64_t>() > after) return seen;
  struct seat {
    explicit seat(std::atomic<int>& of) : waiting(of), number(++of) {}
    ~seat() { --waiting; }
    std::atomic<int>& waiting;
    int number;
  } const mine(waiting_);
  if (mine.number > most_waiting) {
    throw error(errc::unavailable,
                {"too many requests are waiting for changes", "", "at most " + std::to_string(most_waiting), "",
                 "close some pages, or omit 'after'"});
  }
  constexpr auto step = std::chrono::milliseconds(200);
  for (int steps = 0; steps < 50 && !stopped_ && seen["version"].get<std::uint64_t>() <= after; ++steps) {
    seen = i.look(after, step);
  }
  return seen;
}

response api::answer_of_inspection(const request& r, const std::vector<std::string>& rest) {
  const std::uint64_t number = number_from("inspection", rest[0]);
  if (number >= inspections_.size()) {
    throw error(errc::not_found, {"no filter with this number was named at startup", "inspection",
                                  "below " + std::to_string(inspections_.size()), std::to_string(number),
                                  "name it on the command line: bloomery playground FILE"});
  }
  inspection& i = *inspections_[number];
  if (rest.size() == 1 && r.method == "GET") {
    const std::uint64_t after = queried(r, "after", 0);
    json seen = news_of(i, after);
    seen["number"] = number;
    seen["session"] = session_;
    return json_response(seen);
  }
  if (rest.size() == 2 && rest[1] == "history" && r.method == "GET") {
    json past = i.past(static_cast<std::int64_t>(std::min(queried(r, "after", 0), std::uint64_t{1} << 53)));
    past["number"] = number;
    past["session"] = session_;
    return json_response(past);
  }
  if (rest.size() == 2 && rest[1] == "ask" && r.method == "POST") {
    fields body(r.body);
    const key_list keys = body.keys(demo_session::most_shown_keys);
    body.end();
    return json_response(i.ask(keys));
  }
  no_such_thing(r);
}

}  // namespace bloomery::playground
