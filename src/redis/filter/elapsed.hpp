// Time since the start of this machine, to measure the age of cached data.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

namespace bloomery::redis {

/// Includes the time during which the machine was suspended, unlike std::chrono::steady_clock.
inline std::int64_t milliseconds_since_start() {
#ifdef CLOCK_BOOTTIME
  timespec t{};
  if (::clock_gettime(CLOCK_BOOTTIME, &t) == 0) return std::int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1'000'000;
#endif
  using namespace std::chrono;
  return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace bloomery::redis
