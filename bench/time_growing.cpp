// time_growing [KEYS [ROUNDS]]: what a growing filter costs, grown at 1 % to so many keys (10 million) one by one.
//
// memory   bits a key by measured bytes whenever the newest layer is full, and just after it has grown; beside it what
//          RedisBloom's rule needs for as many keys, computed
// rate     the exact one, and as measured with a million absent keys
// longest  single insert, by the wall clock and by this thread's own time, which leaves out what the system gave
//          others; beside it what the system takes to hand out a fresh huge page: in a virtual machine some milliseconds
//          if its host has to find the memory first. New layers start with small pages, so that no insert waits for it
// lookups  nanoseconds a key (chained: none starts before the one before has ended) beside a filter<> of layout line
//          made for the right number of keys at the same rate: both take turns; medians over the rounds, and the median
//          of the rounds' ratios
#include "keys.hpp"
#include "ours.hpp"
#include "round_robin.hpp"

#include <bloomery/filter.hpp>
#include <bloomery/growing_filter.hpp>
#include <bloomery/kernel.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace bloomery;
using integers = growing_filter<std::uint64_t>;
using right_size = filter<std::uint64_t, line>;

constexpr double rate = 0.01;
constexpr std::size_t queries = 1'000'000;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double bits_a_key(double bytes, double keys) { return 8 * bytes / keys; }

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
  const std::uint64_t hits =
      bench::count_in_pieces(absent.view(), [&](auto keys, auto bitmap) { seen.may_contain(keys, bitmap); });
  return static_cast<double>(hits) / queries;
}

struct longest {
  double wall = 0;
  double own = 0;
  std::uint64_t at = 0;
};

// Grows it by single inserts, and prints a row at each step.
longest grow(integers& seen, std::uint64_t keys) {
  bench::query_list<std::uint64_t> absent(1, queries, 0);
  std::printf("%6s %13s %10s %10s %22s %11s %11s\n", "layers", "keys", "bits a key", "just grown",
              "(RedisBloom's, so many)", "exact rate", "measured");
  longest worst;
  std::uint64_t layer_bytes = seen.byte_size();
  std::size_t layers = 1;
  double wall = bench::wall_seconds(), own = bench::thread_seconds();
  for (std::uint64_t i = 0; i < keys; ++i) {
    seen.insert(bench::random_word(i));
    const double wall_now = bench::wall_seconds(), own_now = bench::thread_seconds();
    worst.wall = std::max(worst.wall, wall_now - wall);
    if (own_now - own > worst.own) worst.own = own_now - own, worst.at = i;
    wall = wall_now, own = own_now;
    if (seen.byte_size() == layer_bytes) continue;
    // Before this key the newest was full; what was lost by then counts as a key that is in.
    const double full = static_cast<double>(i);
    std::printf("%6zu %13.0f %10.2f %10.2f %22.2f\n", layers, full, bits_a_key(static_cast<double>(layer_bytes), full),
                bits_a_key(static_cast<double>(seen.byte_size()), full),
                bits_a_key(redis_rule::holding(full).bytes, full));
    layer_bytes = seen.byte_size();
    ++layers;
    const double exact = seen.false_positive_rate();
    std::printf("%75s %9.4f %% %9.4f %%\n", "", 100 * exact, 100 * measured_rate_of(seen, absent));
    wall = bench::wall_seconds(), own = bench::thread_seconds();
  }
  const auto all = static_cast<double>(keys);
  std::printf("%6zu %13.0f %10.2f %10s %22.2f %9.4f %% %9.4f %%\n", layers, all,
              bits_a_key(static_cast<double>(layer_bytes), all), "", bits_a_key(redis_rule::holding(all).bytes, all),
              100 * seen.false_positive_rate(), 100 * measured_rate_of(seen, absent));
  redis_rule rule;
  while (rule.keys + rule.next_keys() <= all * 1.05) rule.grow();
  std::printf("RedisBloom's rule, grown from 100 keys to %.0f: %.1f bits a key when full, %.1f just grown\n", rule.keys,
              bits_a_key(rule.bytes, rule.keys), bits_a_key(rule.bytes + rule.next_bytes(), rule.keys));
  return worst;
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
  return median(times);
}

