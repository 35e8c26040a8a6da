// The checks of bloomery redis doctor: requests to the servers (redis_doctor_ask.cpp) and their evaluation
// (redis_doctor_judge.cpp).
#pragma once

#include "cli/commands/options.hpp"

#include <bloomery/redis/address.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::cli {

struct doctor_options {
  std::string address;
  std::string secret;
  server_options server;
  bool json = false;
};

enum class severity : std::uint8_t { ok, unknown, risk, bad };

struct finding {
  const char* check;
  severity status;
  std::string text;
  std::string mend = {};
  std::vector<std::string> nodes = {};  // empty: all nodes

  bool says_the_same(const finding& other) const {
    return std::string_view(check) == other.check && status == other.status && text == other.text && mend == other.mend;
  }
};

// The replies of one server. A check without the necessary reply is reported as not checked, with the reason.
struct node_facts {
  std::string name;
  bool is_replica = false;
  std::string unreachable = {};  // why it did not reply; empty: it replied
  std::map<std::string, std::string, std::less<>> info = {};
  std::string why_no_info = {};
  std::map<std::string, std::string, std::less<>> config = {};  // readable settings
  std::string why_no_config = {};
  std::string cluster_state = {};
  std::vector<std::string> forbidden = {};  // commands that this user has no permission for
  std::vector<std::string> unknown = {};    // commands whose permission is unknown
  std::string why_unknown = {};
  std::vector<double> latencies = {};  // of PING, in milliseconds

  std::string of(std::string_view field) const {
    const auto at = info.find(field);
    return at == info.end() ? "" : at->second;
  }
  std::uint64_t number(std::string_view field) const;
  std::optional<std::string> setting(std::string_view name_of_it) const {
    const auto at = config.find(name_of_it);
    return at == config.end() ? std::nullopt : std::optional(at->second);
  }
};

struct examination {
  std::vector<std::string> nodes;  // their names
  std::vector<finding> findings;
};

/// Queries the servers, within the time limit of one request (--timeout) in total.
/// @throws error  as redis::router::run: no server replied
examination examine(const redis_address& address, const doctor_options& options);

/// Findings about one server.
/// @param rules  arguments of ACL SETUSER that permit everything
void judge(const node_facts& n, const redis_address& address, const std::string& rules, std::vector<finding>& found);

/// Merges equal findings of several nodes, and sorts them in the order of the checks.
std::vector<finding> grouped(const std::vector<finding>& found);

/// "not checked: " and the reason.
std::string not_checked(const std::string& why);

}  // namespace bloomery::cli
