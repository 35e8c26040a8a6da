// Required permissions of users of shared filters, in a single list. `bloomery redis doctor` tests them, docs/redis.md
// prints them, and a test compares them with the commands in the sources and with servers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::redis {

/// The uses that need a command.
enum class need : std::uint8_t {
  filter,    ///< any use of a shared filter
  chain,     ///< any use of a chain of bitmaps
  both,      ///< any use of a shared filter or a chain
  cluster,   ///< on the nodes of a cluster
  sentinel,  ///< on the master that sentinels name
  replica,   ///< to read from replicas of a cluster
  waiting,   ///< to wait for replicas
  database,  ///< for another database than the first
};

/// A command with the minimum number of words: K is a key. Harmless commands change nothing.
struct right {
  std::string_view words;
  need what;
  bool harmless = false;
};

inline constexpr std::array rights = {
    right{"BITCOUNT K", need::both, true},
    right{"BITFIELD K", need::both, true},
    right{"BITFIELD_RO K", need::chain, true},
    right{"BITOP OR K K", need::filter},
    right{"DEL K", need::both},
    right{"EVALSHA 0 1 K", need::both},
    right{"EXISTS K", need::filter, true},
    right{"GET K", need::both, true},
    right{"GETRANGE K 0 0", need::filter, true},
    right{"HDEL K x", need::chain},
    right{"HGET K x", need::both, true},
    right{"HGETALL K", need::filter, true},
    right{"HINCRBY K x 1", need::both},
    right{"HMGET K x", need::chain, true},
    right{"HSET K x x", need::both},
    right{"HSETNX K x x", need::chain},
    right{"INCR K", need::chain},
    right{"PERSIST K", need::both},
    right{"PEXPIRE K 1", need::both},
    right{"PEXPIREAT K 1", need::both},
    right{"PTTL K", need::both, true},
    right{"RENAME K K", need::filter},
    right{"SCAN 0", need::filter, true},
    right{"SCRIPT LOAD return", need::both, true},
    right{"SET K x", need::both},
    right{"SETBIT K 0 1", need::chain},
    right{"SETRANGE K 0 x", need::filter},
    right{"STRLEN K", need::both, true},
    right{"TIME", need::both, true},
    right{"UNLINK K", need::both},
    right{"CLUSTER SLOTS", need::cluster, true},
    right{"ASKING", need::cluster, true},
    right{"ROLE", need::sentinel, true},
    right{"READONLY", need::replica, true},
    right{"WAIT 0 1", need::waiting, true},
    right{"SELECT 0", need::database},
};

/// The words of a command, with `key` in place of K.
inline std::vector<std::string_view> words_of(const right& r, std::string_view key) {
  std::vector<std::string_view> words;
  for (std::string_view rest = r.words; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    words.push_back(rest.substr(0, end) == "K" ? key : rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return words;
}

inline bool takes_key(const right& r) noexcept { return r.words.find(" K") != std::string_view::npos; }

/// "GET", "SCRIPT LOAD"
inline std::string_view name_of(const right& r) noexcept {
  const std::size_t first = std::min(r.words.find(' '), r.words.size());
  const bool has_two = r.words.starts_with("SCRIPT ") || r.words.starts_with("CLUSTER ");
  return r.words.substr(0, has_two ? std::min(r.words.find(' ', first + 1), r.words.size()) : first);
}

/// The form for ACL SETUSER: "+get", "+script|load"
inline std::string rule_of(const right& r) {
  std::string rule = "+";
  for (const char c : name_of(r)) rule += c == ' ' ? '|' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return rule;
}

}  // namespace bloomery::redis
