// Worst-case latency of repeated calls on a machine with other load.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace bench {

/// The longest call of several rounds that repeat the same calls, and the longest call that is slow in every round.
/// Interrupts and virtual-machine preemption also count as CPU time of the thread, but hit other calls in each round;
/// the work of a call itself is the same in each round.
class longest_call {
 public:
  static constexpr double least = 5e-6;  ///< seconds; shorter calls are not recorded

  /// Notes the time of call `number` of this round. True if the call was recorded, which itself takes time.
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

  double ever() const { return ever_; }  ///< the longest call, in seconds

  /// The maximum over all calls of the call's shortest time in any round, in seconds.
  double each_time() const {
    double longest = least;
    for (const auto& [number, seconds] : each_time_) longest = std::max(longest, seconds);
    return longest;
  }

 private:
  std::unordered_map<std::uint64_t, double> each_time_;  // calls that were slow in every round so far
  std::unordered_map<std::uint64_t, double> now_;
  double ever_ = least;
  unsigned rounds_ = 0;
};

}  // namespace bench
