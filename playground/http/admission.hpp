// Admission of requests by their heads: only the server's own page and programs that use its own address, and only
// bodies of a known and limited size. The decision is made before the body is read.
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

/// Why a server that listens as `host` on `port` refuses this request; nothing if it does not.
std::optional<refusal> refusal_of(const httplib::Request& req, const std::string& host, std::uint16_t port);

/// Bytes of the body that the head announces: Content-Length, 0 without it, the largest number if it is larger than
/// that.
std::uint64_t body_size(const httplib::Request& req);

/// Whether a Host header names a server that listens as `host` on `port`. Addresses and localhost do, but no other name
/// does: an attacker can make a name of his own resolve to this machine (DNS rebinding).
///
/// Example:
///     assert(is_own_host("localhost:8080", "127.0.0.1", 8080));
///     assert(!is_own_host("evil.example:8080", "127.0.0.1", 8080));
bool is_own_host(const std::string& host_header, const std::string& host, std::uint16_t port);

/// Whether a server that listens as `host` can be reached from this machine alone.
///
/// Example:
///     assert(is_this_machine("127.0.0.1") && is_this_machine("localhost") && !is_this_machine("0.0.0.0"));
bool is_this_machine(const std::string& host);

/// ASCII letters in lower case, all other bytes unchanged.
std::string to_lower(std::string text);

}  // namespace bloomery::playground::http
