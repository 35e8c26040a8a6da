// Jobs: computations that take longer than a request may. They can be watched and canceled. The queue has no thread:
// its owner calls run_one().
#pragma once

#include "playground/json/json.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace bloomery::playground {

/// The progress of a running job, and whether it should continue. Any number of threads may use it.
class job_watch {
 public:
  using clock = std::function<std::chrono::steady_clock::time_point()>;

  /// A job is canceled if no client has requested its state for this long.
  static constexpr auto most_idle = std::chrono::minutes(5);

  /// The same while other jobs wait. Browsers run the timers of hidden pages only once a minute.
  static constexpr auto most_idle_in_the_way = std::chrono::seconds(90);

  /// @param waiting  number of waiting jobs; must outlive this object
  job_watch(clock now, const std::atomic<std::size_t>& waiting)
      : now_(std::move(now)), waiting_(waiting), asked_(now_()) {}

  /// @throws cancelled  also if no client has requested the job for too long
  void done(std::uint64_t more);
  void total(std::uint64_t all);
  void so_far(json result);

  struct cancelled {};

 private:
  friend class jobs;
  const clock now_;
  const std::atomic<std::size_t>& waiting_;
  mutable std::mutex turn_;
  std::string state_ = "waiting";
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
  bool cancelled_ = false;
  std::function<void()> when_progressed_;
  std::chrono::steady_clock::time_point asked_;
  json result_ = nullptr;
  json error_ = nullptr;
};

/// Does the work, reports progress to the watch, and returns the result.
using job = std::function<json(job_watch&)>;

/// Any number of threads may use it, of which one runs the jobs.
///
/// Example:
///     jobs queue;
///     const std::string id = queue.add("sum", [](job_watch&) { return json(1 + 1); });
///     assert(queue.run_one() && !queue.run_one());
///     assert(queue.look(id)["result"] == 2);
class jobs {
 public:
  static constexpr std::size_t most_waiting = 16;
  static constexpr std::size_t most_kept = 256;  ///< results; the oldest are dropped first

  explicit jobs(job_watch::clock now = std::chrono::steady_clock::now) : now_(std::move(now)) {}

  /// @throws error  unavailable: too many jobs are waiting
  std::string add(const std::string& kind, job work);

  /// @throws error not_found
  json look(const std::string& id);
  void cancel(const std::string& id);

  /// Runs the job that has waited longest, in the calling thread. Its exceptions become its error.
  /// @return  false: no job waits
  bool run_one();

  /// Calls `call` after each add(), in the thread that adds; it must not use this queue. Empty: no call any more.
  void when_added(std::function<void()> call);

  /// Calls `call` whenever a job that starts from now on progresses, in the thread that runs it; it may use this queue.
  /// Empty: no call any more.
  void when_progressed(std::function<void()> call);

  /// Cancels the job that runs and those that wait.
  void cancel_all();

 private:
  struct entry {
    std::string id;
    std::string kind;
    job work;
    std::shared_ptr<job_watch> watch;
  };
  const job_watch::clock now_;
  std::atomic<std::size_t> waiting_{0};  // changes under turn_
  std::mutex turn_;
  std::function<void()> when_added_;
  std::function<void()> when_progressed_;
  std::deque<entry> entries_;  // the oldest first
};

/// Adds the job that a request's body describes. @param threads  that the job may use; 1: it starts none
/// @throws error  as the library; invalid_argument: an unknown job
std::string add_job(jobs& to, fields body, unsigned threads);

}  // namespace bloomery::playground
