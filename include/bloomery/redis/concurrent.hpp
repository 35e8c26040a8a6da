// concurrent_redis_filter: a shared filter for many threads, which sends single keys of all threads to the servers
// together.
//
// On a redis_filter, a call for one key is a round trip. Here calls wait in a queue during an exchange, and then all
// waiting keys are sent in the next exchange. With many threads, the servers answer tens of times as many keys per
// second, over one connection per node.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/key.hpp>
#include <bloomery/redis.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

struct concurrent_redis_options {
  /// Time limit of a call, from the call to its result; more than 0. Make redis_connection_options::time shorter,
  /// otherwise a call that waits for an exchange with a lost server also times out.
  std::chrono::milliseconds time{1'000};
  /// Maximum number of waiting keys, at least 1. A call whose keys exceed the available room waits. A call with more
  /// keys than this maximum waits until no other keys wait.
  std::size_t most_waiting = 65'536;
};

/// A redis_filter for many threads. Thread-safe, except for construction, destruction and moves.
///
/// Errors of the servers are thrown in all calls that they affect. errc::unavailable is also thrown after `time`; an
/// insert may then be done or not, and may be repeated.
///
/// Example:
///     const auto use = [](const redis_address& address) {
///       concurrent_redis_filter seen(redis_filter::open(address));
///       std::thread other([&] { seen.insert("Berlin"); });
///       seen.insert("Madrid");
///       other.join();
///       assert(seen.may_contain("Madrid") && seen.may_contain("Berlin"));
///     };
///     static_cast<void>(use);
class concurrent_redis_filter {
 public:
  /// @throws error  invalid_argument: options out of range
  explicit concurrent_redis_filter(redis_filter filter, concurrent_redis_options options = {});
  concurrent_redis_filter(concurrent_redis_filter&&) noexcept;
  concurrent_redis_filter& operator=(concurrent_redis_filter&&) noexcept;

  /// Waits for the exchange in progress. No call may be in progress.
  ~concurrent_redis_filter();

  /// False: the key was certainly never inserted. @throws error as redis_filter::may_contain
  bool may_contain(std::string_view key);
  bool may_contain(std::uint64_t key);

  /// All keys of one call are sent in one exchange. Bit i % 64 of bitmap[i / 64] is the answer for key i; all other
  /// bits of `bitmap` become 0.
  /// @throws error  as above; invalid_argument: the bitmap has fewer than ceil(keys.size() / 64) words
  void may_contain(key_span keys, std::span<std::uint64_t> bitmap);

  /// Inserts a key. True: the key is certainly new. The key is stored when this returns. If several threads insert the
  /// same new key at the same time, one of the calls returns true. @throws error as redis_filter::insert
  bool insert(std::string_view key);
  bool insert(std::uint64_t key);

  /// Inserts keys and returns how many were certainly new. @throws error as redis_filter::insert
  std::uint64_t insert(key_span keys);

  /// Calls `work` with the filter, in another thread, between two exchanges: for info(), clear() and so on. There is no
  /// time limit, and other calls wait meanwhile. `work` must not use this object. @throws error what `work` throws
  void with_filter(const std::function<void(redis_filter&)>& work);

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace bloomery
