// The servers of an address, each with its own connection, so that the failure of one does not affect the others.
#pragma once

#include <bloomery/redis.hpp>
#include <bloomery/redis/address.hpp>

#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::redis {
class reply;
class router;
}  // namespace bloomery::redis

namespace bloomery::cli {

struct server_node {
  std::string name;  ///< "host:port", or the path of a socket
  bool is_replica = false;
  std::unique_ptr<redis::router> link;  ///< reaches this server alone
};

/// The server at an address; for a cluster, all masters (and replicas) of its slot map.
/// @param time  limit for reading the slot map, shared by the cluster's endpoints
/// @throws error  unavailable, not_permitted: no slot map was read
std::vector<server_node> nodes_at(const redis_address& address, const redis_connection_options& options,
                                  bool replicas_too, std::chrono::milliseconds time);

/// Runs one command with this key, or without a key, and passes its reply to `take`.
void run_one(redis::router& servers, std::string_view key, std::initializer_list<std::string_view> words,
             const std::function<void(redis::reply)>& take);

/// Calls `each` with every key that matches the pattern, at least once: SCAN on all masters.
/// @throws error  as redis::router::run; not_permitted: SCAN is not allowed; damaged: the reply is invalid
void scan_keys(const redis_address& address, const redis_connection_options& options, std::string_view pattern,
               const std::function<void(std::string_view key)>& each);

/// `text` escaped for a pattern that matches only this text.
std::string literal_pattern(std::string_view text);

}  // namespace bloomery::cli
