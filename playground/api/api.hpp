// The API of docs/playground-api.md: a request comes in, a response goes out. It has no sockets and starts no threads, so
// that it can be a part of programs without them; playground/host/ has both.
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
  std::string file_name = {};  ///< to be saved under; empty: to be shown
};

/// What the program around the API provides.
struct api_options {
  std::vector<std::unique_ptr<inspection>> inspections = {};  ///< the API numbers them from 0
  session_store::limits most = {};
  unsigned threads = 1;  ///< that a job may use; 1: it starts none
};

/// Any number of threads may use it. Jobs wait until the program runs them.
///
/// Example:
///     api playground({});
///     const response made = playground.handle({"POST", "/api/1/filters", {}, R"({"capacity": 10, "rate": 0.1})"});
///     assert(made.status == 201);
class api {
 public:
  /// The most bytes of a request's body.
  static constexpr std::size_t most_body = std::size_t{16} << 20;

  /// Of a filter's file: of the most bits that one can have here, and what the file adds.
  static constexpr std::size_t most_file = std::size_t{160} << 20;

  explicit api(api_options options);

  /// Every request has an answer: what goes wrong is one, too.
  response handle(const request& r);

  /// The queue of which the program calls run_one(), or gives it to a job_thread (playground/host/own_thread.hpp).
  jobs& queued_jobs() noexcept { return jobs_; }

  /// Ends all waits for news and long computations of requests.
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

  const std::string session_ = random_id();  // of this start of the program
  const unsigned threads_;
  session_store filters_;
  jobs jobs_;
  std::vector<std::unique_ptr<inspection>> inspections_;
  std::atomic<bool> stopped_{false};
  std::atomic<int> waiting_{0};  // requests for news
};

}  // namespace bloomery::playground
