// Where a shared filter is: the address of a server or a cluster of Redis or Valkey, and the filter's name there.
#pragma once

#include <bloomery/export.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// The address of a filter on Redis or Valkey. Four forms, NAME percent-encoded:
///
///     redis://[user:password@]host[:port]/NAME[?db=N]        one server
///     rediss://...                                           the same with TLS
///     unix:///path/to/socket?name=NAME[&db=N]                a socket of this machine
///     redis+cluster://[user:password@]host:port,host:port/NAME     a cluster, by some of its nodes
///     rediss+cluster://...                                   the same with TLS
///
/// User and password may also come from the environment: BLOOMERY_REDIS_USER and BLOOMERY_REDIS_PASSWORD, where the
/// address has none. They are in no message: text() is without.
struct redis_address {
  struct endpoint {
    std::string host;
    std::uint16_t port = 6379;

    friend bool operator==(const endpoint&, const endpoint&) = default;
  };

  std::vector<endpoint> endpoints = {};  ///< one of a server, at least one of a cluster, none with a socket
  std::string socket = {};               ///< path; empty unless it is one
  bool cluster = false;
  bool tls = false;
  std::string user = {};
  std::string password = {};
  std::uint32_t database = 0;
  std::string name = {};  ///< of the filter, decoded: any bytes but none

  /// Reads an address; user and password from the environment, if it has none.
  /// @throws error invalid_argument: it is no address, with what was expected
  ///
  /// Example:
  ///     const redis_address a = redis_address::parse("redis://cache:7000/seen%20urls?db=2");
  ///     assert(a.endpoints[0].host == "cache" && a.endpoints[0].port == 7000);
  ///     assert(a.name == "seen urls" && a.database == 2 && !a.tls && !a.cluster);
  static redis_address parse(std::string_view text);

  /// Whether a text means to be an address: it starts with one of the five schemes.
  static bool is_one(std::string_view text) noexcept;

  /// The address again, without user and password, for messages.
  std::string text() const;

  friend bool operator==(const redis_address&, const redis_address&) = default;
};

}  // namespace bloomery
