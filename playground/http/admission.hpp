// Admission control for HTTP requests, by their heads, before the body is read: only requests from the server's own
// page or to its own address, and only bodies of a known and limited size.
#pragma once

#include <bloomery/error.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace httplib {
struct Request;
}

namespace bloomery::playground::http {

/// A refused request: the status of its response, and the error in it.
struct refusal {
  int status;
  error problem;
  bool drains = false;  ///< the body can be read and dropped, so that the client gets to read the response
};

/// The reason why a server that listens as `host` on `port` refuses this request, if it does.
std::optional<refusal> refusal_of(const httplib::Request& req, const std::string& host, std::uint16_t port);

/// The announced size of the body: Content-Length; 0 without it, the maximum if it is out of range.
std::uint64_t body_size(const httplib::Request& req);

/// Whether a Host header names a server that listens as `host` on `port`. Only addresses and localhost do: an
/// attacker can make other names resolve to this machine (DNS rebinding).
///
/// Example:
///     assert(is_own_host("localhost:8080", "127.0.0.1", 8080));
///     assert(!is_own_host("evil.example:8080", "127.0.0.1", 8080));
bool is_own_host(const std::string& host_header, const std::string& host, std::uint16_t port);

/// Whether a server that listens as `host` can be reached only from this machine.
///
/// Example:
///     assert(is_this_machine("127.0.0.1") && is_this_machine("localhost") && !is_this_machine("0.0.0.0"));
bool is_this_machine(const std::string& host);

/// ASCII letters in lower case, all other bytes unchanged.
std::string to_lower(std::string text);

}  // namespace bloomery::playground::http
