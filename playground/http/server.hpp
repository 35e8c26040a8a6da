// The HTTP server of the page and the API; listens on this machine only, unless another host is given.
#pragma once

#include "playground/api/api.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace bloomery::playground::http {

/// Serves requests and runs the jobs until it is stopped.
class server {
 public:
  /// The port that a page has at each start, so that the browser keeps its settings: BLOOM on the keys of a telephone.
  static constexpr std::uint16_t usual_port = 25666;

  /// Starts to listen. @param port  0: any free port; empty: usual_port, or any free port if it is in use
  /// @throws error  invalid_argument: no such host; io: the port is in use, or not allowed
  server(api& answers, const std::string& host, std::optional<std::uint16_t> port);
  ~server();  ///< stops
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  std::uint16_t port() const noexcept;
  std::string url() const;  ///< "http://127.0.0.1:4711/"

  /// Stops and returns when no thread handles a request: within seconds. Responses in progress may be truncated.
  void stop();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace bloomery::playground::http
