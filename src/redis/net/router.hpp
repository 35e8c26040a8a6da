// The way to the servers: one, or all nodes of a cluster. Groups of commands go out to the nodes that have their slots,
// many at once, and each group's replies come back when all of them are good.
//
// What it deals with by itself: connecting (TCP, TLS, a Unix socket), AUTH and SELECT, time-outs, MOVED, ASK, TRYAGAIN,
// CLUSTERDOWN, LOADING, MASTERDOWN, READONLY of a demoted master, NOSCRIPT, lost connections: the group runs again
// after a growing pause until the deadline of the call has passed. Every other error of the server is a reply as
// others are.
#pragma once

#include <bloomery/redis.hpp>
#include <bloomery/redis_address.hpp>

#include "redis/net/batch.hpp"
#include "redis/net/verdict.hpp"

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
  /// Connects to nothing yet.
  router(redis_address address, redis_connection_options options);
  router(router&&) noexcept;
  router& operator=(router&&) noexcept;
  ~router();

  /// Hears of a group that is done: its number in the batch, and the first of its replies; the others are next().
  using on_replies = std::function<void(std::size_t group, reply first)>;

  /// Runs all groups and tells of each once, in any order. What on_replies throws ends the call (connections that still
  /// have replies to come are closed). It must not call the router.
  ///
  /// A group of mode::once with a script: the script is what must not run twice. One without: none of its commands.
  ///
  /// The time is that of the options, and a millisecond more for each KiB that is sent or received, but at most ten
  /// times as long.
  /// @throws error  unavailable: a node could not be reached, or not within the time; or what is mode::once may be done
  ///                or not; not_permitted: wrong password, a certificate that is not trusted; damaged: the server
  ///                speaks another protocol; invalid_argument: a cluster is addressed as one server or the other way
  ///                round, there is no such database, or a certificate's file cannot be read
  void run(const batch& commands, const on_replies& take);

  /// As above, within another time than that of the options.
  void run(const batch& commands, const on_replies& take, std::chrono::milliseconds time);

  /// In on_replies: the connection failed with the group under way, or it was sent elsewhere. What its replies say was
  /// there before may be its own work.
  bool may_have_run_twice(std::size_t group) const noexcept;

  /// Runs one command that concerns no key on every master (and replica), as the cluster has them now.
  struct node_reply {
    std::string node;  ///< "host:port", or the socket's path
    bool is_replica = false;
    reply_list replies;
    redis::reply reply() const { return {replies, 0}; }
  };
  std::vector<node_reply> run_on_nodes(const std::vector<std::string_view>& words, bool replicas_too = false);

  /// The master that has a slot, as the cluster was seen last; "": nobody knows yet.
  std::string node_of(std::size_t slot) const;

  /// wait_for_replicas() is about what is written from here on.
  void forget_writes() noexcept;

  /// WAIT on every connection that wrote since the last call. @returns the fewest replicas that have it all, of any
  /// node; `replicas` if none was written to
  /// @throws error  unavailable: a connection that wrote is no more, so nobody knows
  unsigned wait_for_replicas(unsigned replicas, std::chrono::milliseconds time);

  const redis_address& address() const noexcept;
  const redis_connection_options& options() const noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace bloomery::redis
