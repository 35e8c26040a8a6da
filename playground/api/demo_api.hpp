// The whole API for one reader: that of every host, and filters to try out. The page's worker runs it.
#pragma once

#include "playground/api/api.hpp"
#include "playground/session/demo_session.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace bloomery::playground {

/// An API with demo sessions. They last until they are deleted, or until this object is destroyed. Not thread-safe.
///
/// Example:
///     demo_api playground({});
///     const response made = playground.handle({"POST", "/api/1/filters", {}, R"({"capacity": 10, "rate": 0.1})"});
///     assert(made.status == 201);
class demo_api {
 public:
  explicit demo_api(api_options options) : rest_(std::move(options)) {}

  /// Handles a request. Errors become responses.
  response handle(const request& r);

  /// The part without filters.
  api& rest() noexcept { return rest_; }

 private:
  response answer_of_filter(const request& r, const std::vector<std::string>& parts);
  response made(demo_session session);
  demo_session from_request(const request& r);
  demo_session& session(const std::string& id);  // throws error

  api rest_;
  std::map<std::string, demo_session> sessions_;
  std::uint64_t made_ = 0;
};

}  // namespace bloomery::playground
