// Which requests the server answers: those of its own page and of programs on its own address, with a body of known and
// limited size. Everything here is decided by a request's head, before its body is read.
#pragma once

#include "playground/http/message.hpp"

#include <bloomery/error.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace bloomery::playground::http {

/// A request that is not answered: the status of its response, and the error in it.
struct refusal {
  int status;
  error problem;
};

/// Why a server that listens as `host` on `port` refuses this request; nothing if it does not.
std::optional<refusal> refusal_of(const request_head& head, const std::string& host, std::uint16_t port);

/// The bytes of the body of a request that is not refused.
std::uint64_t body_size(const request_head& head);

/// Whether a Host header names a server that listens as `host` on `port`. An address does, and so does localhost, but no
/// other name: an attacker can make a name of his own resolve to this machine (DNS rebinding).
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

}  // namespace bloomery::playground::http
