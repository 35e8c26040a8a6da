// The fault suite for filters on Redis: rounds of real failures of real servers, while clients insert keys into filters
// and look them up. Nothing that was acknowledged may be absent afterwards, except where docs/redis.md says so.
//
//   bloomery_redis_faults [--seconds N | --rounds N] [--seed N] [--case NAME]
//
// Without options it plays one round of each case with a fixed seed; with BLOOMERY_LONG=1 it plays rounds for ten
// minutes with a new seed. A round that fails prints the options that repeat its choices; the timing of threads and
// servers differs. The table at the end has a row per case and kind of filter. Exit status 0: nothing was lost; 1: a
// round failed; 2: an error; 77: there is no server program.
#include "faults/redis/cases.hpp"
#include "redis/filters.hpp"
#include "redis/servers.hpp"
#include "support/long_tests.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>

namespace bloomery_tests {

crowds::crowds(fault_round& round, std::span<const filter_kind> kinds,
               const std::function<crowd_options(filter_kind)>& options)
    : round_(round) {
  for (const filter_kind kind : kinds) {
    crowd_options own = options(kind);
    all.push_back(std::make_unique<crowd>(kind, std::move(own), round.random()));
  }
}

void crowds::wait_for_keys(std::uint64_t more) const {
  for (const auto& c : all) {
    const std::uint64_t before = c->acknowledged();
    wait_until(
        "more keys are acknowledged", [&] { return c->acknowledged() >= before + more; }, std::chrono::seconds(60));
  }
}

void crowds::wait_for_a_long_call() const {
  const auto end = steady::now() + std::chrono::milliseconds(500);
  while (std::none_of(all.begin(), all.end(), [](const auto& c) { return c->is_in_a_long_call(); })) {
    if (steady::now() > end) return;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void crowds::end() {
  for (const auto& c : all) c->end();
}

void crowds::judge(const std::function<bloomery::redis_filter(const crowd&)>& fresh) {
  end();
  for (const auto& c : all) {
    c->judge(round_.rows[c->kind()], [&] {
      return fresh ? fresh(*c) : bloomery::redis_filter::open(c->options().addresses.front(), c->options().redis);
    });
  }
}

std::vector<fault_case> fault_cases() {
  return {{"crash-everysec", crash_with_the_last_second_cut_off},
          {"crash-always", crash_with_a_synced_log},
          {"restart", restart_by_a_signal},
          {"description", lose_the_description},
          {"eviction", evict_keys},
          {"connections", lose_connections},
          {"failover", fail_over_in_a_cluster},
          {"sentinel", fail_over_by_a_sentinel, true},
          {"slots", move_slots},
          {"replacement", replace_filters},
          {"drop", drop_clear_and_replace},
          {"growth", grow_while_reading_copies}};
}

namespace {

struct run_options {
  std::optional<std::uint64_t> seconds;
  std::optional<std::uint64_t> rounds;
  std::uint64_t seed = 1;
  std::string only;
};

run_options read(int count, char** words) {
  run_options o;
  if (is_long()) {
    o.seconds = 600;
    o.seed = std::random_device()();
  }
  for (int i = 1; i < count; i += 2) {
    const std::string name = words[i];
    if (i + 1 == count) throw std::runtime_error("missing value of " + name);
    const std::string value = words[i + 1];
    if (name == "--case") {
      o.only = value;
    } else if (name == "--seed") {
      o.seed = std::stoull(value);
    } else if (name == "--seconds") {
      o.seconds = std::stoull(value);
    } else if (name == "--rounds") {
      o.rounds = std::stoull(value);
      o.seconds.reset();
    } else {
      throw std::runtime_error("unknown option " + name + ": expected --seconds, --rounds, --seed or --case");
    }
  }
  if (!o.seconds && !o.rounds) o.rounds = 1;
  return o;
}

struct played {
  fault_case what;
  std::map<filter_kind, tally> rows = {};
};

void print_table(const std::vector<played>& cases) {
  std::printf("\n%-15s %-9s %7s %13s %9s %5s %8s %8s %7s\n", "case", "filter", "rounds", "acknowledged", "spanning",
              "lost", "excused", "damaged", "failed");
  for (const played& c : cases) {
    for (const auto& [kind, t] : c.rows) {
      std::printf("%-15s %-9s %7" PRIu64 " %13" PRIu64 " %9" PRIu64 " %5" PRIu64 " %8" PRIu64 " %8" PRIu64 " %7" PRIu64
                  "\n",
                  c.what.name, name_of(kind).c_str(), t.rounds, t.acknowledged, t.spanning, t.lost, t.excused,
                  t.damaged, t.failed);
    }
  }
  std::printf(
      "acknowledged: keys; spanning: calls of which answered keys were in doubt after a connection broke; lost: "
      "acknowledged keys found absent;\n"
      "excused: absent as documented; damaged: keys reported as damaged or not found; failed: calls, before they were\n"
      "repeated\n");
}

// False: the round failed.
bool play(played& c, std::uint64_t seed) {
  std::vector<std::string> problems;
  fault_round round{std::mt19937_64(seed), c.rows};
  try {
    c.what.play(round);
  } catch (const std::exception& e) {
    problems.push_back(std::string("the round was not completed: ") + e.what());
  }
  for (auto& [kind, row] : c.rows) {
    problems.insert(problems.end(), row.problems.begin(), row.problems.end());
    row.problems.clear();
  }
  for (std::size_t i = 0; i < problems.size() && i < 10; ++i) std::printf("  %s\n", problems[i].c_str());
  if (problems.empty()) return true;
  std::printf("FAILED: repeat with --case %s --seed %" PRIu64 " --rounds 1\n", c.what.name, seed);
  return false;
}

int play_all(const run_options& options) {
  if (test_server::program().empty()) {
    std::printf("SKIP %s\n", test_server::how_to_get_one);
    return 77;
  }
  std::printf("seed %" PRIu64 "\n", options.seed);
  std::vector<played> cases;
  for (const fault_case& one : fault_cases()) {
    if (options.only.empty() ? is_long() || !one.only_long : options.only == one.name) cases.push_back({one});
  }
  if (cases.empty()) throw std::runtime_error("unknown case " + options.only);
  const auto began = steady::now();
  const auto is_over = [&](std::uint64_t round) {
    if (options.rounds) return round >= *options.rounds;
    return steady::now() - began >= std::chrono::seconds(*options.seconds);
  };
  bool good = true;
  for (std::uint64_t round = 0; !is_over(round); ++round) {
    for (played& c : cases) {
      if (options.seconds && is_over(round)) break;
      good &= play(c, options.seed + round);
      std::fflush(stdout);
    }
  }
  print_table(cases);
  std::printf("%.0f seconds\n", std::chrono::duration<double>(steady::now() - began).count());
  return good ? 0 : 1;
}

}  // namespace
}  // namespace bloomery_tests

int main(int count, char** words) {
  try {
    return bloomery_tests::play_all(bloomery_tests::read(count, words));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bloomery_redis_faults: %s\n", e.what());
    return 2;
  }
}
