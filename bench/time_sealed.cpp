// time_sealed [KEYS [ROUNDS [WIDTH]]]: a sealed filter beside a filter of layout line at the same error, in one
// process.
//
// build   ns a key of fuse_build() and of insert_all() of as many hashes, with one thread and with two
// lookup  ns of a call on one key and of a key in a batch of 4096, for present and for absent keys, in random order
//
// Turns are taken; medians, and the median of the ratios. Times are of the processor for lookups and builds by one
// thread, so that what else runs on the machine disturbs less, and by the clock for builds by two.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/fuse.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/params.hpp>
#include <bloomery/sealed_filter.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

namespace {

using namespace bloomery;

volatile std::uint64_t sink = 0;  // results go here, so that they are computed

double processor_seconds() {
  std::timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double seconds_of(double (*now)(), auto work) {
  const double begin = now();
  work();
  return now() - begin;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Nanoseconds a key of both, in turns.
void compare(const char* name, double (*now)(), std::uint64_t keys, int rounds, auto ours, auto beside) {
  std::vector<double> times, others, ratios;
  for (int round = 0; round <= rounds; ++round) {
    const double time = seconds_of(now, ours);
    const double other = seconds_of(now, beside);
    if (round == 0) continue;  // warming up
    times.push_back(time);
    others.push_back(other);
    ratios.push_back(time / other);
  }
  const double each = 1e9 / static_cast<double>(keys);
  std::printf("%-28s %8.2f ns %8.2f ns %8.2f\n", name, each * median(times), each * median(others), median(ratios));
  std::fflush(stdout);
}

template <fuse_fingerprint F>
void measure(std::uint64_t n, int rounds) {
  const double rate = fuse_rate(8 * sizeof(F), n);
  const params p =
      complete({.layout = "line", .hash = "mix", .keys = key_kind::u64le, .capacity = n, .target_rate = rate});
  std::vector<std::uint64_t> keys(n);
  for (std::uint64_t i = 0; i < n; ++i) keys[i] = i;
  using sealed = sealed_filter<std::uint64_t, F>;
  using plain = filter<std::uint64_t, line>;
  std::optional<sealed> s;
  std::optional<plain> f;
  for (const unsigned threads : {1u, 2u}) {
    compare(
        threads == 1 ? "build, 1 thread" : "build, 2 threads", threads == 1 ? processor_seconds : clock_seconds, n,
        rounds, [&] { s.emplace(sealed::build(keys, threads)); },
        [&] {
          f.emplace(p.geometry, n);
          f->insert_all(keys, threads);
        });
  }
  constexpr std::size_t queries = std::size_t{1} << 22;
  constexpr std::size_t batch = 4096;
  std::vector<std::uint64_t> asked(queries);
  for (const bool present : {true, false}) {
    for (std::size_t i = 0; i < queries; ++i) asked[i] = present ? multiply_high(mix64(i + 1), n) : n + i;
    const auto one_by_one = [&](const auto& filter) {
      std::uint64_t found = 0;
      for (const std::uint64_t key : asked) found += filter.may_contain(key) ? 1 : 0;
      sink = sink + found;
    };
    const auto in_batches = [&](const auto& filter) {
      std::uint64_t bitmap[batch / 64];
      for (std::size_t i = 0; i < queries; i += batch) {
        filter.may_contain(std::span<const std::uint64_t>(asked).subspan(i, batch), bitmap);
        sink = sink + bitmap[0];
      }
    };
    compare(
        present ? "one by one, present" : "one by one, absent", processor_seconds, queries, rounds,
        [&] { one_by_one(*s); }, [&] { one_by_one(*f); });
    compare(
        present ? "batch, present" : "batch, absent", processor_seconds, queries, rounds, [&] { in_batches(*s); },
        [&] { in_batches(*f); });
  }
  std::printf("%-28s %8.3f    %8.3f    %8.2f\n", "bits a key",
              static_cast<double>(s->bit_size()) / static_cast<double>(n),
              static_cast<double>(f->bit_size()) / static_cast<double>(n),
              static_cast<double>(s->bit_size()) / static_cast<double>(f->bit_size()));
}

}  // namespace

int main(int argc, char** argv) try {
  const double keys = argc > 1 ? std::atof(argv[1]) : 1e7;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  const int width = argc > 3 ? std::atoi(argv[3]) : 8;
  if (keys < 1 || keys > 1e10 || rounds < 1 || (width != 8 && width != 16)) {
    throw std::runtime_error("usage: time_sealed [KEYS [ROUNDS [8|16]]]");
  }
  std::printf("%.0f keys\n%-28s %11s %11s %8s\n", keys, "", width == 8 ? "fuse8" : "fuse16", "line", "ratio");
  const auto n = static_cast<std::uint64_t>(keys);
  width == 8 ? measure<std::uint8_t>(n, rounds) : measure<std::uint16_t>(n, rounds);
} catch (const std::exception& e) {
  std::fprintf(stderr, "time_sealed: %s\n", e.what());
  return 1;
}
