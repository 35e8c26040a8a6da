// redis_address: the address of a shared filter: a server or cluster of Redis or Valkey, and the filter's name there.
#pragma once

#include <bloomery/detail/export.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// The address of a filter on Redis or Valkey. Four forms; MASTER and NAME are percent-encoded:
///
///     redis://[user:password@]host[:port]/NAME[?db=N]        one server
///     unix:///path/to/socket?name=NAME[&db=N]                a Unix domain socket
///     redis+cluster://[user:password@]host:port,host:port/NAME     a cluster, by some of its nodes
///     redis+sentinel://[user:password@]host:port,host:port/MASTER/NAME[?db=N]     the present master of that name,
///                                                            by some of its sentinels (default port 26379)
///
/// rediss://, rediss+cluster:// and rediss+sentinel:// are the same with TLS. If the address has no user and password,
/// the environment variables BLOOMERY_REDIS_USER and BLOOMERY_REDIS_PASSWORD are used. No message contains them: text()
/// omits them.
struct redis_address {
  struct endpoint {
    std::string host;
    std::uint16_t port = 6379;

    friend bool operator==(const endpoint&, const endpoint&) = default;
  };

  std::vector<endpoint> endpoints =
      {};                   ///< one for a server, at least one for a cluster or sentinels, none for a socket
  std::string socket = {};  ///< path of the socket; otherwise empty
  bool cluster = false;
  bool tls = false;
  std::string user = {};
  std::string password = {};
  std::uint32_t database = 0;
  std::string name = {};    ///< decoded name of the filter: any bytes, not empty
  std::string master = {};  ///< name of the master, as the sentinels at the endpoints know it; otherwise empty

  /// Parses an address; takes user and password from the environment if it has none.
  /// @throws error invalid_argument: not an address; the error says what was expected
  ///
  /// Example:
  ///     const redis_address a = redis_address::parse("redis://cache:7000/seen%20urls?db=2");
  ///     assert(a.endpoints[0].host == "cache" && a.endpoints[0].port == 7000);
  ///     assert(a.name == "seen urls" && a.database == 2 && !a.tls && !a.cluster);
  static redis_address parse(std::string_view text);

  /// Parses the address of a server, cluster or master, which has the same form without NAME: redis://host:6379,
  /// unix:///path/to/socket, redis+sentinel://host:port/MASTER. A NAME is accepted; without one, `name` is empty.
  /// @throws error  as parse()
  ///
  /// Example:
  ///     assert(redis_address::parse_server("redis://cache?db=2").text() == "redis://cache:6379?db=2");
  static redis_address parse_server(std::string_view text);

  /// Whether a text starts with one of the URL schemes.
  static bool is_one(std::string_view text) noexcept;

  /// The address without user and password, for messages.
  std::string text() const;

  friend bool operator==(const redis_address&, const redis_address&) = default;
};

}  // namespace bloomery
