// The C++ and the command of a plan make the filter that the plan describes. tests/command runs the commands.
#include <bloomery/any_filter.hpp>
#include <bloomery/scalable_filter.hpp>
#include <bloomery/sliding_window_filter.hpp>

#include "playground/visitor.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <regex>
#include <string>
#include <string_view>

namespace bloomery_tests {
namespace {

// The fields of PARAMS that the code determines.
json made(const bloomery::any_filter& filter) {
  const bloomery::params& p = filter.parameters();
  const auto named = [](const std::string& name) { return name.empty() ? json(nullptr) : json(name); };
  return {{"layout", named(p.layout)},
          {"scheme", named(p.scheme)},
          {"hash", named(p.hash)},
          {"seed", std::to_string(p.seed)},
          {"bits", p.geometry.bits},
          {"probes", p.geometry.probes},
          {"capacity", p.capacity},
          {"rate", p.target_fpr},
          {"window_keys", p.window().keys()},
          {"window_milliseconds", p.window().milliseconds()}};
}

template <class Hash>
json made(const bloomery::scalable_filter<std::string_view, Hash>& filter) {
  const bloomery::scalable_layer first = filter.layers().front();
  return {{"family", "growing"},
          {"bits", first.geometry.bits},
          {"probes", first.geometry.probes},
          {"capacity", first.capacity},
          {"rate", filter.target_fpr()}};
}

struct written {
  const char* wanted;
  std::string code;
  std::function<json()> make;
};

// The code is compiled, and compared as text without its line breaks.
#define CODE(...) \
#__VA_ARGS__ ";", [] { __VA_ARGS__; return made(filter); }

TEST(WrittenFilter, IsTheCodeThatMakesIt) {
  const written rows[] = {
      {R"({"capacity": 1000})",
       CODE(bloomery::any_filter filter(bloomery::complete({.capacity = 1000, .target_fpr = 0.01})))},
      {R"({"layout": "classic", "hash": "murmur3", "seed": "7", "capacity": 20, "rate": 0.05})",
       CODE(bloomery::any_filter filter(bloomery::complete(
           {.layout = "classic", .hash = "murmur3", .seed = 7, .capacity = 20, .target_fpr = 0.05})))},
      {R"({"layout": "counting", "capacity": 20, "rate": 1e-7})",
       CODE(bloomery::any_filter filter(
           bloomery::complete({.layout = "counting", .capacity = 20, .target_fpr = 1e-07})))},
      {R"({"layout": "classic", "capacity": 16, "bits": 64, "probes": 1})",
       CODE(bloomery::any_filter filter(bloomery::complete(
           {.layout = "classic", .geometry = {64, 1}, .capacity = 16, .target_fpr = 0.22273482905658715})))},
      {R"({"scheme": "pharo", "capacity": 10, "rate": 0.1})",
       CODE(bloomery::any_filter filter(bloomery::complete({.scheme = "pharo", .capacity = 10, .target_fpr = 0.1})))},
      {R"({"rate": 0.01, "window_keys": 1000})",
       CODE(bloomery::any_filter filter(bloomery::complete(
           {.layout = "sliding", .capacity = 1000, .target_fpr = 0.01, .extra = bloomery::window_of_keys(1000)})))},
      {R"({"layout": "sliding64", "capacity": 20, "rate": 0.05, "window_milliseconds": 7000})",
       CODE(bloomery::any_filter filter(
           bloomery::complete({.layout = "sliding64",
                               .capacity = 20,
                               .target_fpr = 0.05,
                               .extra = bloomery::window_of_time(std::chrono::milliseconds(7000))})))},
      {R"({"grows": true, "capacity": 20, "rate": 0.05})", CODE(bloomery::scalable_filter<> filter(0.05, {}, 20))},
      {R"({"grows": true, "capacity": 20, "rate": 0.05, "hash": "murmur3", "seed": "7"})",
       CODE(bloomery::scalable_filter<std::string_view, bloomery::murmur3> filter(0.05, {7}, 20))},
  };
  visitor v;
  for (const written& row : rows) {
    SCOPED_TRACE(row.wanted);

    const json plan = v.post("plans", json::parse(row.wanted));

    EXPECT_EQ(plan["cpp"], std::regex_replace(row.code, std::regex(R"(\( )"), "("));
    expect_contains(plan["filter"], row.make());
  }
}

#undef CODE

}  // namespace
}  // namespace bloomery_tests
