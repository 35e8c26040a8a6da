// The request handler of the API (docs/playground-api.md), independent of HTTP. It has no sockets and starts no
// threads, so that programs without them can embed it; playground/host/ has both.
#pragma once

#include "playground/api/jobs.hpp"
#include "playground/inspect/inspection.hpp"
#include "playground/session/session_store.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace bloomery::playground {

struct request {
  std::string method;  ///< "GET", "POST", "DELETE"
  std::string path;    ///< "/api/1/filters"
  std::map<std::string, std::string> query;
  std::string body;
};

struct response {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::string file_name = {};  ///< name for a download; empty: inline
};

/// What the surrounding program provides.
struct api_options {
  std::vector<std::unique_ptr<inspection>> inspections = {};  ///< the API numbers them from 0
  session_store::limits most = {};
  unsigned threads = 1;  ///< that a job may use; 1: it starts none
};

/// The API. Thread-safe. Jobs wait until the surrounding program runs them.
///
/// Example:
///     api playground({});
///     const response made = playground.handle({"POST", "/api/1/filters", {}, R"({"capacity": 10, "rate": 0.1})"});
///     assert(made.status == 201);
class api {
 public:
  /// Maximum size of a request's body in bytes.
  static constexpr std::size_t most_body = std::size_t{16} << 20;

  /// Maximum size of an uploaded filter file: the largest filter plus headers.
  static constexpr std::size_t most_file = std::size_t{160} << 20;

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
  response answer_of_filter(const request& r, const std::string& id, const std::vector<std::string>& rest);
  response answer_of_inspection(const request& r, const std::vector<std::string>& rest);
  json about() const;
  json plan_of(const wanted_filter& wanted) const;
  json curve_of(const params& p, bool grows, std::uint64_t most) const;
  void check_goes_on() const;
  json news_of(inspection& i, std::uint64_t after);

  const std::string session_ = random_id();  // identifies this run of the program
  const unsigned threads_;
  session_store filters_;
  jobs jobs_;
  std::vector<std::unique_ptr<inspection>> inspections_;
  std::atomic<bool> stopped_{false};
  std::atomic<int> waiting_{0};  // requests that wait for a change
};

}  // namespace bloomery::playground
