// A cluster for tests: masters and their replicas on loopback, started in about two seconds.
#pragma once

#include "redis/servers.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace bloomery_tests {

struct cluster_options {
  std::size_t masters = 3;
  std::size_t replicas = 1;              ///< of each master
  int node_timeout_ms = 800;             ///< after which a master is considered dead
  std::vector<std::string> config = {};  ///< more lines for every server
};

/// Node i < masters is a master at first; node masters + i * replicas + j a replica of node i.
class test_cluster {
 public:
  explicit test_cluster(cluster_options options = {}) : options_(std::move(options)) {
    if (test_server::program().empty()) return;
    const std::size_t count = options_.masters * (1 + options_.replicas);
    for (std::size_t i = 0; i < count; ++i) {
      server_options o;
      o.tcp = true;
      o.config = {"cluster-enabled yes",
                  "cluster-config-file nodes.conf",
                  "cluster-node-timeout " + std::to_string(options_.node_timeout_ms),
                  "cluster-replica-validity-factor 0",
                  "repl-diskless-sync yes",
                  "repl-diskless-sync-delay 0",
                  "repl-ping-replica-period 1",  // a replica without news is in no slot map
                  "cluster-allow-replica-migration no"};
      o.config.insert(o.config.end(), options_.config.begin(), options_.config.end());
      nodes_.push_back(std::make_unique<test_server>(o));
      ids_.push_back(nodes_.back()->command({"CLUSTER", "MYID"}).text());
    }
    for (std::size_t i = 0; i < options_.masters; ++i) {
      const std::size_t first = 16384 * i / options_.masters;
      const std::size_t last = 16384 * (i + 1) / options_.masters - 1;
      must(i, {"CLUSTER", "ADDSLOTSRANGE", std::to_string(first), std::to_string(last)});
      must(i, {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    }
    // Every node meets every other node, because gossip takes seconds.
    for (std::size_t i = 1; i < count; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        must(i, {"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes_[j]->port())});
      }
    }
    wait_until("all nodes know each other", [&] {
      for (std::size_t i = 0; i < count; ++i) {
        if (info(i).find("cluster_known_nodes:" + std::to_string(count) + "\r") == std::string::npos) return false;
      }
      return true;
    });
    for (std::size_t r = options_.masters; r < count; ++r) {
      const std::size_t master = (r - options_.masters) / options_.replicas;
      wait_until("a replica of a master that it knows", [&] {
        return nodes_[r]->command({"CLUSTER", "REPLICATE", ids_[master]}).text() == "OK";
      });
    }
    wait_until_well();
  }

  bool is_there() const { return !nodes_.empty(); }
  test_server& node(std::size_t i) { return *nodes_[i]; }
  std::size_t size() const { return nodes_.size(); }
  const std::string& id(std::size_t i) const { return ids_[i]; }

  /// The address of a filter, which names the first `seeds` nodes.
  bloomery::redis_address address(const std::string& name = "filter", std::size_t seeds = 3) const {
    bloomery::redis_address a;
    a.cluster = true;
    a.name = name;
    for (std::size_t i = 0; i < nodes_.size() && i < seeds; ++i)
      a.endpoints.push_back({"127.0.0.1", nodes_[i]->port()});
    return a;
  }

  /// Waits until all running nodes report a healthy cluster, and their replicas follow.
  void wait_until_well() {
    wait_until("the cluster is well", [&] {
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i]->pid() <= 0) continue;
        if (info(i).find("cluster_state:ok") == std::string::npos) return false;
        const std::string replication = nodes_[i]->command({"INFO", "replication"}).text();
        if (replication.find("role:slave") != std::string::npos &&
            replication.find("master_link_status:up") == std::string::npos) {
          return false;
        }
      }
      // The slot map that clients receive has all running nodes.
      const auto running = std::count_if(nodes_.begin(), nodes_.end(), [](const auto& n) { return n->pid() > 0; });
      for (const auto& n : nodes_) {
        std::set<std::string> seen;
        for (const slot_range& range : slots_of(*n)) seen.insert(range.nodes.begin(), range.nodes.end());
        if (n->pid() > 0 && seen.size() != static_cast<std::size_t>(running)) return false;
      }
      return true;
    });
  }

  /// The node that claims a slot; of two such nodes, the one with the higher epoch. Waits while none does, because a
  /// replica takes the place of its master.
  std::size_t owner(std::uint16_t slot) {
    std::size_t found = nodes_.size();
    wait_until("a node claims the slot", [&] {
      found = claimant(slot);
      return found != nodes_.size();
    });
    return found;
  }

