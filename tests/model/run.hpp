// Runs the model: draws sequences from seeds, tries them, shrinks the first that fails and prints it.
//
//   BLOOMERY_LONG=1               many more seeds
//   BLOOMERY_MODEL_SEED=17        this seed alone
//   BLOOMERY_MODEL_OPERATIONS=... these operations, as printed, with that seed (1 if none is given)
#pragma once

#include "model/operation.hpp"
#include "model/shrink.hpp"
#include "model/subject.hpp"
#include "model/trial.hpp"
#include "support/long_tests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace bloomery_model {

using bloomery_tests::is_long;

/// The setting of a seed: filters that become overfull, that just suffice, and of many blocks.
inline setting setting_of(std::uint64_t seed) {
  constexpr std::array<std::uint64_t, 3> capacities = {universe, 64, 20'000};
  return {.seed = seed, .capacity = capacities[seed % capacities.size()]};
}

/// A random operation that the kind has.
inline operation drawn(std::mt19937_64& random, const contract& c) {
  std::vector<std::pair<verb, unsigned>> choices = {{verb::look_up, 6}, {verb::refuse, 2}};
  const auto add = [&](bool has, verb what, unsigned weight) {
    if (has) choices.emplace_back(what, weight);
  };
  const bool by_time = c.memory == memory::window_of_time || c.memory == memory::window_of_servers;
  add(c.able.can_insert, verb::insert, 40);
  add(c.able.can_remove, verb::remove, 25);
  add(c.able.can_merge, verb::merge, 5);
  add(c.able.can_clear, verb::clear, 1);
  add(c.able.can_insert, verb::cancel, 1);
  add(c.able.grows, verb::fill, c.is_remote() ? 15 : 5);
  add(by_time, verb::tick, 20);
  add(c.memory == memory::window_of_time, verb::turn_back, 3);
  add(c.has(verb::reopen), verb::reopen, 8);
  add(c.has(verb::kill), verb::kill, 5);
  add(c.has(verb::copy), verb::copy, 3);
  add(c.has(verb::rotate), verb::rotate, 5);
  add(c.has(verb::give_up), verb::give_up, 3);
  add(c.has(verb::rebuild), verb::rebuild, 3);
  add(c.has(verb::replace), verb::replace, !c.able.can_insert ? 30 : c.is_remote() ? 5 : 1);

  unsigned sum = 0;
  for (const auto& [what, weight] : choices) sum += weight;
  auto dice = static_cast<unsigned>(random() % sum);
  operation o;
  for (const auto& [what, weight] : choices) {
    o.what = what;
    if (dice < weight) break;
    dice -= weight;
  }
  // Few keys, or as many as fill several batches.
  const key_id most = random() % 4 == 0 ? 400 : random() % 2 == 0 ? 5 : 60;
  o.first = static_cast<key_id>(random() % universe);
  o.count = static_cast<key_id>(random() % (most + 1));
  o.as = static_cast<form>(random() % 3);
  o.amount = static_cast<std::uint32_t>(random() % (random() % 8 == 0 ? 100 : 10));
  return o;
}

/// What is wrong after these operations on a fresh filter; empty if nothing is.
inline std::string broken(const kind& k, const setting& s, const std::vector<operation>& operations) {
  std::size_t step = 0;
  try {
    trial t(k, s);
    for (; step < operations.size(); ++step) t.step(operations[step]);
    t.finish();
    return {};
  } catch (const violated& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("throws: ") + e.what();
  }
}

/// Tries the sequences of several seeds; shrinks and prints the first that fails.
inline testing::AssertionResult holds(const kind& k, std::uint64_t seeds, std::size_t length,
                                      std::chrono::milliseconds shrinking = std::chrono::seconds(20)) {
  const char* const only_seed = std::getenv("BLOOMERY_MODEL_SEED");
  const char* const only_operations = std::getenv("BLOOMERY_MODEL_OPERATIONS");
  const std::uint64_t first = only_seed != nullptr ? std::stoull(only_seed) : 1;
  const std::uint64_t last = only_seed != nullptr || only_operations != nullptr ? first : seeds;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const setting s = setting_of(seed);
    std::vector<operation> operations;
    if (only_operations != nullptr) {
      operations = operations_of(only_operations);
    } else {
      std::mt19937_64 random(seed);
      for (std::size_t i = 0; i < length; ++i) operations.push_back(drawn(random, k.promises));
    }
    const std::string why = broken(k, s, operations);
    if (why.empty()) continue;

    // With servers and processes, a sequence need not fail every time: this is the message of its last failure.
    std::string latest = why;
    const auto fails = [&](const std::vector<operation>& some) {
      const std::string now = broken(k, s, some);
      if (!now.empty()) latest = now;
      return !now.empty();
    };
    const std::vector<operation> shortest = shrunk(operations, fails, simpler, shrinking);
    std::ostringstream text;
    text << k.promises.name << ", seed " << seed << ", capacity " << s.capacity << ": " << why << "\nshrunk to "
         << shortest.size() << " of " << operations.size() << " operations: " << latest;
    for (const operation& o : shortest) text << "\n  " << o;
    return testing::AssertionFailure() << text.str();
  }
  return testing::AssertionSuccess();
}

}  // namespace bloomery_model
