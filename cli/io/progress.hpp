// The bar on stderr while work is long: only on a terminal, ten times a second at most.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace bloomery::cli {

/// What the bar shows.
struct progress_state {
  std::uint64_t keys = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_total = 0;  ///< 0: unknown
  double fill = -1;               ///< share of bits set; below 0: not shown
  double rate_now = -1;           ///< error rate; below 0: not shown
};

class progress {
 public:
  /// @param wanted  false (as with --no-progress) never shows anything
  progress(bool wanted, std::string verb);
  progress(const progress&) = delete;
  ~progress();  ///< wipes the bar

  /// True about ten times a second on a terminal: only then is gathering a state worthwhile.
  bool due();
  void show(const progress_state& state);
  void wipe();  ///< makes room for a message

 private:
  bool shown_ = false;
  bool enabled_;
  bool color_;
  std::string verb_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace bloomery::cli
