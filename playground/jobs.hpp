// Jobs: computations that take longer than a request may. One runs at a time; they can be watched and cancelled.
#pragma once

#include "playground/json.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

namespace bloomery::playground {

/// The progress of a running job, and whether it should continue. Any number of threads may use it.
class job_watch {
 public:
  /// A job is cancelled if no client has requested its state for this long.
  static constexpr auto most_idle = std::chrono::minutes(5);

  /// @throws cancelled  also after most_idle without a request for the job
  void done(std::uint64_t more);
  void total(std::uint64_t all);
  void so_far(json result);

  struct cancelled {};

 private:
  friend class jobs;
  mutable std::mutex turn_;
  std::string state_ = "waiting";
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
  bool cancelled_ = false;
  std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
  json result_ = nullptr;
  json error_ = nullptr;
};

/// Does the work, reports progress to the watch, and returns the result.
using job = std::function<json(job_watch&)>;

class jobs {
 public:
  static constexpr std::size_t most_waiting = 16;
  static constexpr std::size_t most_kept = 256;  ///< results; the oldest are dropped first

  jobs();
  ~jobs();  ///< cancels the running job and waits for it
  jobs(const jobs&) = delete;
  jobs& operator=(const jobs&) = delete;

  /// @throws error  unavailable: too many jobs are waiting
  std::string add(const std::string& kind, job work);

  /// @throws error not_found
  json look(const std::string& id);
  void cancel(const std::string& id);

 private:
  struct entry {
    std::string id;
    std::string kind;
    job work;
    std::shared_ptr<job_watch> watch;
  };
  void run();

  std::mutex turn_;
  std::condition_variable changed_;
  std::deque<entry> entries_;  // the oldest first
  bool stop_ = false;
  std::thread worker_;
};

/// The job that a request's body describes. @throws error  as the library; invalid_argument: an unknown job
std::string add_job(jobs& to, fields body);

}  // namespace bloomery::playground
