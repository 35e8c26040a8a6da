// Latency benchmark of sliding-window filters: time_window [KEYS [ROUNDS]] finds the longest insert near the start
// of a new generation.
//
// The window holds KEYS keys (10 million), counted by keys, in memory. Each of ROUNDS (3) runs times every single
// insert from a million keys before a new generation begins to three million after, in CPU time of the thread
// (longest_call.hpp). A split_block512 filter shows how much of this is due to the machine. time_families measures the
// other costs.
// --json FILE also writes the longest times as JSON.
#include "longest_call.hpp"
#include "machine_facts.hpp"
#include "round_robin.hpp"

#include <bloomery/filter.hpp>
#include <bloomery/sliding_window_filter.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace bloomery;

// `count` keys from `next` on, which is advanced.
std::vector<std::uint64_t> next_keys(std::uint64_t& next, std::uint64_t count) {
  std::vector<std::uint64_t> keys(count);
  for (std::uint64_t& key : keys) key = next++;
  return keys;
}

// The longest of `timed` inserts into the filter that make() returns, after `before` untimed inserts.
template <class Make>
nlohmann::ordered_json time_inserts(const char* name, int rounds, std::uint64_t before, std::uint64_t timed,
                                    Make make) {
  bench::longest_call longest;
  for (int round = 0; round < rounds; ++round) {
    auto filter = make();
    std::uint64_t next = 0;
    for (std::uint64_t left = before; left > 0; left -= std::min<std::uint64_t>(left, 1 << 20)) {
      filter.insert(std::span<const std::uint64_t>(next_keys(next, std::min<std::uint64_t>(left, 1 << 20))));
    }
    for (std::uint64_t i = 0; i < timed; ++i) {
      const double begin = bench::thread_seconds();
      filter.insert(next++);
      longest.took(i, bench::thread_seconds() - begin);
    }
    longest.end_round();
  }
  const double each_time = 1e6 * longest.each_time(), ever = 1e6 * longest.ever();
  std::printf("%-12s longest of %llu inserts: %.0f us in every round, %.0f us at worst, %d rounds\n", name,
              static_cast<unsigned long long>(timed), each_time, ever, rounds);
  return {{"each_time_us", each_time}, {"ever_us", ever}};
}

}  // namespace

int main(int argc, char** argv) try {
  std::uint64_t n = 10'000'000;
  int rounds = 3;
  std::string json_file;
  CLI::App app("the longest insert near the start of a new generation of a sliding window");
  app.add_option("KEYS", n, "keys in the window")->check(CLI::Range(1'000L, 100'000'000'000L))->capture_default_str();
  app.add_option("ROUNDS", rounds, "runs for the longest insert")->check(CLI::Range(1, 100))->capture_default_str();
  app.add_option("--json", json_file, "write the figures to this file");
  CLI11_PARSE(app, argc, argv);
  const std::uint64_t around = std::min<std::uint64_t>(1'000'000, n / 8);
  const std::uint64_t before =
      (n + window_slices - 1) / window_slices * window_generations - around;  // all slices nearly full
  nlohmann::ordered_json figures = {{"keys", n}, {"rounds", rounds}};
  figures["split_block512"] = time_inserts("split_block512", rounds, n - around, 4 * around, [&] {
    return filter<std::uint64_t, layouts::split_block512, mix>(n, 0.01);
  });
  figures["sliding"] = time_inserts("sliding", rounds, before, 4 * around, [&] {
    return sliding_window_filter<std::uint64_t, layouts::sliding, mix>({.window = window_of_keys(n)});
  });
  figures["sliding64"] = time_inserts("sliding64", rounds, before, 4 * around, [&] {
    return sliding_window_filter<std::uint64_t, layouts::sliding64, mix>({.window = window_of_keys(n)});
  });
  bench::write_json(json_file, std::move(figures));
} catch (const std::exception& e) {
  std::fprintf(stderr, "time_window: %s\n", e.what());
  return 1;
}
