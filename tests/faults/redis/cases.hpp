// Cases of the fault suite: each plays one round of a real failure against real servers.
#pragma once

#include "faults/redis/crowd.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace bloomery_tests {

/// One round of a case.
struct fault_round {
  std::mt19937_64 random;
  std::map<filter_kind, tally>& rows;

  /// A random time between two limits.
  std::chrono::milliseconds between(unsigned least_ms, unsigned most_ms) {
    return std::chrono::milliseconds(least_ms + random() % (most_ms - least_ms + 1));
  }
  void wait(unsigned least_ms, unsigned most_ms) { std::this_thread::sleep_for(between(least_ms, most_ms)); }
};

/// Crowds that meet the same failure, one per kind of filter.
class crowds {
 public:
  /// @param options  of one kind's crowd
  crowds(fault_round& round, std::span<const filter_kind> kinds,
         const std::function<crowd_options(filter_kind)>& options);

  /// Until the writers of each crowd have had this many more keys acknowledged.
  void wait_for_keys(std::uint64_t more) const;

  /// Until one of the crowds is in a call with many keys, but not for long.
  void wait_for_a_long_call() const;

  void end();

  /// Ends the crowds and judges them. @param fresh  opens a crowd's filter; by default redis_filter::open()
  void judge(const std::function<bloomery::redis_filter(const crowd&)>& fresh = nullptr);

  std::vector<std::unique_ptr<crowd>> all;

 private:
  fault_round& round_;
};

struct fault_case {
  const char* name;
  void (*play)(fault_round&);
  bool only_long = false;  ///< not in the short form
};

/// In the order of docs/reliability.md.
std::vector<fault_case> fault_cases();

// On one server.
void crash_with_the_last_second_cut_off(fault_round&);
void crash_with_a_synced_log(fault_round&);
void restart_by_a_signal(fault_round&);
void lose_the_description(fault_round&);
void evict_keys(fault_round&);
void lose_connections(fault_round&);
void replace_filters(fault_round&);
void drop_clear_and_replace(fault_round&);
void grow_while_reading_copies(fault_round&);

// On several servers.
void fail_over_in_a_cluster(fault_round&);
void fail_over_by_a_sentinel(fault_round&);

void move_slots(fault_round&);

}  // namespace bloomery_tests
