// The longest of millions of calls, on a machine that is not quiet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace bench {

/// Of calls that are made again, round after round, from the same start: the longest of all, and the longest that comes
/// back. What the machine does to a call (an interrupt, a host that takes the core away) is in this thread's time, too,
/// but falls on another call each time; what the call itself has to do is the same in each round.
class longest_call {
 public:
  static constexpr double least = 5e-6;  ///< seconds; shorter ones are not told apart

  /// Call `number` of this round has taken so long. True: writing that down has taken time, too.
  bool took(std::uint64_t number, double seconds) {
    if (seconds <= least) return false;
    ever_ = std::max(ever_, seconds);
    if (rounds_ > 0) {
      const auto before = each_time_.find(number);
      if (before == each_time_.end()) return true;
      seconds = std::min(seconds, before->second);
    }
    now_[number] = seconds;
    return true;
  }

  void end_round() {
    each_time_ = std::exchange(now_, {});
    ++rounds_;
  }

  double ever() const { return ever_; }  ///< seconds

  /// The call whose shortest time of all rounds is the longest, in seconds.
  double each_time() const {
    double longest = least;
    for (const auto& [number, seconds] : each_time_) longest = std::max(longest, seconds);
    return longest;
  }

 private:
  std::unordered_map<std::uint64_t, double> each_time_;  // calls that were long in all rounds so far
  std::unordered_map<std::uint64_t, double> now_;
  double ever_ = least;
  unsigned rounds_ = 0;
};

}  // namespace bench
