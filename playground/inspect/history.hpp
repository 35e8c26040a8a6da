// History of an inspection: keys and exact FPR over the last hour, and the pace at which keys arrive.
#pragma once

#include "playground/json/json.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace bloomery::playground {

/// At most one sample per 5 seconds of the last hour, the latest always included. Times are milliseconds since 1970.
///
/// Example:
///     history h;
///     for (int second = 0; second <= 60; ++second) h.add(1000 * second, 20 * second, 0.01);
///     assert(h.keys_per_second() == 20 && h.samples_after(0).size() == 13);
class history {
 public:
  static constexpr std::int64_t reach = 3'600'000;
  static constexpr std::int64_t step = 5'000;
  static constexpr std::int64_t reach_of_pace = 600'000;
  static constexpr std::size_t most_samples = reach / step + 1;

  /// Adds a reading, which replaces the previous one of the same 5 seconds. If the clock was set back, the history
  /// starts again.
  void add(std::int64_t at, std::uint64_t keys, double fpr);

  /// Records that the filter cannot be read; the samples before and after are not compared.
  void add_gap(std::int64_t at);

  /// Net pace over the last ten minutes: the median slope over all pairs of samples (Sen 1968, "Estimates of the
  /// Regression Coefficient Based on Kendall's Tau"), which a single burst does not change. Samples before a gap, or
  /// before the filter lost more than half of its keys, are left out.
  /// @return  empty: the filter does not grow, or there are less than 10 seconds of samples
  std::optional<double> keys_per_second() const;

  /// [{"at": 0, "keys": 1000, "rate": 0.01}], the oldest first; keys and rate of a gap are null.
  json samples_after(std::int64_t at) const;

 private:
  struct sample {
    std::int64_t at;
    std::optional<std::uint64_t> keys;  // empty: a gap
    double fpr;
  };
  void add(const sample& next);

  std::deque<sample> samples_;  // the oldest first
};

}  // namespace bloomery::playground
