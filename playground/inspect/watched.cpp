#include "playground/inspect/watched.hpp"

#include <bloomery/detail/generations.hpp>
#include <bloomery/error.hpp>

#include <exception>
#include <utility>

namespace bloomery::playground {
namespace {

std::int64_t now() { return static_cast<std::int64_t>(milliseconds_since_1970()); }

}  // namespace

watched::watched(std::string name, const char* kind) : name_(std::move(name)), kind_(kind) {}

json watched::look(std::uint64_t, std::chrono::milliseconds) {
  const std::lock_guard lock(turn_);
  json seen = {{"name", name_},
               {"kind", kind_},
               {"version", version_},
               {"state", !problem_.is_null() ? "failed"
                         : known_.is_null()  ? "reading"
                                             : "ready"},
               {"done", done_},
               {"error", problem_},
               {"failed_at", problem_.is_null() ? json(nullptr) : json(failed_at_)},
               {"changed_at", known_.is_null() ? json(nullptr) : json(changed_at_)}};
  if (!known_.is_null()) seen.update(known_);
  return seen;
}

json watched::past(std::int64_t after) {
  const std::lock_guard lock(turn_);
  const std::optional<double> pace = history_.keys_per_second();
  json full_in = nullptr;
  if (pace && known_["filter"]["family"] != "windowed") {
    const json& left = known_["facts"]["keys_left"];
    if (!left.is_null() && left != 0) full_in = left.get<double>() / *pace;
  }
  return {{"name", name_},
          {"kind", kind_},
          {"samples", history_.samples_after(after)},
          {"keys_per_second", pace ? json(*pace) : json(nullptr)},
          {"full_in", full_in}};
}

void watched::stop() {
  const std::lock_guard lock(turn_);
  stop_ = true;
}

bool watched::ending() {
  const std::lock_guard lock(turn_);
  return stop_;
}

void watched::when_news(std::function<void(std::uint64_t)> call) {
  const std::lock_guard lock(turn_);
  when_news_ = std::move(call);
}

bool watched::update() {
  try {
    read_if_changed();
    fail(nullptr);
  } catch (const error& e) {
    json problem = json_of(e)["error"];
    if (e.text().hint.empty()) problem["way_out"] = looked_for_again;
    fail(std::move(problem));
    return e.code() != errc::unavailable;
  } catch (const std::exception& e) {
    fail(json_of(error(errc::io, {e.what(), name_, "", "", looked_for_again}))["error"]);
  }
  return true;
}

void watched::publish(json facts, std::optional<std::int64_t> at) {
  const std::lock_guard lock(turn_);
  if (known_ == facts) return;
  known_ = std::move(facts);
  problem_ = nullptr;
  changed_at_ = at.value_or(now());
  done_ = 1;
  remember(true);
  notify();
}

void watched::progress(double done) {
  const std::lock_guard lock(turn_);
  if (!known_.is_null() || done < done_ + 0.05) return;
  done_ = done;
  notify();
}

void watched::fail(json problem) {
  const std::lock_guard lock(turn_);
  remember(problem.is_null());
  if (problem_ == problem) return;
  if (problem_.is_null()) failed_at_ = now();
  problem_ = std::move(problem);
  notify();
}

void watched::remember(bool readable) {
  if (known_.is_null()) return;
  if (readable) {
    history_.add(now(), known_["keys"].get<std::uint64_t>(), known_["certified"].get<double>());
  } else {
    history_.add_gap(now());
  }
}

void watched::notify() {
  ++version_;
  if (when_news_) when_news_(version_);
}

}  // namespace bloomery::playground
