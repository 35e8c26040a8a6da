#include "playground/api/api.hpp"

#include "playground/api/plans.hpp"

#include <bloomery/error.hpp>
#include <bloomery/kernel.hpp>
#include <bloomery/scheme.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

namespace bloomery::playground {
namespace {

constexpr int most_waiting = 48;  // long-polling requests: half of the server's threads

}  // namespace

api::api(api_options options) : threads_(options.threads), inspections_(std::move(options.inspections)) {}

response api::handle(const request& r) {
  return answered([&] { return answer(r); });
}

response api::answer(const request& r) {
  const std::vector<std::string> parts = parts_of(r);
  check_body(r, most_body);
  const std::string& what = parts[0];
  const bool alone = parts.size() == 1;
  const bool get = r.method == "GET";
  const bool post = r.method == "POST";

  if (what == "about" && alone && get) return json_response(about());
  if (what == "plans" && alone && post) {
    fields body(r.body);
    const wanted_filter wanted = wanted_from(body);
    body.end();
    return json_response(plan_of(wanted, [this] { check_goes_on(); }));
  }
  if (what == "jobs" && alone && post) return json_response(jobs_.look(add_job(jobs_, fields(r.body), threads_)), 202);
  if (what == "jobs" && parts.size() == 2 && get) return json_response(jobs_.look(parts[1]));
  if (what == "jobs" && parts.size() == 2 && r.method == "DELETE") {
    jobs_.cancel(parts[1]);
    return {204, "", ""};
  }
  if (what == "inspections" && !alone) return answer_of_inspection(r, parts);
  no_such_endpoint(r);
}

void api::check_goes_on() const {
  if (!stopped_) return;
  throw error(errc::unavailable, {"the playground is shutting down", "", "", "", "start it again"});
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
            {"file_bytes", most_file},
            {"jobs", jobs::most_waiting}}},
          {"inspections", named}};
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
  constexpr auto pause = std::chrono::milliseconds(200);
  for (int steps = 0; steps < 50 && !stopped_ && seen["version"].get<std::uint64_t>() <= after; ++steps) {
    seen = i.look(after, pause);
  }
  return seen;
}

response api::answer_of_inspection(const request& r, const std::vector<std::string>& parts) {
  const std::uint64_t number = number_from("inspection", parts[1]);
  if (number >= inspections_.size()) {
    throw error(errc::not_found, {"no filter with this number was named at startup", "inspection",
                                  "below " + std::to_string(inspections_.size()), std::to_string(number),
                                  "name it on the command line: bloomery playground FILE"});
  }
  inspection& i = *inspections_[number];
  if (parts.size() == 2 && r.method == "GET") {
    const std::uint64_t after = queried(r, "after", 0);
    json seen = news_of(i, after);
    seen["number"] = number;
    seen["session"] = session_;
    return json_response(seen);
  }
  if (parts.size() == 3 && parts[2] == "history" && r.method == "GET") {
    json past = i.past(static_cast<std::int64_t>(std::min(queried(r, "after", 0), std::uint64_t{1} << 53)));
    past["number"] = number;
    past["session"] = session_;
    return json_response(past);
  }
  if (parts.size() == 3 && parts[2] == "ask" && r.method == "POST") {
    fields body(r.body);
    const key_list keys = body.keys(demo_session::most_shown_keys);
    body.end();
    return json_response(i.ask(keys));
  }
  no_such_endpoint(r);
}

}  // namespace bloomery::playground
