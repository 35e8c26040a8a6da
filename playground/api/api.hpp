// The part of the API (docs/playground-api.md) that every host has: plans, jobs and inspections. It is independent of
// HTTP. It has no sockets and starts no threads, so that programs without them can embed it; playground/host/ has both.
#pragma once

#include "playground/api/exchange.hpp"
#include "playground/api/jobs.hpp"
#include "playground/inspect/inspection.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bloomery::playground {

/// What the surrounding program provides.
struct api_options {
  std::vector<std::unique_ptr<inspection>> inspections = {};  ///< the API numbers them from 0
  unsigned threads = 1;                                       ///< that a job may use; 1: it starts none
};

/// The API without filters of its own. Thread-safe. Jobs wait until the surrounding program runs them.
///
/// Example:
///     api playground({});
///     const response plan = playground.handle({"POST", "/api/1/plans", {}, R"({"capacity": 10, "rate": 0.1})"});
///     assert(plan.status == 200);
class api {
 public:
  explicit api(api_options options);

  /// Handles a request. Errors become responses.
  response handle(const request& r);

  /// Adds an inspection, which gets the next number. Not while other threads use the API.
  void add(std::unique_ptr<inspection> filter) { inspections_.push_back(std::move(filter)); }

  /// The queue of jobs. The program calls run_one() on it, or gives it to a job_thread
  /// (playground/host/own_thread.hpp).
  jobs& queued_jobs() noexcept { return jobs_; }

  /// Ends all waiting requests and cancels running jobs.
  void stop() {
    stopped_ = true;
    for (const auto& i : inspections_) i->stop();
  }

 private:
  response answer(const request& r);
  response answer_of_inspection(const request& r, const std::vector<std::string>& parts);
  json about() const;
  void check_goes_on() const;
  json news_of(inspection& i, std::uint64_t after);

  const std::string session_ = random_id();  // identifies this run of the program
  const unsigned threads_;
  jobs jobs_;
  std::vector<std::unique_ptr<inspection>> inspections_;
  std::atomic<bool> stopped_{false};
  std::atomic<int> waiting_{0};  // requests that wait for a change
};

}  // namespace bloomery::playground
