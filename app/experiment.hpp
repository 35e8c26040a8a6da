// FPR experiments: filters are filled beyond their capacity, with lookups of absent keys at several points.
//
// Each run fills one filter with its own keys. At each point all absent keys of the run are looked up; the share
// reported present is the measured FPR. The filters are any_filter, or filters elsewhere, such as in other programs.
// Nothing is printed here.
#pragma once

#include <bloomery/params.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace bloomery::app {

/// A filter elsewhere, which may answer later than it is called. The caller keeps the keys of lookups until finish()
/// returns.
class remote_filter {
 public:
  remote_filter() = default;
  remote_filter(const remote_filter&) = delete;
  remote_filter& operator=(const remote_filter&) = delete;
  virtual ~remote_filter() = default;

  virtual void insert(std::span<const std::string_view> keys) = 0;
  /// Adds the number of keys that are reported as present to `found`, at the latest in finish().
  virtual void look_up(std::span<const std::string_view> keys, std::uint64_t& found) = 0;
  /// Looks up inserted keys, all of which the filter must report as present. Copies the keys.
  virtual void look_up_inserted(std::span<const std::string_view> keys) = 0;
  /// Waits for all answers.
  virtual void finish() = 0;
};

struct experiment {
  params filter;  ///< complete
  std::uint64_t runs = 10;
  std::uint64_t queries = 1;                ///< absent keys to look up at each point of each run
  std::uint64_t seed = 0;                   ///< seed of the addresses, or of the order of the lines
  std::span<const std::string_view> lines;  ///< distinct keys to use; empty: random email addresses
  unsigned threads = 1;                     ///< the results do not depend on it
  std::vector<std::uint64_t> points = {};   ///< numbers of keys to measure at, ascending; empty: points_for(capacity)
  std::function<std::unique_ptr<remote_filter>()> make_remote = {};  ///< makes the filter of each run; none: any_filter
};

struct measured_point {
  std::uint64_t keys = 0;     ///< in the filter
  double predicted = 0;       ///< expected_fpr(filter, keys)
  double mean = 0;            ///< mean of the measured FPRs
  double deviation = 0;       ///< standard deviation of the runs; 0 for a single run
  std::vector<double> rates;  ///< measured FPR per run
};

/// The points at which a filter with capacity n is measured: at 10 keys, then every max(10, n / 100) up to 1.5 n; and
/// at each quarter of n, for the table.
std::vector<std::uint64_t> points_for(std::uint64_t capacity);

/// The points at which a remote filter is measured: each quarter of n.
std::vector<std::uint64_t> quarters_of(std::uint64_t capacity);

/// The number of inserted keys: 1.5 n. @throws error  too_large: more than the limit of an experiment
std::uint64_t most_keys_for(std::uint64_t capacity);

/// The number of keys that each run inserts.
std::uint64_t inserted_by(const experiment& e);

/// Queries per run for `false_positives` false positives on average at this FPR.
std::uint64_t queries_for(double rate, double false_positives);

/// The number of queries per point and run that keeps the experiment within about a minute.
std::uint64_t sane_queries(const experiment& wanted);

/// The maximum of `experiment::queries`: a run has all its absent keys in memory.
constexpr std::uint64_t most_queries = std::uint64_t{1} << 24;

/// Total number of insertions and lookups: the sum of the counts passed to each_batch.
std::uint64_t work_of(const experiment& e);

/// Runs the experiment.
///
/// @param each_batch  receives the number of insertions and lookups since the last call; calls never overlap; its
///                    exceptions end the experiment and are rethrown here
/// @param each_run    receives the results so far: first the expected FPRs, then the FPRs of one more run per call
/// @throws error      as any_filter
std::vector<measured_point> carry_out(const experiment& e, const std::function<void(std::uint64_t)>& each_batch = {},
                                      const std::function<void(std::span<const measured_point>)>& each_run = {});

}  // namespace bloomery::app
