// The classic experiment: filters are filled beyond what they were made for, and absent keys are looked up on the way.
//
// Each run is one growing filter with keys of its own. At each of some points all absent keys of the run are looked up;
// the share of them that seems to be there is the measured error rate. Nothing is printed here.
#pragma once

#include <bloomery/params.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace bloomery::app {

struct experiment {
  params filter;  ///< complete
  std::uint64_t runs = 10;
  std::uint64_t queries = 1;                ///< absent keys to look up at each point of each run
  std::uint64_t seed = 0;                   ///< other addresses, or another order of the lines
  std::span<const std::string_view> lines;  ///< distinct keys to take; none: random e-mail addresses
  unsigned threads = 1;                     ///< the results do not depend on it
};

struct measured_point {
  std::uint64_t keys = 0;     ///< in the filter
  double predicted = 0;       ///< expected_fpr(filter, keys)
  double mean = 0;            ///< of the measured rates
  double deviation = 0;       ///< standard deviation of a single run; 0 if there is only one
  std::vector<double> rates;  ///< one for each run
};

/// Where a filter made for n keys is measured: at 10 keys, then every max(10, n / 100) up to 1.5 n; and at each quarter
/// of n, which the table shows.
std::vector<std::uint64_t> points_for(std::uint64_t capacity);

/// The most keys that are inserted: 1.5 n. @throws error too_large: more keys than an experiment may have
std::uint64_t most_keys_for(std::uint64_t capacity);

/// Queries a run needs to see `alarms` false alarms on average at this rate.
std::uint64_t queries_for(double rate, double alarms);

/// The most queries at each point of each run that keep the whole experiment within a minute or so.
std::uint64_t sane_queries(const experiment& wanted);

/// What `experiment::queries` may be at most: a run has all its absent keys in memory.
constexpr std::uint64_t most_queries = std::uint64_t{1} << 24;

/// Keys that are inserted and looked up in all: what the calls below add up to.
std::uint64_t work_of(const experiment& e);

/// Fills and measures.
///
/// @param each_batch  hears how many keys have been inserted or looked up since the last call; never called by two
///                    threads at once; what it throws ends the experiment and comes out here
/// @param each_run    sees what is known so far: first the predictions alone, then the rates of one more run each time
/// @throws error      as any_filter
std::vector<measured_point> carry_out(const experiment& e, const std::function<void(std::uint64_t)>& each_batch = {},
                                      const std::function<void(std::span<const measured_point>)>& each_run = {});

}  // namespace bloomery::app