  /// Moves a slot with its keys to another master, as a resharding does; `between` is called when a part of the keys
  /// has moved, any number of times.
  template <class Between>
  void move_slot(std::uint16_t slot, std::size_t to, Between between) {
    const std::size_t from = owner(slot);
    const std::string s = std::to_string(slot);
    must(to, {"CLUSTER", "SETSLOT", s, "IMPORTING", ids_[from]});
    must(from, {"CLUSTER", "SETSLOT", s, "MIGRATING", ids_[to]});
    between();
    while (true) {
      const auto keys = nodes_[from]->command({"CLUSTER", "GETKEYSINSLOT", s, "1"});
      if (keys.reply().size() == 0) break;
      must(from, {"MIGRATE", "127.0.0.1", std::to_string(nodes_[to]->port()), keys.reply()[0].text(), "0", "5000"});
      between();
    }
    // The new owner first, as the specification requires. If the slot moves on before all nodes know its owner, it may
    // be lost.
    must(to, {"CLUSTER", "SETSLOT", s, "NODE", ids_[to]});
    must(from, {"CLUSTER", "SETSLOT", s, "NODE", ids_[to]});
    wait_until("all know who has the slot and since when", [&] {
      std::set<long> epochs;
      for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i]->pid() <= 0) continue;
        epochs.insert(epoch_in(info(i), "cluster_current_epoch:"));
        for (const slot_range& range : slots_of(*nodes_[i])) {
          if (range.has(slot) && range.nodes.front() != ids_[to]) return false;
        }
      }
      return epochs.size() == 1;
    });
  }
  void move_slot(std::uint16_t slot, std::size_t to) {
    move_slot(slot, to, [] {});
  }

  /// Kills a node.
  void kill(std::size_t i) { nodes_[i]->kill_hard(); }

  /// Restarts a killed node, which becomes a replica of the present owner of its slots.
  void revive(std::size_t i) {
    nodes_[i]->restart();
    wait_until_well();
  }

  /// A present replica of a node.
  std::size_t replica_of(std::size_t master) {
    const std::string its_master = "master_port:" + std::to_string(nodes_[master]->port()) + "\r";
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (i == master || nodes_[i]->pid() <= 0) continue;
      if (nodes_[i]->command({"INFO", "replication"}).text().find(its_master) != std::string::npos) return i;
    }
    throw std::runtime_error("a master without a replica");
  }

  /// Swaps the master of a slot and its replica, without a loss.
  void fail_over(std::uint16_t slot) {
    const std::size_t master = owner(slot);
    const std::size_t replica = replica_of(master);
    // Nodes that have voted recently do not vote again, so the failover is requested repeatedly.
    auto ask_again = std::chrono::steady_clock::now();
    wait_until("master and replica change places", [&] {
      if (std::chrono::steady_clock::now() >= ask_again) {
        nodes_[replica]->command({"CLUSTER", "FAILOVER"});
        ask_again += std::chrono::seconds(1);
      }
      return owner(slot) == replica;
    });
  }

  /// Waits until another node has the slot.
  void wait_for_failover(std::uint16_t slot, std::size_t from) {
    wait_until("a replica takes over", [&] {
      try {
        return owner(slot) != from;
      } catch (const std::runtime_error&) {
        return false;  // no node has it yet
      }
    });
  }

 private:
  // The number of nodes: no node claims the slot.
  std::size_t claimant(std::uint16_t slot) {
    std::size_t found = nodes_.size();
    long newest = -1;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const slot_range& range : slots_of(*nodes_[i])) {
        if (!range.has(slot) || range.nodes.front() != ids_[i]) continue;
        const long epoch = epoch_in(info(i), "cluster_my_epoch:");
        if (epoch > newest) found = i;
        newest = std::max(newest, epoch);
      }
    }
    return found;
  }

  struct slot_range {
    std::int64_t first;
    std::int64_t last;
    std::vector<std::string> nodes;  // ids, the master first

    bool has(std::uint16_t slot) const { return first <= slot && slot <= last; }
  };

  // The slot map as the node reports it; empty if it does not run.
  static std::vector<slot_range> slots_of(test_server& node) {
    std::vector<slot_range> all;
    if (node.pid() <= 0) return all;
    const auto map = node.command({"CLUSTER", "SLOTS"});
    const auto ranges = map.reply();
    for (std::size_t r = 0; r < ranges.size(); ++r) {
      all.push_back({ranges[r][0].integer(), ranges[r][1].integer(), {}});
      for (std::size_t j = 2; j < ranges[r].size(); ++j) all.back().nodes.emplace_back(ranges[r][j][2].text());
    }
    return all;
  }

  static long epoch_in(const std::string& about, const std::string& field) {
    const std::size_t at = about.find(field);
    return at == std::string::npos ? 0 : std::stol(about.substr(at + field.size()));
  }

  std::string info(std::size_t i) { return nodes_[i]->command({"CLUSTER", "INFO"}).text(); }

  void must(std::size_t i, std::initializer_list<std::string_view> words) {
    const auto answer = nodes_[i]->command(words);
    if (answer.is_error()) throw std::runtime_error(std::string(*(words.begin() + 1)) + ": " + answer.text());
  }

  cluster_options options_;
  std::vector<std::unique_ptr<test_server>> nodes_;
  std::vector<std::string> ids_;
};

}  // namespace bloomery_tests