void race(const std::string& name, int rounds, const std::function<void()>& renew, const std::function<void()>& ours,
          const std::function<void()>& other) {
  std::vector<double> times, others, ratios;
  for (int round = 0; round <= rounds; ++round) {
    renew();
    const auto time = [](const std::function<void()>& pass) {
      return bench::seconds_a_pass(
                 0, true, [] {}, pass) /
             queries * 1e9;
    };
    const bool first = round % 2 == 0;
    double a = first ? time(ours) : 0;
    const double b = time(other);
    if (!first) a = time(ours);
    if (round == 0) continue;  // warming up
    times.push_back(a);
    others.push_back(b);
    ratios.push_back(a / b);
  }
  std::printf("%-16s %10.1f ns %10.1f ns %8.2f\n", name.c_str(), median(times), median(others), median(ratios));
}

template <class Filter>
std::uint64_t count_single(const Filter& filter, std::span<const std::uint64_t> keys) {
  std::uint64_t hits = 0;
  for (const std::uint64_t key : keys) hits += filter.may_contain(key) ? 1 : 0;
  return hits;
}

// One after another: the next does not start before the one before has read its memory.
template <class Filter>
std::uint64_t count_chained(const Filter& filter, std::span<const std::uint64_t> keys) {
  std::uint64_t hits = 0;
  for (const std::uint64_t key : keys) {
    hits += filter.may_contain(key) ? 1 : 0;
#if defined(__x86_64__)
    asm volatile("lfence" : : : "memory");
#elif defined(__aarch64__)
    asm volatile("dsb ld\n\tisb" : : : "memory");
#endif
  }
  return hits;
}

template <class Filter>
std::uint64_t count_batch(const Filter& filter, std::span<const std::uint64_t> keys) {
  return bench::count_in_pieces(keys, [&](auto some, auto bitmap) { filter.may_contain(some, bitmap); });
}

void compare(const integers& seen, std::uint64_t keys, int rounds) {
  right_size fixed(keys, seen.false_positive_rate());
  std::vector<std::uint64_t> some;
  for (std::uint64_t i = 0; i < keys;) {
    some.clear();
    for (; some.size() < 65536 && i < keys; ++i) some.push_back(bench::random_word(i));
    fixed.insert(some);
  }
  std::printf("%-16s %13s %13s %8s   %llu keys, %.2f and %.2f bits a key\n", "lookups", "growing", "right size",
              "ratio", static_cast<unsigned long long>(keys),
              bits_a_key(static_cast<double>(seen.byte_size()), static_cast<double>(keys)),
              bits_a_key(static_cast<double>(fixed.byte_size()), static_cast<double>(keys)));
  for (const unsigned percent : {0u, 100u}) {
    bench::query_list<std::uint64_t> asked(keys, queries, percent);
    const std::string kind = percent == 0 ? "absent" : "present";
    const auto renew = [&] { asked.renew(); };
    race(
        kind + ", single", rounds, renew, [&] { bench::consume(count_single(seen, asked.view())); },
        [&] { bench::consume(count_single(fixed, asked.view())); });
    race(
        kind + ", chained", rounds, renew, [&] { bench::consume(count_chained(seen, asked.view())); },
        [&] { bench::consume(count_chained(fixed, asked.view())); });
    race(
        kind + ", batch", rounds, renew, [&] { bench::consume(count_batch(seen, asked.view())); },
        [&] { bench::consume(count_batch(fixed, asked.view())); });
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const double keys = argc > 1 ? std::atof(argv[1]) : 10'000'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 9;
  if (!(keys >= 1 && keys <= 1e11) || rounds < 1) throw std::runtime_error("usage: time_growing [KEYS [ROUNDS]]");
  const auto n = static_cast<std::uint64_t>(keys);
  std::printf("grown at %g %%, kernels %s\n", 100 * rate, kernel_name().c_str());
  integers seen(rate);
  const longest worst = grow(seen, n);
  std::printf("longest insert: %.0f us of this thread's time (key %llu), %.0f us by the clock on the wall\n",
              1e6 * worst.own, static_cast<unsigned long long>(worst.at), 1e6 * worst.wall);
  std::printf("a fresh huge page: %.0f us\n", 1e6 * fresh_page());
  compare(seen, n, rounds);
} catch (const std::exception& e) {
  std::fprintf(stderr, "time_growing: %s\n", e.what());
  return 1;
}
