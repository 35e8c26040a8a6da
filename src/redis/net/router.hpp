// router: the client for one server or all nodes of a cluster. It sends groups of commands to the nodes that have their
// slots, with pipelining, and returns the replies of each group when all of them are final.
//
// It handles connecting (TCP, TLS, a Unix socket), AUTH and SELECT, time-outs, MOVED, ASK, TRYAGAIN, CLUSTERDOWN,
// LOADING, MASTERDOWN, READONLY of a demoted master, NOSCRIPT and lost connections: the group runs again after a
// growing backoff until the deadline of the call. Other errors of the server are returned as replies.
#pragma once

#include <bloomery/redis.hpp>
#include <bloomery/redis/address.hpp>

#include "redis/net/batch.hpp"
#include "redis/net/error_class.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::redis {

class router {
 public:
  /// Does not connect yet.
  router(redis_address address, redis_connection_options options);
  router(router&&) noexcept;
  router& operator=(router&&) noexcept;
  ~router();

  /// Called when a group is complete, with its number in the batch and its first reply; next() returns the others.
  using on_replies = std::function<void(std::size_t group, reply first)>;

  /// Runs all groups and calls `take` once for each, in any order. An exception of `take` ends the call and closes
  /// connections with outstanding replies. `take` must not call the router.
  ///
  /// In a group of mode::once, the script must not run twice, or, without a script, none of its commands.
  ///
  /// The time limit is that of the options plus a millisecond per KiB sent or received, but at most ten times as long.
  /// @throws error  unavailable: a node could not be reached in time, or it is unknown whether a group of mode::once
  ///                was executed; not_permitted: a wrong password, or an untrusted certificate; damaged: the server
  ///                uses another protocol; invalid_argument: a cluster is addressed as one server or vice versa, there
  ///                is no such database, or a certificate file cannot be read
  void run(const batch& commands, const on_replies& take);

  /// As above, with another time limit.
  void run(const batch& commands, const on_replies& take, std::chrono::milliseconds time);

  /// In on_replies: whether a part of the group may have run more than once, after a failed connection or a
  /// redirection. Then its replies may show the effects of its own earlier execution.
  bool may_have_run_twice(std::size_t group) const noexcept;

  /// Restricts has_lost_answers() to later replies.
  void forget_answers() noexcept;

  /// Whether a connection broke, or its node left the cluster or became a replica, after it had answered a group. Its
  /// server may have crashed and lost writes that it had acknowledged.
  bool has_lost_answers() const noexcept;

  /// From now on, each new connection to a master reads the run id of its server (INFO), which shows restarts.
  void watch_restarts() noexcept;

  /// Number of reconnections that did not certainly find the same server process.
  std::uint64_t possible_restarts() const noexcept;

  /// The router counts exchanges, retries, reconnects, redirects and restarts_seen, its owner the others.
  redis_counters& counters() noexcept;

  /// Number of groups of all calls of run().
  std::uint64_t groups_run() const noexcept;

  /// Runs a command without keys on every present master (and replica).
  struct node_reply {
    std::string node;  ///< "host:port", or the socket's path
    bool is_replica = false;
    reply_list replies;
    redis::reply reply() const { return {replies, 0}; }
  };
  std::vector<node_reply> run_on_nodes(const std::vector<std::string_view>& words, bool replicas_too = false);

  /// The master of a slot according to the last slot map; "": unknown.
  std::string node_of(std::size_t slot) const;

  /// Changes whenever another server may answer for a slot than before: a connection was opened, or a slot was found
  /// elsewhere.
  std::uint64_t links() const noexcept;

  /// Restricts wait_for_replicas() to later writes.
  void forget_writes() noexcept;

  /// Runs WAIT on every connection that wrote since the last call. @returns the minimum over the nodes of the number of
  /// replicas that have all writes; `replicas` without writes
  /// @throws error  unavailable: a connection with writes was lost, so the result is unknown
  unsigned wait_for_replicas(unsigned replicas, std::chrono::milliseconds time);

  const redis_address& address() const noexcept;
  const redis_connection_options& options() const noexcept;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace bloomery::redis
