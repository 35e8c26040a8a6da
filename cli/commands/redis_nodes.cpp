#include "cli/commands/redis_nodes.hpp"

#include <bloomery/error.hpp>

#include "redis/net/batch.hpp"
#include "redis/net/error_class.hpp"
#include "redis/net/router.hpp"
#include "redis/net/slots.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <utility>

namespace bloomery::cli {
namespace {

using std::chrono::milliseconds;

// The address of one node of a cluster.
redis_address alone(const redis_address& cluster, std::string host, std::uint16_t port) {
  redis_address one = cluster;
  one.cluster = false;
  one.endpoints = {{std::move(host), port}};
  return one;
}

std::vector<server_node> nodes_in(const std::vector<redis::slot_range>& ranges, const redis_address& address,
                                  const redis_connection_options& options, bool replicas_too) {
  std::vector<server_node> nodes;
  for (const redis::slot_range& range : ranges) {
    for (std::size_t i = 0; i < (replicas_too ? range.nodes.size() : 1); ++i) {
      const redis::place& where = range.nodes[i];
      const std::string name = where.text();
      if (std::any_of(nodes.begin(), nodes.end(), [&](const server_node& n) { return n.name == name; })) continue;
      nodes.push_back({name, i > 0, std::make_unique<redis::router>(alone(address, where.host, where.port), options)});
    }
  }
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const server_node& a, const server_node& b) { return a.is_replica < b.is_replica; });
  return nodes;
}

}  // namespace

std::vector<server_node> nodes_at(const redis_address& address, const redis_connection_options& options,
                                  bool replicas_too, milliseconds time) {
  if (!address.cluster) {
    std::vector<server_node> one;
    one.push_back({"", false, std::make_unique<redis::router>(address, options)});
    one.front().name = one.front().link->node_of(0);
    return one;
  }
  const milliseconds time_of_each =
      std::max(time / static_cast<milliseconds::rep>(address.endpoints.size()), milliseconds(1));
  redis_connection_options here = options;
  here.read_from_replicas = false;
  std::exception_ptr failure;
  for (const redis_address::endpoint& e : address.endpoints) {
    const redis::place where{e.host, e.port, {}};
    redis::router link(alone(address, e.host, e.port), here);
    std::vector<redis::slot_range> ranges;
    std::string why;
    try {
      redis::batch question;
      question.begin(0, redis::mode::read);
      question.command({"CLUSTER", "SLOTS"});
      link.run(
          question,
          [&](std::size_t, redis::reply r) {
            if (r.text().find("cluster support disabled") != std::string_view::npos) {
              why = r.text();
              return;
            }
            redis::throw_if_error(r, address, "read the slot map of the cluster");
            const char* unusable = "";
            ranges = redis::slot_ranges_in(r, where, unusable);
            if (ranges.empty()) why = unusable;
          },
          time_of_each);
      if (!ranges.empty()) return nodes_in(ranges, address, here, replicas_too);
      if (why.find("cluster support disabled") != std::string::npos) {
        throw error(errc::invalid_argument,
                    {"the server is not a cluster node", where.text(), "", why,
                     error_hint(hint::give_server_address,
                                "give the address of one server: redis://" + where.text() + "/NAME")});
      }
      throw error(errc::unavailable, {"the slot map of the cluster is unusable", where.text(), "", why, hint::none});
    } catch (const error&) {
      if (!failure) failure = std::current_exception();
    }
  }
  std::rethrow_exception(failure);
}

void run_one(redis::router& servers, std::string_view key, std::initializer_list<std::string_view> words,
             const std::function<void(redis::reply)>& take) {
  redis::batch one;
  one.begin(redis::slot_of(key), redis::mode::read);
  one.command(words);
  servers.run(one, [&](std::size_t, redis::reply r) { take(r); });
}

void scan_keys(const redis_address& address, const redis_connection_options& options, std::string_view pattern,
               const std::function<void(std::string_view key)>& each) {
  for (server_node& node : nodes_at(address, options, false, options.time)) {
    std::string cursor = "0";
    do {
      run_one(*node.link, "", {"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"}, [&](redis::reply r) {
        redis::throw_if_error(r, node.link->address(), "list keys with SCAN");
        if (r.size() != 2) throw error(errc::damaged, {"unexpected reply to SCAN", node.name, "", "", hint::none});
        cursor = r[0].text();
        const redis::reply keys = r[1];
        if (keys.size() == 0) return;
        redis::reply key = keys[0];
        for (std::size_t i = 0; i < keys.size(); ++i, key = key.next()) each(key.text());
      });
    } while (cursor != "0");
  }
}

std::string literal_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace bloomery::cli
