// The request handler of the API (docs/playground-api.md), independent of HTTP.
#pragma once

#include "playground/inspection.hpp"
#include "playground/jobs.hpp"
#include "playground/session_store.hpp"

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

/// The API. Thread-safe.
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

  explicit api(std::vector<std::unique_ptr<inspection>> inspections, session_store::limits most = {});

  /// Handles a request. Errors become responses.
  response handle(const request& r);

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
  session_store filters_;
  jobs jobs_;
  std::vector<std::unique_ptr<inspection>> inspections_;
  std::atomic<bool> stopped_{false};
  std::atomic<int> waiting_{0};  // requests that wait for a change
};

}  // namespace bloomery::playground
