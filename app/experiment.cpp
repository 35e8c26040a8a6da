#include "app/experiment.hpp"

#include "app/addresses.hpp"
#include "app/pipeline.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

namespace bloomery::app {
namespace {

constexpr std::size_t batch_size = 4096;

using listener = std::function<void(std::uint64_t)>;

// The keys of a run are hashes for layouts, and texts for schemes, which hash the keys themselves.
void insert(any_filter& filter, std::span<const key_hash> keys) { filter.insert(keys); }
void insert(any_filter& filter, std::span<const std::string_view> keys) { filter.insert(keys); }

void look_up(const any_filter& filter, std::span<const key_hash> keys, std::span<std::uint64_t> bitmap) {
  filter.may_contain(keys, bitmap);
}
void look_up(const any_filter& filter, std::span<const std::string_view> keys, std::span<std::uint64_t> bitmap) {
  filter.may_contain(keys, bitmap);
}

void append(const any_filter& filter, std::span<const std::string_view> keys, std::vector<key_hash>& to) {
  to.resize(to.size() + keys.size());
  filter.hash(keys, std::span(to).last(keys.size()));
}
template <class Filter>
void append(const Filter&, std::span<const std::string_view> keys, std::vector<std::string_view>& to) {
  to.insert(to.end(), keys.begin(), keys.end());
}

template <class Key>
void count_found(const any_filter& filter, std::span<const Key> keys, std::uint64_t& found) {
  std::array<std::uint64_t, batch_size / 64> bitmap{};
  const auto answers = std::span(bitmap).first((keys.size() + 63) / 64);
  look_up(filter, keys, answers);
  for (const std::uint64_t word : answers) found += static_cast<std::uint64_t>(std::popcount(word));
}

template <class Next>
void finish(const any_filter&, std::uint64_t, Next, const listener&) {}

void insert(remote_filter& filter, std::span<const std::string_view> keys) { filter.insert(keys); }

void count_found(remote_filter& filter, std::span<const std::string_view> keys, std::uint64_t& found) {
  filter.look_up(keys, found);
}

// Looks up all inserted keys, because the filter is not under our control.
template <class Next>
void finish(remote_filter& filter, std::uint64_t inserted, Next next, const listener& each_batch) {
  for (std::uint64_t at = 0; at < inserted;) {
    const auto some = next(at, std::min<std::uint64_t>(batch_size, inserted - at));
    filter.look_up_inserted(some);
    at += some.size();
    each_batch(some.size());
  }
  filter.finish();
}

// Fills the filter with the keys from next(from, count) and measures at each point.
template <class Key, class Filter, class Next>
std::vector<double> fill_and_measure(Filter& filter, std::span<const std::uint64_t> points, Next next,
                                     std::span<const Key> absent, const listener& each_batch) {
  std::vector<std::uint64_t> found(points.size());
  std::uint64_t in = 0;
  for (std::size_t point = 0; point < points.size(); ++point) {
    while (in < points[point]) {
      const std::span<const Key> some = next(in, std::min<std::uint64_t>(batch_size, points[point] - in));
      insert(filter, some);
      in += some.size();
      each_batch(some.size());
    }
    for (std::size_t at = 0; at < absent.size(); at += batch_size) {
      const auto some = absent.subspan(at, std::min(batch_size, absent.size() - at));
      count_found(filter, some, found[point]);
      each_batch(some.size());
    }
  }
  finish(filter, in, next, each_batch);
  std::vector<double> rates(found.size());
  std::transform(found.begin(), found.end(), rates.begin(),
                 [&](std::uint64_t count) { return static_cast<double>(count) / static_cast<double>(absent.size()); });
  return rates;
}

std::vector<std::uint64_t> points_of(const experiment& e) {
  return e.points.empty() ? points_for(e.filter.capacity) : e.points;
}

// All numbers of an experiment have the same number of digits, so that absent addresses look like inserted ones.
std::uint64_t first_number(const experiment& e) {
  const std::uint64_t count = e.runs * (e.queries + inserted_by(e));
  std::uint64_t power = 10;
  while (power < count) power *= 10;
  return power;
}

// Each run has its own range of numbers: first those of the absent addresses, then those of the inserted ones.
template <class Key, class Filter>
std::vector<double> run_with_addresses(Filter& filter, const experiment& e, std::uint64_t run,
                                       const listener& each_batch) {
  const std::uint64_t first_absent = first_number(e) + run * (e.queries + inserted_by(e));
  const std::uint64_t first_inserted = first_absent + e.queries;
  std::deque<address_batch> texts(1);
  std::vector<Key> absent;
  absent.reserve(e.queries);
  while (absent.size() < e.queries) {
    if (std::is_same_v<Key, std::string_view>) texts.emplace_back();  // keeps the text, which is not hashed
    texts.back().make(e.seed, first_absent + absent.size(),
                      std::min<std::uint64_t>(batch_size, e.queries - absent.size()));
    append(filter, texts.back().addresses(), absent);
  }
  address_batch text;
  std::vector<Key> some;
  const auto next = [&](std::uint64_t from, std::uint64_t count) {
    text.make(e.seed, first_inserted + from, count);
    some.clear();
    append(filter, text.addresses(), some);
    return std::span<const Key>(some);
  };
  return fill_and_measure<Key>(filter, points_of(e), next, absent, each_batch);
}

// [Fisher & Yates]; the results of std::shuffle depend on the standard library.
template <class Key>
void shuffle(std::vector<Key>& keys, std::uint64_t seed) {
  for (std::uint64_t left = keys.size(); left > 1; --left) {
    const std::uint64_t chance = mix64(left ^ mix64(seed));
    std::swap(keys[left - 1], keys[multiply_high(chance, left)]);
  }
}

template <class Key, class Filter>
std::vector<double> run_with_lines(Filter& filter, const experiment& e, std::uint64_t run, const listener& each_batch) {
  std::vector<Key> keys;
  keys.reserve(e.lines.size());
  append(filter, e.lines, keys);
  shuffle(keys, mix64(e.seed) + run);
  const std::span<const Key> all = keys;
  const auto next = [&](std::uint64_t from, std::uint64_t count) { return all.subspan(from, count); };
  return fill_and_measure<Key>(filter, points_of(e), next, all.subspan(inserted_by(e), e.queries), each_batch);
}

template <class Key, class Filter>
std::vector<double> run_with(Filter& filter, const experiment& e, std::uint64_t run, const listener& each_batch) {
  return e.lines.empty() ? run_with_addresses<Key>(filter, e, run, each_batch)
                         : run_with_lines<Key>(filter, e, run, each_batch);
}

std::vector<double> carry_out_run(const experiment& e, std::uint64_t run, const listener& each_batch) {
  if (e.make_remote) {
    // The keys that the filter refers to are freed first only if an exception ends the run.
    const std::unique_ptr<remote_filter> filter = e.make_remote();
    return run_with<std::string_view>(*filter, e, run, each_batch);
  }
  any_filter filter(e.filter);
  return e.filter.scheme.empty() ? run_with<key_hash>(filter, e, run, each_batch)
                                 : run_with<std::string_view>(filter, e, run, each_batch);
}

struct one_run {
  std::uint64_t number = 0;
  std::vector<double> rates;
};

void summarise(measured_point& point) {
  const auto runs = static_cast<double>(point.rates.size());
  double sum = 0;
  for (const double rate : point.rates) sum += rate;
  point.mean = sum / runs;
  double squares = 0;
  for (const double rate : point.rates) squares += (rate - point.mean) * (rate - point.mean);
  point.deviation = point.rates.size() > 1 ? std::sqrt(squares / (runs - 1)) : 0;
}

}  // namespace

std::uint64_t most_keys_for(std::uint64_t capacity) {
  constexpr std::uint64_t most = std::uint64_t{1} << 40;
  if (capacity > most) {
    throw error(errc::too_large, {"too many keys for an experiment", "--capacity", "at most " + std::to_string(most),
                                  std::to_string(capacity), ""});
  }
  return capacity + capacity / 2;
}

std::vector<std::uint64_t> points_for(std::uint64_t capacity) {
  const std::uint64_t most = most_keys_for(capacity);
  const std::uint64_t step = std::max<std::uint64_t>(10, capacity / 100);
  std::set<std::uint64_t> points = {std::min<std::uint64_t>(10, most)};
  for (std::uint64_t keys = step; keys <= most; keys += step) points.insert(keys);
  for (std::uint64_t quarters = 1; quarters <= 6; ++quarters) points.insert(capacity * quarters / 4);
  points.erase(0);
  return {points.begin(), points.end()};
}

std::uint64_t inserted_by(const experiment& e) {
  return e.points.empty() ? most_keys_for(e.filter.capacity) : e.points.back();
}

std::vector<std::uint64_t> quarters_of(std::uint64_t capacity) {
  std::set<std::uint64_t> points;
  for (std::uint64_t quarters = 1; quarters <= 4; ++quarters) {
    points.insert(std::max<std::uint64_t>(capacity / 4 * quarters + capacity % 4 * quarters / 4, 1));
  }
  return {points.begin(), points.end()};
}

std::uint64_t queries_for(double rate, double false_positives) {
  return static_cast<std::uint64_t>(std::clamp(std::ceil(false_positives / rate), 1.0, 0x1p62));
}

std::uint64_t sane_queries(const experiment& wanted) {
  // A lookup takes a few nanoseconds for layouts, up to a microsecond for schemes.
  const std::uint64_t in_all = wanted.filter.scheme.empty() ? 3'000'000'000 : 50'000'000;
  const std::uint64_t times = wanted.runs * points_for(wanted.filter.capacity).size();
  return std::clamp<std::uint64_t>(in_all / times, 1000, most_queries / 4);
}

std::uint64_t work_of(const experiment& e) {
  const std::uint64_t lookups_of_inserted = e.make_remote ? inserted_by(e) : 0;
  return e.runs * (inserted_by(e) + lookups_of_inserted + e.queries * std::uint64_t{points_of(e).size()});
}

std::vector<measured_point> carry_out(const experiment& e, const std::function<void(std::uint64_t)>& each_batch,
                                      const std::function<void(std::span<const measured_point>)>& each_run) {
  std::mutex one_at_a_time;
  const listener listen = [&](std::uint64_t keys) {
    if (!each_batch) return;
    const std::lock_guard lock(one_at_a_time);
    each_batch(keys);
  };
  std::vector<measured_point> points;
  for (const std::uint64_t keys : points_of(e)) {
    listen(0);  // with many probes, an expected FPR takes tenths of a second
    points.push_back({keys, expected_fpr(e.filter, keys), 0, 0, {}});
  }
  if (each_run) each_run(points);
  std::uint64_t started = 0;
  run_pipeline<one_run>(
      static_cast<unsigned>(std::min<std::uint64_t>(e.threads, e.runs)),
      [&](one_run& r) {
        r.number = started++;
        return r.number < e.runs;
      },
      [&](one_run& r) { r.rates = carry_out_run(e, r.number, listen); },
      [&](one_run& r) {
        for (std::size_t i = 0; i < points.size(); ++i) {
          points[i].rates.push_back(r.rates[i]);
          summarise(points[i]);
        }
        if (each_run) each_run(points);
        return true;
      },
      [] {});
  return points;
}

}  // namespace bloomery::app
