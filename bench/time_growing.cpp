// Growth benchmark of scalable filters: time_growing [KEYS [ROUNDS]] inserts KEYS keys (10 million) one by one at 1%.
//
// memory   measured bits per key whenever the newest layer is full, and just after a layer was added; for comparison
//          the computed memory of RedisBloom's growth rule for the same number of keys
// FPR      the expected FPR, and the FPR measured with a million absent keys
// longest  the longest single insert of ROUNDS (3) runs, in CPU time of the thread (longest_call.hpp); for comparison
//          the time of the system to allocate a huge page: several milliseconds in a virtual machine whose host has no
//          free memory. New layers start with small pages, so no insert waits for a huge page
//
// --json FILE also writes the figures that have a target as JSON. time_families measures lookups.
#include "keys.hpp"
#include "longest_call.hpp"
#include "lookups.hpp"
#include "machine_facts.hpp"
#include "round_robin.hpp"

#include <bloomery/detail/storage.hpp>
#include <bloomery/kernel.hpp>
#include <bloomery/scalable_filter.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace bloomery;
using integers = scalable_filter<std::uint64_t>;

constexpr double target_fpr = 0.01;
constexpr std::size_t queries = 1'000'000;

double bits_per_key(double bytes, double keys) { return 8 * bytes / keys; }

// RedisBloom's growth rule: layers for 100 keys, 200, 400, ... with target FPRs p/2, p/4, p/8, ...; a layer with target
// FPR e has -ln(e) / ln(2)^2 bits per key. (RedisBloom then rounds up to a power of two, which is ignored here.)
struct redis_rule {
  double keys = 0;
  double bytes = 0;
  int layers = 0;

  double next_keys() const { return 100 * std::exp2(layers); }
  double next_bytes() const {
    return next_keys() * -std::log(target_fpr * std::exp2(-(layers + 1))) / (std::log(2) * std::log(2)) / 8;
  }
  void grow() {
    keys += next_keys();
    bytes += next_bytes();
    ++layers;
  }
  static redis_rule holding(double wanted) {
    redis_rule rule;
    while (rule.keys < wanted) rule.grow();
    return rule;
  }
};

double measured_fpr_of(const integers& seen, bench::query_list<std::uint64_t>& absent) {
  absent.renew();
  return static_cast<double>(bench::count_batch(seen, absent.view())) / queries;
}

struct worst_of_all {
  double full = 0;        // bits per key when the newest layer is full
  double grown = 0;       // bits per key just after a layer was added
  double fpr = 0;         // expected
  double measured = 0;    // FPR
  double redis_full = 0;  // RedisBloom's rule: as `full`
  double redis_grown = 0;
};

// Grows a filter by single inserts and prints a row for each new layer.
worst_of_all grow(std::uint64_t keys) {
  integers seen(target_fpr);
  bench::query_list<std::uint64_t> absent(1, queries, 0);
  std::printf("%6s %13s %10s %10s %22s %11s %11s\n", "layers", "keys", "bits/key", "just grown", "(RedisBloom's rule)",
              "expected", "measured");
  worst_of_all worst;
  std::uint64_t layer_bytes = seen.byte_size();
  std::size_t layers = 1;
  for (std::uint64_t i = 0; i < keys; ++i) {
    seen.insert(bench::random_word(i));
    if (seen.byte_size() == layer_bytes) continue;
    // The newest layer was full before this key. Keys reported present without being inserted count as inserted.
    const double count = static_cast<double>(i);
    const double full = bits_per_key(static_cast<double>(layer_bytes), count);
    const double grown = bits_per_key(static_cast<double>(seen.byte_size()), count);
    std::printf("%6zu %13.0f %10.2f %10.2f %22.2f\n", layers, count, full, grown,
                bits_per_key(redis_rule::holding(count).bytes, count));
    worst.full = std::max(worst.full, full);
    worst.grown = std::max(worst.grown, grown);
    layer_bytes = seen.byte_size();
    ++layers;
    const double exact = seen.expected_fpr();
    const double measured = measured_fpr_of(seen, absent);
    std::printf("%75s %9.4f%% %9.4f%%\n", "", 100 * exact, 100 * measured);
    worst.fpr = std::max(worst.fpr, exact);
    worst.measured = std::max(worst.measured, measured);
  }
  const auto all = static_cast<double>(keys);
  const double exact = seen.expected_fpr();
  const double measured = measured_fpr_of(seen, absent);
  worst.fpr = std::max(worst.fpr, exact);
  worst.measured = std::max(worst.measured, measured);
  std::printf("%6zu %13.0f %10.2f %10s %22.2f %9.4f%% %9.4f%%\n", layers, all,
              bits_per_key(static_cast<double>(layer_bytes), all), "",
              bits_per_key(redis_rule::holding(all).bytes, all), 100 * exact, 100 * measured);
  redis_rule rule;
  while (rule.keys + rule.next_keys() <= all * 1.05) rule.grow();
  worst.redis_full = bits_per_key(rule.bytes, rule.keys);
  worst.redis_grown = bits_per_key(rule.bytes + rule.next_bytes(), rule.keys);
  std::printf("RedisBloom's rule, grown from 100 keys to %.0f: %.1f bits per key when full, %.1f just grown\n",
              rule.keys, worst.redis_full, worst.redis_grown);
  return worst;
}

