// Measuring of a filter: lookups of random absent keys, confidence intervals, and the overlap of two filters.
#include <bloomery/measure.hpp>

#include <bloomery/any_filter.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/processors.hpp>

#include <bloomery/detail/joined_threads.hpp>

#include "filters/absent_keys.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <exception>
#include <span>
#include <vector>

namespace bloomery {
namespace {

constexpr std::size_t batch = 4096;  // a multiple of 64: whole words of a bitmap

std::uint64_t ones_of(std::span<const std::uint64_t> bitmap) {
  std::uint64_t ones = 0;
  for (const std::uint64_t word : bitmap) ones += static_cast<std::uint64_t>(std::popcount(word));
  return ones;
}

// Looks up random absent keys in batches.
class absent_lookups {
 public:
  absent_lookups(key_kind kind, std::uint64_t seed) : keys_(kind, seed, batch), answers_(batch / 64) {}

  /// Number of false positives among `count` keys from key number `first` on. Calls look_up(keys, bitmap).
  template <class LookUp>
  std::uint64_t hits(std::uint64_t first, std::size_t count, LookUp look_up) {
    const std::span<std::uint64_t> answers(answers_.data(), (count + 63) / 64);
    look_up(keys_.at(first, count), answers);
    return ones_of(answers);
  }

 private:
  absent_keys keys_;
  std::vector<std::uint64_t> answers_;
};

// The first exception of a lookup ends the measurement and is thrown here.
template <class LookUp>
measured_rate measure(key_kind kind, std::uint64_t queries, std::uint64_t seed, unsigned threads,
                      const function_ref<bool()>& go_on, LookUp look_up) {
  if (threads == 0) threads = available_processors();
  const std::uint64_t workers = std::min<std::uint64_t>(threads, queries / batch + 1);
  // Allocated here, because std::bad_alloc in a thread could not be caught.
  std::vector<absent_lookups> lookups(static_cast<std::size_t>(workers), absent_lookups(kind, seed));
  std::atomic<std::uint64_t> next{0};
  std::atomic<std::uint64_t> asked{0};
  std::atomic<std::uint64_t> hits{0};
  std::atomic<bool> has_failed{false};
  std::exception_ptr failure;
  const auto work = [&](absent_lookups& some) {
    try {
      for (std::uint64_t first; !has_failed && (first = next.fetch_add(batch)) < queries;) {
        if (go_on && !go_on()) return;
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(batch, queries - first));
        hits += some.hits(first, count, look_up);
        asked += count;
      }
    } catch (...) {
      if (!has_failed.exchange(true)) failure = std::current_exception();
    }
  };
  detail::joined_threads others;
  for (std::size_t i = 1; i < lookups.size(); ++i) others.start([&, i] { work(lookups[i]); });
  work(lookups.front());
  others.join();
  if (failure) std::rethrow_exception(failure);
  return {asked, hits};
}

}  // namespace

interval wilson(std::uint64_t hits, std::uint64_t trials, double sigmas) {
  if (trials == 0) return {};
  const auto n = static_cast<double>(trials);
  const double p = static_cast<double>(hits) / n;
  const double z2 = sigmas * sigmas;
  const double middle = p + z2 / (2 * n);
  const double half = sigmas * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
  const double low = hits == 0 ? 0 : (middle - half) / (1 + z2 / n);
  const double high = hits == trials ? 1 : (middle + half) / (1 + z2 / n);
  return {std::max(low, 0.0), std::min(high, 1.0)};
}

std::uint64_t queries_to_resolve(double rate, double relative, double sigmas) {
  const double queries = sigmas * sigmas / (relative * relative) * (1 - rate) / rate;
  if (!(queries < 0x1p62)) return std::uint64_t{1} << 62;
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(std::llround(queries)), 1);
}

double chance_of(std::uint64_t hits, std::uint64_t trials, double rate) {
  const auto n = static_cast<double>(trials);
  const auto first = static_cast<double>(hits);
  const bool upwards = first >= n * rate;
  if (rate <= 0 || rate >= 1) return (rate <= 0 ? hits == 0 : hits == trials) ? 1 : 0;
  // Sums from the given number of hits outwards, each term from its neighbor; the terms decrease.
  const double odds = rate / (1 - rate);
  double term = std::exp(std::lgamma(n + 1) - std::lgamma(first + 1) - std::lgamma(n - first + 1) +
                         first * std::log(rate) + (n - first) * std::log1p(-rate));
  double sum = 0;
  for (double x = first; term > 1e-17 * sum && x >= 0 && x <= n; x += upwards ? 1 : -1) {
    sum += term;
    term *= upwards ? (n - x) / (x + 1) * odds : x / (n - x + 1) / odds;
  }
  return std::min(sum, 1.0);
}

measured_rate measure_rate(const any_filter& filter, std::uint64_t queries, std::uint64_t seed, unsigned threads,
                           const function_ref<bool()>& go_on) {
  return measure(filter.parameters().keys, queries, seed, threads, go_on,
                 [&](key_span keys, std::span<std::uint64_t> answers) { filter.may_contain(keys, answers); });
}

measured_rate measure_rate(filter_handle& filter, std::uint64_t queries, std::uint64_t seed, unsigned threads,
                           const function_ref<bool()>& go_on) {
  if (!filter.capabilities().lookups_in_parallel) threads = 1;
  return measure(filter.parameters().keys, queries, seed, threads, go_on,
                 [&](key_span keys, std::span<std::uint64_t> answers) { filter.contains(keys, answers); });
}

}  // namespace bloomery
