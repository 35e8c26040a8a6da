// The page and the API over HTTP, for browsers on this machine unless another host is given.
#pragma once

#include "playground/api/api.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace bloomery::playground::http {

/// Answers requests and runs the jobs until it is stopped.
class server {
 public:
  /// Listens from now on. @param port  0: any that is free
  /// @throws error  invalid_argument: no such host; io: the port is in use, or not allowed
  server(api& answers, const std::string& host, std::uint16_t port);
  ~server();  ///< stops
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  std::uint16_t port() const noexcept;
  std::string url() const;  ///< "http://127.0.0.1:4711/"

  /// Ends when no thread answers a request any more: within seconds. Responses on their way may be cut off.
  void stop();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace bloomery::playground::http