bench::longest_call longest_insert(std::uint64_t keys, int rounds) {
  bench::longest_call longest;
  for (int round = 0; round < rounds; ++round) {
    integers seen(target_fpr);
    double before = bench::thread_seconds();
    for (std::uint64_t i = 0; i < keys; ++i) {
      seen.insert(bench::random_word(i));
      const double now = bench::thread_seconds();
      before = longest.took(i, now - before) ? bench::thread_seconds() : now;
    }
    longest.end_round();
  }
  return longest;
}

// The median time in seconds of the first access to a new huge page.
double new_page_seconds() {
  constexpr std::uint64_t huge_page = std::uint64_t{2} << 20;
  heap_storage bytes(64 * huge_page);
  std::vector<double> times;
  for (std::uint64_t at = 0; at < bytes.size(); at += huge_page) {
    const double begin = bench::thread_seconds();
    bytes.data()[at] = 1;
    times.push_back(bench::thread_seconds() - begin);
  }
  return bench::median(times);
}

}  // namespace

int main(int argc, char** argv) try {
  std::uint64_t keys = 10'000'000;
  int rounds = 3;
  std::string json_file;
  CLI::App app("memory, FPR and longest insert of a scalable filter that grows at 1%");
  app.add_option("KEYS", keys, "keys to insert")->check(CLI::Range(1'000L, 100'000'000'000L))->capture_default_str();
  app.add_option("ROUNDS", rounds, "runs for the longest insert")->check(CLI::Range(1, 100))->capture_default_str();
  app.add_option("--json", json_file, "write the figures to this file");
  CLI11_PARSE(app, argc, argv);
  std::printf("grown at %g%%, kernels %s\n", 100 * target_fpr, kernel_name().c_str());
  const worst_of_all worst = grow(keys);
  const bench::longest_call longest = longest_insert(keys, rounds);
  std::printf("longest insert: %.0f us in every round, %.0f us at worst, %d rounds\n", 1e6 * longest.each_time(),
              1e6 * longest.ever(), rounds);
  const double page = new_page_seconds();
  std::printf("new huge page: %.0f us\n", 1e6 * page);
  bench::write_json(json_file, {{"keys", keys},
                                {"bits_full", worst.full},
                                {"bits_grown", worst.grown},
                                {"redis_bits_full", worst.redis_full},
                                {"redis_bits_grown", worst.redis_grown},
                                {"rate", worst.fpr},
                                {"measured", worst.measured},
                                {"rounds", rounds},
                                {"each_time_us", 1e6 * longest.each_time()},
                                {"ever_us", 1e6 * longest.ever()},
                                {"fresh_page_us", 1e6 * page}});
} catch (const std::exception& e) {
  std::fprintf(stderr, "time_growing: %s\n", e.what());
  return 1;
}
