// Round-robin measurement on a machine with other load: contestants take turns, each round in another random order, and
// ratios are taken within a round.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// Keeps the compiler from removing the computation of a result.
inline void consume(std::uint64_t result) { asm volatile("" : : "r"(result) : "memory"); }

inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// CPU time of all threads.
inline double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// The seconds of work() by the clock `now`.
template <class Work>
double seconds_of(double (*now)(), Work work) {
  const double begin = now();
  work();
  return now() - begin;
}

/// The time of a measurement by two clocks.
struct timing {
  timing(double cpu_time, double wall_time) : cpu(cpu_time), wall(wall_time) {}
  timing(double measured) : timing(measured, measured) {}  // NOLINT(google-explicit-constructor): only one clock

  double cpu;
  double wall;
};

/// Seconds per pass, repeated for at least `least` seconds; prepare() runs before each pass, untimed.
///
/// If `this_thread` does all the work, its CPU time excludes the time during which the thread was not running. A pass
/// counts with the smaller of the two times: reading the thread's clock takes a system call, which is significant for a
/// short pass, and a pass without interruption needs the wall clock only. If several threads work, both times are the
/// wall-clock time.
template <class Prepare, class Pass>
timing seconds_per_pass(double least, bool this_thread, Prepare prepare, Pass pass) {
  timing sum(0);
  std::uint64_t passes = 0;
  do {
    prepare();
    double wall = 0;
    const double thread = seconds_of(thread_seconds, [&] { wall = seconds_of(wall_seconds, pass); });
    sum.wall += wall;
    sum.cpu += this_thread ? std::min(wall, thread) : wall;
    ++passes;
  } while (sum.wall < least);
  return {sum.cpu / static_cast<double>(passes), sum.wall / static_cast<double>(passes)};
}

struct entry {
  std::string name;
  std::string operation;
  std::string way;
  unsigned threads;
  std::function<timing()> measure;   ///< nanoseconds per key
  std::vector<double> samples = {};  ///< CPU time, one per round
  std::vector<double> wall = {};     ///< wall-clock time of the same rounds
};

/// Measures all entries in turn after a warm-up round. An entry whose measurement takes longer than `patience` seconds
/// is not measured again: the warm-up is its only sample.
inline void race(
    std::vector<entry>& entries, unsigned rounds, double patience, const std::function<void()>& before_round = [] {}) {
  std::mt19937_64 dice(1);
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<bool> slow(entries.size());
  for (unsigned round = 0; round <= rounds; ++round) {
    before_round();
    std::shuffle(order.begin(), order.end(), dice);
    for (const std::size_t i : order) {
      if (slow[i]) continue;
      const double begin = wall_seconds();
      const timing sample = entries[i].measure();
      slow[i] = round == 0 && wall_seconds() - begin > patience;
      if (round == 0 && !slow[i]) continue;
      entries[i].samples.push_back(sample.cpu);
      entries[i].wall.push_back(sample.wall);
    }
  }
}

struct summary {
  double least;
  double first_quartile;
  double median;
  double third_quartile;
};

inline summary summarize(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(samples.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, samples.size() - 1);
    return samples[below] + (samples[above] - samples[below]) * (place - static_cast<double>(below));
  };
  return {samples.front(), at(0.25), at(0.5), at(0.75)};
}

inline double median(std::vector<double> samples) { return summarize(std::move(samples)).median; }

/// The median of the ratios of the rounds.
inline double median_ratio(const std::vector<double>& ours, const std::vector<double>& theirs) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) ratios.push_back(ours[i] / theirs[i]);
  return median(std::move(ratios));
}

}  // namespace bench
