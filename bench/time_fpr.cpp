// Benchmark of exact statistics: time_fpr [MIB [ROUNDS]] measures measure_fill(), count_shared() and expected_fpr().
//
// measure_fill   for a filter of MIB MiB, compared with a plain read of the same memory by the same thread: the sum of
//                its words, vectorized by the compiler. Both take turns; medians, and the median of the ratios
// count_shared   for two such filters, compared with a plain read of both
// expected_fpr   for capacities n = 1000 to 10^10 keys, in microseconds: the slowest
#include "round_robin.hpp"

#include <bloomery/detail/storage.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/kernel.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/params.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace bloomery;

volatile std::uint64_t sink = 0;  // keeps the compiler from removing the work

using bench::median;

double seconds_of(auto work) { return bench::seconds_of(bench::wall_seconds, work); }

void read_plainly(std::span<const std::uint8_t> bytes) {
  std::array<std::uint64_t, 8> sums{};
  for (std::size_t at = 0; at + 64 <= bytes.size(); at += 64) {
    std::array<std::uint64_t, 8> words;
    std::memcpy(words.data(), bytes.data() + at, 64);
    for (std::size_t i = 0; i < 8; ++i) sums[i] += words[i];
  }
  for (const std::uint64_t sum : sums) sink = sink + sum;
}

heap_storage random_bits(std::uint64_t size, std::uint64_t seed) {
  heap_storage bytes(size);
  for (std::uint64_t at = 0; at < size; at += 8) {
    const std::uint64_t word = mix64(at + seed);
    std::memcpy(bytes.data() + at, &word, 8);
  }
  return bytes;
}

std::span<const std::uint8_t> view(const heap_storage& bytes) { return {bytes.data(), bytes.size()}; }

void compare(const std::string& name, int rounds, auto work, auto read) {
  std::vector<double> times, reads, ratios;
  for (int round = 0; round <= rounds; ++round) {
    const double time = seconds_of(work);
    const double plain = seconds_of(read);
    if (round == 0) continue;  // warm-up
    times.push_back(time);
    reads.push_back(plain);
    ratios.push_back(time / plain);
  }
  std::printf("%-24s %10.1f ms %10.1f ms %8.2f\n", name.c_str(), 1e3 * median(times), 1e3 * median(reads),
              median(ratios));
}

constexpr const char* layouts[] = {"split_block", "split_block512", "blocked", "blocked_page", "classic"};

void time_measurements(std::uint64_t size, int rounds) {
  const heap_storage bytes = random_bits(size, 1);
  std::printf("%llu MiB, one thread, kernels %s\n", static_cast<unsigned long long>(size >> 20), kernel_name().c_str());
  std::printf("%-24s %13s %13s %8s\n", "", "time", "plain read", "ratio");
  for (const char* layout : layouts) {
    const bool eight = std::string(layout) == "split_block" || std::string(layout) == "split_block512";
    const params p = complete({.layout = layout, .geometry = {8 * size, eight ? 8u : 7u}});
    compare(
        "measure_fill " + p.layout, rounds, [&] { sink = sink + measure_fill(p, view(bytes)).ones; },
        [&] { read_plainly(view(bytes)); });
  }
  const heap_storage other = random_bits(size, 2);
  compare(
      "count_shared", rounds, [&] { sink = sink + count_shared(view(bytes), view(other)).both; },
      [&] { read_plainly(view(bytes)), read_plainly(view(other)); });
}

void time_expected_fpr() {
  std::printf("%-24s %13s\n", "expected_fpr", "slowest");
  for (const char* layout : layouts) {
    double slowest = 0;
    for (const double rate : {1e-1, 1e-2, 1e-4, 1e-6}) {
      for (std::uint64_t n = 1000; n <= 10'000'000'000; n *= 10) {
        params p;
        try {
          p = complete({.layout = layout, .capacity = n, .target_fpr = rate});
        } catch (const std::exception&) {
          continue;  // above the layout's maximum size
        }
        std::vector<double> times;
        for (const double share : {0.9, 1.0, 1.1, 0.5, 1.5}) {
          const auto keys = static_cast<std::uint64_t>(share * static_cast<double>(n));
          times.push_back(seconds_of([&] { sink = sink + (expected_fpr(p, keys) > 0.5 ? 1 : 0); }));
        }
        slowest = std::max(slowest, median(times));
      }
    }
    std::printf("%-24s %10.1f us\n", layout, 1e6 * slowest);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const int mebibytes = argc > 1 ? std::atoi(argv[1]) : 1024;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  if (mebibytes < 1 || rounds < 1) throw std::runtime_error("usage: time_fpr [MIB [ROUNDS]]");
  time_measurements(static_cast<std::uint64_t>(mebibytes) << 20, rounds);
  time_expected_fpr();
} catch (const std::exception& e) {
  std::fprintf(stderr, "time_fpr: %s\n", e.what());
  return 1;
}
