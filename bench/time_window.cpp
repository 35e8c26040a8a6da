// time_window [KEYS...]: filters with a window beside a line filter of equal error, and the longest insert while they turn.
//
// For each number of keys (100000 and 10000000 if none is given): a line filter at 1 % with that many keys, and window and
// window_line filters of a window of as many, at their worst moment. Nanoseconds a key, the median of rounds. With
// `pause KEYS` instead: a window of KEYS, by keys, in memory; every single insert is timed from a million keys before a new
// generation begins to three million after, in processor time, and the longest ones come out, with those of a line filter
// beside them: what the machine itself adds.
#include <bloomery/filter.hpp>
#include <bloomery/windowed_filter.hpp>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace bloomery;
using clock_type = std::chrono::steady_clock;

template <class Work>
double nanoseconds(Work work) {
  const auto begin = clock_type::now();
  work();
  return std::chrono::duration<double, std::nano>(clock_type::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Keys that no other call has had.
std::vector<std::uint64_t> next_keys(std::uint64_t& next, std::uint64_t count) {
  std::vector<std::uint64_t> keys(count);
  for (std::uint64_t& key : keys) key = next++;
  return keys;
}

template <class Filter>
void time_filter(const char* name, Filter filter, std::uint64_t n, std::uint64_t held) {
  std::uint64_t next = 0;
  constexpr std::uint64_t piece = 1'000'000;
  std::vector<double> inserts;
  for (std::uint64_t left = held; left > 0;) {
    const std::vector<std::uint64_t> keys = next_keys(next, std::min(left, piece));
    const double each = nanoseconds([&] { filter.insert(std::span<const std::uint64_t>(keys)); });
    inserts.push_back(each / static_cast<double>(keys.size()));
    left -= keys.size();
  }
  const double rate = filter.false_positive_rate();

  std::vector<std::uint64_t> present(std::min(n, piece)), absent(present.size()), answers(present.size() / 64 + 1);
  std::mt19937_64 random(1);
  for (std::uint64_t& key : present) key = next - 1 - random() % (n / 10 * 9);
  for (std::uint64_t& key : absent) key = random() | std::uint64_t{1} << 63;
  std::vector<double> found, refused, one_found, one_refused;
  std::uint64_t hits = 0;
  const auto batch = [&](const std::vector<std::uint64_t>& keys, std::vector<double>& times) {
    times.push_back(nanoseconds([&] { filter.may_contain(std::span<const std::uint64_t>(keys), answers); }) /
                    static_cast<double>(keys.size()));
  };
  const auto singly = [&](const std::vector<std::uint64_t>& keys, std::vector<double>& times) {
    times.push_back(nanoseconds([&] {
                      for (const std::uint64_t key : keys) hits += filter.may_contain(key) ? 1 : 0;
                    }) /
                    static_cast<double>(keys.size()));
  };
  for (int round = 0; round < (n < piece ? 41 : 9); ++round) {
    batch(present, found);
    batch(absent, refused);
    singly(present, one_found);
    singly(absent, one_refused);
  }
  std::printf(
      "%-12s %9llu keys  %5.2f bits a key  %.3f %%   batch: insert %6.1f  present %6.1f  absent %6.1f"
      "   one: present %6.1f  absent %6.1f%s\n",
      name, static_cast<unsigned long long>(n), static_cast<double>(filter.bit_size()) / static_cast<double>(n),
      rate * 100, median(inserts), median(found), median(refused), median(one_found), median(one_refused),
      hits == 0 ? "?" : "");
}

// Processor time of this thread: what others on the machine take is not an insert's.
double thread_nanoseconds() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

template <class Filter>
void time_pauses(const char* name, Filter filter, std::uint64_t before, std::uint64_t timed) {
  std::uint64_t next = 0;
  for (std::uint64_t left = before; left > 0; left -= std::min<std::uint64_t>(left, 1 << 20)) {
    filter.insert(std::span<const std::uint64_t>(next_keys(next, std::min<std::uint64_t>(left, 1 << 20))));
  }
  std::vector<double> longest;
  double sum = 0;
  for (std::uint64_t i = 0; i < timed; ++i) {
    const double begin = thread_nanoseconds();
    filter.insert(next++);
    const double each = thread_nanoseconds() - begin;
    sum += each;
    if (each > 5000) longest.push_back(each);
  }
  std::sort(longest.rbegin(), longest.rend());
  longest.resize(std::max<std::size_t>(longest.size(), 3));
  std::printf("%-12s longest %.1f us, %.1f us, %.1f us of %llu inserts; mean %.0f ns with the clock\n", name,
              longest[0] / 1000, longest[1] / 1000, longest[2] / 1000, static_cast<unsigned long long>(timed),
              sum / static_cast<double>(timed));
}

}  // namespace

int main(int count, char** words) {
  if (count == 3 && std::string(words[1]) == "pause") {
    const std::uint64_t n = std::strtoull(words[2], nullptr, 10);
    const std::uint64_t around = std::min<std::uint64_t>(1'000'000, n / 8);
    const std::uint64_t before = (n + 6) / 7 * 8 - around;  // all eight generations nearly full
    time_pauses("line", filter<std::uint64_t, line, mix>(n, 0.01), n - around, 4 * around);
    time_pauses("window", windowed_filter<std::uint64_t, window, mix>(last_keys(n), 0, 0.01), before, 4 * around);
    time_pauses("window_line", windowed_filter<std::uint64_t, window_line, mix>(last_keys(n), 0, 0.01), before,
                4 * around);
    return 0;
  }
  std::vector<std::uint64_t> sizes;
  for (int i = 1; i < count; ++i) sizes.push_back(std::strtoull(words[i], nullptr, 10));
  if (sizes.empty()) sizes = {100'000, 10'000'000};
  for (const std::uint64_t n : sizes) {
    time_filter("line", filter<std::uint64_t, line, mix>(n, 0.01), n, n);
    const std::uint64_t held = (n + 6) / 7 * 8;
    time_filter("window", windowed_filter<std::uint64_t, window, mix>(last_keys(n), 0, 0.01), n, held);
    time_filter("window_line", windowed_filter<std::uint64_t, window_line, mix>(last_keys(n), 0, 0.01), n, held);
  }
}
