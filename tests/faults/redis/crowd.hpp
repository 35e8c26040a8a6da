// Concurrent clients that insert into one shared filter and look up its keys while servers fail, and the record of
// acknowledged keys.
#pragma once

#include <bloomery/error.hpp>
#include <bloomery/redis.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace bloomery_tests {

using steady = std::chrono::steady_clock;

enum class filter_kind : std::uint8_t { fixed, growing, window, counting };

inline constexpr std::array all_kinds = {filter_kind::fixed, filter_kind::growing, filter_kind::window,
                                         filter_kind::counting};

std::string name_of(filter_kind kind);

/// Parameters for some 100,000 keys, with an FPR that hides one lost key in 1,000.
bloomery::redis_params params_of(filter_kind kind, std::uint64_t shards);

/// What one case did to filters of one kind, in all its rounds.
struct tally {
  std::uint64_t rounds = 0;
  std::uint64_t acknowledged = 0;  ///< keys
  std::uint64_t spanning = 0;      ///< acknowledged calls with answered keys that a broken connection left in doubt
  std::uint64_t lost = 0;          ///< acknowledged keys that were absent, against the documentation
  std::uint64_t excused = 0;       ///< acknowledged keys that were absent, as docs/redis.md says
  std::uint64_t damaged = 0;       ///< acknowledged keys whose lookup reported damage at the end of a round
  std::uint64_t failed = 0;        ///< calls that failed with an error that the case permits
  std::vector<std::string> problems = {};  ///< lost keys and errors that the case does not permit
};

/// An acknowledged call: consecutive keys.
struct insertion {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  steady::time_point began = {};
  steady::time_point returned = {};
  bool reconnected = false;  ///< a lost connection was opened again in the call
  bool repeated = false;     ///< keys were sent again after a connection had broken
  bool in_doubt = false;     ///< a note said that a server may have lost keys of this call
};

struct crowd_options {
  std::vector<bloomery::redis_address> addresses = {};  ///< of the filter; client i uses number i % size()
  bloomery::redis_params params = {};
  bloomery::redis_options redis = {};
  std::size_t writers = 2;
  std::size_t readers = 1;
  bool may_be_damaged = false;                                       ///< keys of the filter are evicted
  bool may_be_missing = false;                                       ///< another client drops the filter
  std::chrono::milliseconds lifetime = std::chrono::hours(100'000);  ///< of a key, from the start of its call
};

/// Creates the filter. Its writers and readers run from the constructor to end().
class crowd {
 public:
  crowd(filter_kind kind, crowd_options options, std::uint64_t seed);
  crowd(const crowd&) = delete;
  crowd& operator=(const crowd&) = delete;
  ~crowd() { end(); }

  filter_kind kind() const { return kind_; }
  const crowd_options& options() const { return options_; }

  /// Keys that were acknowledged up to now.
  std::uint64_t acknowledged() const { return acknowledged_; }

  /// Whether a call with hundreds of keys is under way.
  bool is_in_a_long_call() const;

  /// All keys whose insertion has begun.
  std::vector<std::uint64_t> begun() const;

  /// Keys of such a call may be absent.
  void excuse(std::function<bool(const insertion&)> reason) { excuses_.push_back(std::move(reason)); }

  void end();

  /// After end(): looks up all acknowledged keys, by a reader of the crowd and by a newly opened filter.
  /// @param fresh  opens the filter; if it throws an error that is permitted, all keys count as damaged
  void judge(tally& sum, const std::function<bloomery::redis_filter()>& fresh);

 private:
  struct writer {
    std::uint64_t base = 0;
    std::atomic<std::uint64_t> begun = 0;  // keys
    mutable std::mutex mutex;
    std::vector<insertion> done;
    std::atomic<std::uint64_t> under_way = 0;  // keys of the present call
    bool in_doubt = false;
    std::optional<bloomery::redis_filter> filter;
  };

  bool permits(const bloomery::error& e) const;
  void report(std::string problem);
  void write(writer& w, std::uint64_t seed);
  void read(bloomery::redis_filter& f, std::uint64_t seed);
  std::optional<insertion> insert(writer& w, const std::vector<std::uint64_t>& keys);
  void look_up(bloomery::redis_filter& f, const std::vector<std::uint64_t>& keys, std::set<std::uint64_t>* damaged);
  void judge_counts(const bloomery::redis_info& info, std::uint64_t acknowledged);
  insertion call_of(std::uint64_t key) const;
  std::vector<std::uint64_t> all_acknowledged() const;

  filter_kind kind_;
  crowd_options options_;
  std::atomic<bool> done_ = false;
  std::atomic<std::uint64_t> acknowledged_ = 0;
  std::atomic<std::uint64_t> failed_ = 0;
  std::vector<std::unique_ptr<writer>> writers_;
  std::vector<std::unique_ptr<bloomery::redis_filter>> readers_;
  std::vector<std::thread> threads_;
  std::vector<std::function<bool(const insertion&)>> excuses_;
  std::mutex mutex_;  // of the following
  std::set<std::uint64_t> absent_;
  std::vector<std::string> problems_;
};

}  // namespace bloomery_tests
