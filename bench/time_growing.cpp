// time_growing [KEYS [ROUNDS]]: what a growing filter costs, grown at 1 % to so many keys (10 million) one by one.
//
// memory   bits a key by measured bytes whenever the newest layer is full, and just after it has grown; beside it what
//          RedisBloom's rule needs for as many keys, computed
// rate     the exact one, and as measured with a million absent keys
// longest  single insert while it grows again so often (three times), in this thread's own time (longest_call.hpp);
//          beside it what the system takes to hand out a fresh huge page: in a virtual machine some milliseconds if its
//          host has to find the memory first. New layers start with small pages, so that no insert waits for it
//
// With --json FILE the figures that have a target come out as JSON, too. What look-ups cost is time_families' matter.
#include "keys.hpp"
#include "longest_call.hpp"
#include "look_ups.hpp"
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

constexpr double rate = 0.01;
constexpr std::size_t queries = 1'000'000;

double bits_per_key(double bytes, double keys) { return 8 * bytes / keys; }

// RedisBloom's rule: 100 keys first, then twice as many each time, at p/2, p/4, p/8, ...; each of them -ln(e) / ln(2)^2
// bits a key. (It then rounds up to a power of two; that is left out.)
struct redis_rule {
  double keys = 0;
  double bytes = 0;
  int layers = 0;

  double next_keys() const { return 100 * std::exp2(layers); }
  double next_bytes() const {
    return next_keys() * -std::log(rate * std::exp2(-(layers + 1))) / (std::log(2) * std::log(2)) / 8;
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

double measured_rate_of(const integers& seen, bench::query_list<std::uint64_t>& absent) {
  absent.renew();
  return static_cast<double>(bench::count_batch(seen, absent.view())) / queries;
}

struct worst_of_all {
  double full = 0;   // bits a key when the newest layer is full
  double grown = 0;  // and just after it has grown
  double rate = 0;   // exact
  double measured = 0;
  double redis_full = 0;  // as above, by RedisBloom's rule
  double redis_grown = 0;
};

// Grows it by single inserts, and prints a row at each step.
worst_of_all grow(std::uint64_t keys) {
  integers seen(rate);
  bench::query_list<std::uint64_t> absent(1, queries, 0);
  std::printf("%6s %13s %10s %10s %22s %11s %11s\n", "layers", "keys", "bits a key", "just grown",
              "(RedisBloom's, so many)", "exact rate", "measured");
  worst_of_all worst;
  std::uint64_t layer_bytes = seen.byte_size();
  std::size_t layers = 1;
  for (std::uint64_t i = 0; i < keys; ++i) {
    seen.insert(bench::random_word(i));
    if (seen.byte_size() == layer_bytes) continue;
    // Before this key the newest was full; what was lost by then counts as a key that is in.
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
    const double measured = measured_rate_of(seen, absent);
    std::printf("%75s %9.4f %% %9.4f %%\n", "", 100 * exact, 100 * measured);
    worst.rate = std::max(worst.rate, exact);
    worst.measured = std::max(worst.measured, measured);
  }
  const auto all = static_cast<double>(keys);
  const double exact = seen.expected_fpr();
  const double measured = measured_rate_of(seen, absent);
  worst.rate = std::max(worst.rate, exact);
  worst.measured = std::max(worst.measured, measured);
  std::printf("%6zu %13.0f %10.2f %10s %22.2f %9.4f %% %9.4f %%\n", layers, all,
              bits_per_key(static_cast<double>(layer_bytes), all), "",
              bits_per_key(redis_rule::holding(all).bytes, all), 100 * exact, 100 * measured);
  redis_rule rule;
  while (rule.keys + rule.next_keys() <= all * 1.05) rule.grow();
  worst.redis_full = bits_per_key(rule.bytes, rule.keys);
  worst.redis_grown = bits_per_key(rule.bytes + rule.next_bytes(), rule.keys);
  std::printf("RedisBloom's rule, grown from 100 keys to %.0f: %.1f bits a key when full, %.1f just grown\n", rule.keys,
              worst.redis_full, worst.redis_grown);
  return worst;
}

bench::longest_call longest_insert(std::uint64_t keys, int rounds) {
  bench::longest_call longest;
  for (int round = 0; round < rounds; ++round) {
    integers seen(rate);
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

// Median seconds to the first byte of a fresh huge page.
double fresh_page() {
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
  CLI::App app("what a growing filter costs, grown at 1 %");
  app.add_option("KEYS", keys, "it grows to")->check(CLI::Range(1'000L, 100'000'000'000L))->capture_default_str();
  app.add_option("ROUNDS", rounds, "it grows, for the longest insert")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--json", json_file, "file for the figures");
  CLI11_PARSE(app, argc, argv);
  std::printf("grown at %g %%, kernels %s\n", 100 * rate, kernel_name().c_str());
  const worst_of_all worst = grow(keys);
  const bench::longest_call longest = longest_insert(keys, rounds);
  std::printf("longest insert: %.0f us each time, %.0f us ever, of %d times\n", 1e6 * longest.each_time(),
              1e6 * longest.ever(), rounds);
  const double page = fresh_page();
  std::printf("a fresh huge page: %.0f us\n", 1e6 * page);
  bench::write_json(json_file, {{"keys", keys},
                                {"bits_full", worst.full},
                                {"bits_grown", worst.grown},
                                {"redis_bits_full", worst.redis_full},
                                {"redis_bits_grown", worst.redis_grown},
                                {"rate", worst.rate},
                                {"measured", worst.measured},
                                {"rounds", rounds},
                                {"each_time_us", 1e6 * longest.each_time()},
                                {"ever_us", 1e6 * longest.ever()},
                                {"fresh_page_us", 1e6 * page}});
} catch (const std::exception& e) {
  std::fprintf(stderr, "time_growing: %s\n", e.what());
  return 1;
}
