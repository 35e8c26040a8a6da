// The filters that visitors have made: each is known only by an ID that nobody can guess.
#pragma once

#include "playground/demo_session.hpp"

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

/// 32 hexadecimal digits of the system's randomness.
std::string random_id();

/// An demo_session and whose turn it is with it.
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
    std::uint64_t bytes = std::uint64_t{2} << 30;          ///< of memory, of all filters
    std::chrono::seconds idle = std::chrono::minutes(10);  ///< before one may be given up for another
  };

  explicit session_store(limits most) : most_(most) {}

  /// Puts in the filter that `make` makes, once there is room for its `bytes`; for that, those give way that nobody
  /// asked for within `idle`, the longest first.
  /// @throws error  unavailable: there is no room; and as `make`
  std::string put(std::uint64_t bytes, const std::function<demo_session()>& make);

  /// Room for so many bytes more, which nobody else gets while this lives.
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

  /// @throws error not_found: no such filter, or it gave way
  std::shared_ptr<guarded_session> get(const std::string& id);

  /// Notes how much memory a filter takes now.
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
  using those_gone = std::vector<std::shared_ptr<guarded_session>>;  // their end takes long: nobody is to wait for it
  void make_room_locked(std::uint64_t bytes, std::size_t filters, those_gone& gone);

  limits most_;
  std::mutex turn_;
  std::unordered_map<std::string, entry> entries_;
  std::uint64_t bytes_ = 0;  // reserved ones, too
  std::size_t coming_ = 0;   // filters that are being made
};

}  // namespace bloomery::playground
