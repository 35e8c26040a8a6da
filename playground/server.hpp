// The page and the API on the network, for this machine's browsers only unless it is said otherwise.
#pragma once

#include "playground/api.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace bloomery::playground {

/// Answers requests until it is stopped.
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

  /// Ends when all requests that were begun are answered.
  void stop();

 private:
  struct body;
  std::unique_ptr<body> body_;
};

/// Whether a request that was sent to `host_header` is meant for a server which listens as `host`: not one that a foreign
/// name was made to lead to. An address is its own name; and this machine is localhost.
///
/// Example:
///     assert(is_own_host("localhost:8080", "127.0.0.1", 8080));
///     assert(!is_own_host("evil.example:8080", "127.0.0.1", 8080));
bool is_own_host(const std::string& host_header, const std::string& host, std::uint16_t port);

/// Whether who listens as `host` hears this machine alone.
///
/// Example:
///     assert(is_this_machine("127.0.0.1") && is_this_machine("localhost") && !is_this_machine("0.0.0.0"));
bool is_this_machine(const std::string& host);

}  // namespace bloomery::playground
