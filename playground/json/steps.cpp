#include "playground/json/steps.hpp"

#include <cstdint>
#include <utility>

namespace bloomery::playground {
namespace {

step step_from(fields one) {
  step result;
  if (one.has("remove")) {
    std::string key = one.key("remove");
    result = remove_step{std::move(key), one.flag("by_force")};
  } else if (one.has("tick")) {
    result = tick_step{one.number("tick", 1, most_exact)};
  } else {
    const bool joins = one.flag("joins");
    result = add_step{one.keys(demo_session::most_keys), joins};
  }
  one.end();
  return result;
}

json json_of(const step& s) {
  if (const auto* removed = std::get_if<remove_step>(&s)) {
    return {{"remove", json_of_key(removed->key)}, {"by_force", removed->by_force}};
  }
  if (const auto* passed = std::get_if<tick_step>(&s)) return {{"tick", passed->milliseconds}};
  const auto& added = std::get<add_step>(s);
  json result;
  if (const auto* range = std::get_if<address_range>(&added.keys)) {
    result["addresses"] = {{"seed", std::to_string(range->seed)}, {"first", range->first}, {"count", range->count}};
  } else {
    result["keys"] = json_of_keys(std::get<std::vector<std::string>>(added.keys));
  }
  if (added.joins) result["joins"] = true;
  return result;
}

}  // namespace

std::vector<step> steps_from(fields& body) {
  const json list = body.take("steps");
  std::vector<step> steps;
  if (list.is_null()) return steps;
  if (!list.is_array()) {
    throw error(errc::invalid_argument, {"invalid value", "steps", "a list of steps", text_of(list).substr(0, 40),
                                         "for example {\"steps\": [{\"keys\": [\"Madrid\"]}]}"});
  }
  steps.reserve(list.size());
  for (const json& one : list) steps.push_back(step_from(fields::of(one)));
  return steps;
}

json json_of(const std::vector<step>& steps) {
  json list = json::array();
  for (const step& one : steps) list.push_back(json_of(one));
  return list;
}

std::uint64_t text_size_of(const std::vector<step>& steps) noexcept {
  std::uint64_t bytes = 0;
  for (const step& one : steps) {
    if (const auto* removed = std::get_if<remove_step>(&one)) bytes += removed->key.size();
    const auto* added = std::get_if<add_step>(&one);
    const auto* keys = added == nullptr ? nullptr : std::get_if<std::vector<std::string>>(&added->keys);
    if (keys == nullptr) continue;
    for (const std::string& key : *keys) bytes += key.size();
  }
  return bytes;
}

}  // namespace bloomery::playground
