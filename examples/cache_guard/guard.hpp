// A Bloom filter in front of a table, which answers lookups of most absent keys without a query.
//
//   find:  filter reports absent    -> absent, without a query
//          filter reports maybe     -> queries the table
//          filter does not answer   -> queries the table (fail open), and skips the filter for a while
//   put:   table first, then filter. A filter that is being refilled from the table gets the row in either case.
//
// Invariant: the filter has every key of the table. So after each failure the filter is not used until all keys of the
// table, and those put meanwhile, have been inserted again.
#pragma once

#include "table.hpp"

#include <bloomery/redis.hpp>
#include <bloomery/redis/address.hpp>
#include <bloomery/redis/concurrent.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cache_guard {

struct guard_options {
  std::optional<bloomery::redis_address> filter = {};  ///< none: every lookup queries the table
  double rate = 0.01;                                  ///< target FPR: share of absent keys that reach the table
  std::chrono::milliseconds filter_time{250};          ///< timeout of the filter, after which a lookup fails open
  std::chrono::milliseconds pause{1000};               ///< between two attempts to reach a filter that has failed
};

/// Counters since the start.
struct counters {
  std::atomic<std::uint64_t> lookups = 0;
  std::atomic<std::uint64_t> filter_negatives = 0;  ///< answered by the filter alone
  std::atomic<std::uint64_t> database_queries = 0;  ///< queries by lookups
  std::atomic<std::uint64_t> false_positives = 0;   ///< reported maybe by the filter, absent in the table
  std::atomic<std::uint64_t> filter_errors = 0;     ///< lookups that the filter did not answer
  std::atomic<std::uint64_t> filter_skipped = 0;    ///< lookups that skipped a failed filter
  std::atomic<std::uint64_t> writes = 0;
};

/// A pool of objects, each used by one thread at a time.
template <class Thing>
class pool {
 public:
  explicit pool(std::function<std::unique_ptr<Thing>()> make) : make_(std::move(make)) {}

  std::unique_ptr<Thing> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Thing> thing = std::move(idle_.back());
        idle_.pop_back();
        return thing;
      }
    }
    return make_();
  }
  /// Returns an object to the pool; only if it still works.
  void give_back(std::unique_ptr<Thing> thing) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(thing));
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    idle_.clear();
  }

 private:
  std::function<std::unique_ptr<Thing>()> make_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Thing>> idle_;
};

/// The guard. Thread-safe.
class guard {
 public:
  /// Fills the filter with the table's keys, as soon as its server is reachable.
  guard(table_opener table, guard_options options);
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;
  ~guard();

  /// @throws std::runtime_error  the table fails
  std::optional<std::string> find(const std::string& key);
  void put(const std::string& key, const std::string& value);

  /// The counters in Prometheus' text format.
  std::string metrics() const;
  const counters& counted() const noexcept { return counted_; }

  /// Whether lookups use the filter at present.
  bool filter_is_up() const { return filter_is_up_; }

 private:
  std::shared_ptr<bloomery::concurrent_redis_filter> open_filter();
  bool fill_filter();
  void repair_filter();
  void filter_failed();

  const guard_options options_;
  counters counted_;
  pool<user_table> tables_;

  std::mutex opening_;
  std::shared_ptr<bloomery::concurrent_redis_filter> filter_;  // guarded by opening_; null: not open
  std::atomic<bool> filter_is_up_ = false;
  mutable std::mutex mutex_;
  std::condition_variable wake_;            // wakes the repair thread
  bool ends_ = false;                       // guarded by mutex_, like the next
  std::vector<std::string> not_in_filter_;  // keys that were put while the filter was not up
  std::thread repairer_;
};

}  // namespace cache_guard
