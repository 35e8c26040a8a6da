// A filter in front of a table: keys that the table does not have cost no query.
//
//   find:  filter says absent -> absent, the table is not asked
//          filter says maybe  -> the table is asked
//          filter does not answer -> the table is asked (fail open), and the filter is left alone for a while
//   put:   table first, then filter. A filter that is being filled anew from the table meanwhile gets the row either way.
//
// What must hold is that the filter has every key that the table has. So after each failure the filter is not believed
// before it has been given all keys of the table again, and what was put meanwhile.
#pragma once

#include "table.hpp"

#include <bloomery/redis.hpp>
#include <bloomery/redis/address.hpp>

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
  std::optional<bloomery::redis_address> filter = {};  ///< none: every lookup asks the table
  double rate = 0.01;                                  ///< of the filter: absent keys that still reach the table
  std::chrono::milliseconds filter_time{250};          ///< a lookup waits so long for the filter before it fails open
  std::chrono::milliseconds pause{1000};               ///< between two attempts to reach a filter that has failed
};

/// What was counted since the start.
struct counters {
  std::atomic<std::uint64_t> lookups = 0;
  std::atomic<std::uint64_t> filter_negatives = 0;  ///< answered by the filter alone
  std::atomic<std::uint64_t> database_queries = 0;  ///< of lookups
  std::atomic<std::uint64_t> false_positives = 0;   ///< the filter said maybe, the table has no such key
  std::atomic<std::uint64_t> filter_errors = 0;     ///< the filter was asked and did not answer
  std::atomic<std::uint64_t> filter_skipped = 0;    ///< the filter was not asked, as it had failed before
  std::atomic<std::uint64_t> writes = 0;
};

/// Things of which each thread takes one at a time: those that came back, else new ones.
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
  /// Only what works is given back.
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

/// For any number of threads.
class guard {
 public:
  /// Fills the filter with the table's keys, if it can be reached; else that is done as soon as it can.
  guard(table_opener table, guard_options options);
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;
  ~guard();

  /// @throws std::runtime_error  the table fails
  std::optional<std::string> find(const std::string& key);
  void put(const std::string& key, const std::string& value);

  /// In Prometheus' text format.
  std::string metrics() const;
  const counters& counted() const noexcept { return counted_; }

  /// Whether the filter is asked at present.
  bool filter_is_up() const { return filter_is_up_; }

 private:
  using filter_pointer = std::unique_ptr<bloomery::redis_filter>;

  std::unique_ptr<bloomery::redis_filter> open_filter(bool may_create);
  bool fill_filter();
  void mend_filter();
  void filter_failed();

  const guard_options options_;
  counters counted_;
  pool<user_table> tables_;
  pool<bloomery::redis_filter> filters_;

  std::atomic<bool> filter_is_up_ = false;
  mutable std::mutex mutex_;
  std::condition_variable wake_;            // the mender
  bool ends_ = false;                       // under mutex_, as the next
  std::vector<std::string> not_in_filter_;  // keys that were put while the filter was not up
  std::thread mender_;
};

}  // namespace cache_guard
