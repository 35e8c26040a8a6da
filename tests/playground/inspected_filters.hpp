// Filters to inspect, and functions that wait for the state of an inspection.
#pragma once

#include <bloomery/any_filter.hpp>

#include "playground/inspect/inspection.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery_tests {

using bloomery::playground::inspection;
using bloomery::playground::json;

// Follows the versions until one satisfies `wanted`.
inline json follow(inspection& i, const std::string& what, const std::function<bool(const json&)>& wanted) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  json seen = i.look(0, std::chrono::milliseconds(0));
  while (!wanted(seen)) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("waited in vain: " + what + seen.dump());
    seen = i.look(seen["version"].get<std::uint64_t>(), std::chrono::milliseconds(500));
  }
  return seen;
}

inline json ready(inspection& i) {
  return follow(i, "ready", [](const json& seen) { return seen["state"] == "ready"; });
}

inline json failed(inspection& i, const std::string& code) {
  return follow(i, code, [&](const json& seen) { return seen["state"] == "failed" && seen["error"]["code"] == code; });
}

inline std::uint64_t sum_of(const json& numbers) {
  std::uint64_t sum = 0;
  for (const json& one : numbers) sum += one.get<std::uint64_t>();
  return sum;
}

inline bloomery::params usual(std::uint64_t capacity = 20'000) {
  return bloomery::complete({.layout = "blocked", .capacity = capacity, .target_fpr = 0.01});
}

inline std::vector<std::string> texts(std::uint64_t first, std::uint64_t count) {
  std::vector<std::string> keys;
  for (std::uint64_t i = first; i < first + count; ++i) keys.push_back("key " + std::to_string(i));
  return keys;
}

template <class Filter>
void insert(Filter& filter, std::uint64_t first, std::uint64_t count) {
  const std::vector<std::string> keys = texts(first, count);
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  filter.insert(std::span<const std::string_view>(views));
}

inline bloomery::any_filter made(std::uint64_t keys, const bloomery::params& p = usual()) {
  bloomery::any_filter filter(p);
  insert(filter, 0, keys);
  return filter;
}

}  // namespace bloomery_tests
