// The session store: the demo sessions of all visitors, each under an ID that cannot be guessed.
#pragma once

#include "playground/session/demo_session.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace bloomery::playground {

/// 32 random hexadecimal digits from the system.
std::string random_id();

/// A demo session and its lock.
struct guarded_session {
  explicit guarded_session(demo_session e) : it(std::move(e)) {}
  std::mutex turn;
  demo_session it;
};

/// Any number of threads may use it.
class session_store {
 public:
  struct limits {
    std::size_t filters = 1024;
    std::uint64_t bytes = std::uint64_t{2} << 30;          ///< memory of all filters
    std::chrono::seconds idle = std::chrono::minutes(10);  ///< after which a session may be evicted
  };

  explicit session_store(limits most) : most_(most) {}

  /// Adds the session that `make` returns. If the limits require it, first evicts sessions that have been idle for at
  /// least `idle`, the longest idle first.
  /// @throws error  unavailable: the limits are reached; and as `make`
  std::string put(std::uint64_t bytes, const std::function<demo_session()>& make);

  /// Reserves memory until it is destroyed.
  class reservation {
   public:
    reservation(reservation&& other) noexcept : from_(std::exchange(other.from_, nullptr)), bytes_(other.bytes_) {}
    reservation& operator=(reservation&&) = delete;
    ~reservation();

   private:
    friend class session_store;
    reservation(session_store* from, std::uint64_t bytes) : from_(from), bytes_(bytes) {}
    session_store* from_;
    std::uint64_t bytes_;
  };

  /// @throws error as put()
  [[nodiscard]] reservation make_room(std::uint64_t bytes);

  /// @throws error  not_found: no such session, or it was evicted
  std::shared_ptr<guarded_session> get(const std::string& id);

  /// Updates the memory of a session.
  void weigh(const std::string& id, std::uint64_t bytes);

  void drop(const std::string& id);

  const limits& most() const noexcept { return most_; }

 private:
  using clock = std::chrono::steady_clock;
  struct entry {
    std::shared_ptr<guarded_session> filter;
    std::uint64_t bytes = 0;
    clock::time_point asked;
  };
  using evicted = std::vector<std::shared_ptr<guarded_session>>;  // destroyed outside the lock, because that takes long
  void make_room_locked(std::uint64_t bytes, std::size_t filters, evicted& gone);

  limits most_;
  std::mutex turn_;
  std::unordered_map<std::string, entry> entries_;
  std::uint64_t bytes_ = 0;  // with reservations
  std::size_t coming_ = 0;   // sessions under construction
};

}  // namespace bloomery::playground
