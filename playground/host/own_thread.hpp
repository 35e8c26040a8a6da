// The threads of the playground: one that runs the jobs of an API, and one per inspection that keeps it up to date.
#pragma once

#include "playground/api/jobs.hpp"
#include "playground/inspect/watched.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace bloomery::playground {

/// Runs the jobs of a queue in turn.
///
/// Example:
///     jobs queue;
///     const job_thread runs(queue);
///     const std::string id = queue.add("sum", [](job_watch&) { return json(1 + 1); });
///     while (queue.look(id)["state"] != "done") std::this_thread::yield();
///     assert(queue.look(id)["result"] == 2);
class job_thread {
 public:
  explicit job_thread(jobs& queue);
  ~job_thread();  ///< cancels all jobs, and waits for the one that runs
  job_thread(const job_thread&) = delete;
  job_thread& operator=(const job_thread&) = delete;

 private:
  void run();

  jobs& queue_;
  std::mutex turn_;
  std::condition_variable changed_;
  bool added_ = false;
  bool stop_ = false;
  std::thread thread_;
};

/// Updates an inspection about once a second, and lets look() wait for news.
std::unique_ptr<inspection> in_own_thread(std::unique_ptr<watched> filter);

}  // namespace bloomery::playground
