// The progress bar on stderr: only on a terminal, updated at most ten times per second.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace bloomery::cli {

/// The numbers that the bar shows.
struct progress_state {
  std::uint64_t keys = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_total = 0;  ///< 0: unknown
  double fill = -1;               ///< fill ratio; below 0: not shown
  double rate_now = -1;           ///< current FPR; below 0: not shown
  bool counts_keys = true;        ///< false: shows bytes in place of keys
};

class progress {
 public:
  /// @param wanted  false (--no-progress): never shows anything
  progress(bool wanted, std::string verb);
  progress(const progress&) = delete;
  ~progress();  ///< erases the bar

  /// True about ten times per second on a terminal: only then collect a state for show().
  bool due();
  void show(const progress_state& state);
  void wipe();  ///< erases the bar before a message

 private:
  bool shown_ = false;
  bool enabled_;
  bool color_;
  std::string verb_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace bloomery::cli
