// Evaluation of the replies of a server.
#include "cli/commands/redis_doctor.hpp"

#include "app/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>

namespace bloomery::cli {
namespace {

constexpr const char* allow_questions = "run the check as a user with permission for INFO, CONFIG GET and ACL DRYRUN";

class verdict {
 public:
  verdict(const node_facts& n, std::vector<finding>& found) : n_(n), found_(found) {}

  void examine_all(const redis_address& address, const std::string& rules) {
    if (!n_.unreachable.empty()) {
      note("server", severity::bad, not_checked(n_.unreachable), "check that the server is running and reachable");
      for (const char* check : {"permissions", "persistence", "eviction", "memory", "replicas"}) {
        note(check, severity::unknown, not_checked("the server did not reply"), "see the check 'server'");
      }
      return;
    }
    examine_permissions(rules);
    examine_eviction();
    if (n_.info.empty()) {
      for (const char* check : {"server", "persistence", "memory", "replicas"}) {
        note(check, severity::unknown, not_checked(n_.why_no_info), allow_questions);
      }
      return;
    }
    examine_server();
    examine_kind(address);
    examine_persistence();
    examine_memory();
    examine_replicas();
  }

 private:
  void note(const char* check, severity status, std::string text, std::string mend = {}) {
    found_.push_back({check, status, std::move(text), std::move(mend), {n_.name}});
  }

  void examine_server() {
    const std::string valkey = n_.of("valkey_version");
    const std::string version = valkey.empty() ? n_.of("redis_version") : valkey;
    const std::string kind = valkey.empty() ? n_.of("server_name").empty() ? "redis" : n_.of("server_name") : "valkey";
    unsigned major = 0;
    unsigned minor = 0;
    const char* const end = version.data() + version.size();
    const char* const dot = std::from_chars(version.data(), end, major).ptr;
    if (dot != end) std::from_chars(dot + 1, end, minor);
    const std::string text = fmt::format("{} {}, {}", kind, version.empty() ? "unknown version" : version,
                                         n_.of("cluster_enabled") == "1" ? "cluster node" : "single server");
    if (major < 6 || (major == 6 && minor < 2))
      note("server", severity::risk, text + ": filters need Redis 6.2 or later, or Valkey", "upgrade the server");
    else
      note("server", severity::ok, text);
  }

  void examine_kind(const redis_address& address) {
    const bool of_cluster = n_.of("cluster_enabled") == "1";
    if (of_cluster && !address.cluster) {
      note("address", severity::bad, "the server is a cluster node, but the address is that of a single server",
           "use redis+cluster://HOST:PORT/NAME");
    } else if (!of_cluster && address.cluster) {
      note("address", severity::bad, "the server is not a cluster node, but the address is that of a cluster",
           "use redis://HOST:PORT/NAME");
    }
    if (of_cluster) {
      const std::string& state = n_.cluster_state;
      if (state == "ok") {
        note("cluster", severity::ok, "all slots are served");
      } else {
        note("cluster", state.empty() ? severity::unknown : severity::bad,
             state.empty() ? not_checked("CLUSTER INFO is not allowed") : "the cluster state is " + state,
             "run redis-cli --cluster check HOST:PORT");
      }
    }
    if (n_.of("role") == "slave" && !n_.is_replica) {
      note("role", severity::bad, "the server is a replica and does not accept keys", "use the address of its master");
    }
    if (n_.of("loading") == "1") note("role", severity::bad, "the server is still loading its data", "wait");
  }

  void examine_persistence() {
    const bool log = n_.of("aof_enabled") == "1";
    const std::optional<std::string> sync = n_.setting("appendfsync");
    const std::optional<std::string> save = n_.setting("save");
    if (log && n_.of("aof_last_write_status") != "ok" && !n_.of("aof_last_write_status").empty()) {
      note("persistence", severity::bad, "the last write to the append-only file failed",
           "check the disk and the log of the server");
    } else if (log && !sync) {
      note("persistence", severity::unknown, "append-only file; appendfsync " + not_checked(n_.why_no_config),
           allow_questions);
    } else if (log && sync == "always") {
      note("persistence", severity::ok, "append-only file, synced before each reply");
    } else if (log) {
      note("persistence", severity::risk,
           sync == "no"
               ? "append-only file, never synced explicitly: a crash may lose the last 30 seconds of keys"
               : fmt::format("append-only file, appendfsync {}: a crash may lose the acknowledged keys of the last "
                             "second",
                             *sync),
           "CONFIG SET appendfsync always, or add the last keys again after a crash");
    } else if (save && save->empty()) {
      note("persistence", severity::risk, "no persistence: a restart loses all filters",
           "CONFIG SET appendonly yes, also in its configuration file; or build the filters again after a restart");
    } else {
      note("persistence", severity::risk,
           "no append-only file: a restart goes back to the last snapshot" +
               (save ? " (save " + *save + ")" : "; save " + not_checked(n_.why_no_config)),
           "CONFIG SET appendonly yes, also in its configuration file");
    }
    if (n_.of("rdb_last_bgsave_status") == "err") {
      note("persistence", severity::bad, "the last snapshot failed: the server may refuse writes (MISCONF)",
           "check the disk and the log of the server");
    }
  }

  void examine_eviction() {
    std::string policy = n_.of("maxmemory_policy");
    if (policy.empty()) policy = n_.setting("maxmemory-policy").value_or("");
    if (policy.starts_with("allkeys")) {
      const bool has_limit = n_.number("maxmemory") != 0;
      note("eviction", has_limit ? severity::bad : severity::risk,
           policy + (has_limit ? ": when memory is full, the server evicts parts of filters, which damages them"
                               : ": if maxmemory is set, the server evicts parts of filters"),
           "CONFIG SET maxmemory-policy noeviction, or volatile-lru");
    } else if (policy.starts_with("volatile")) {
      note("eviction", severity::risk,
           policy + ": when memory is full, filters that expire (--ttl, --window) may lose parts; others are safe",
           "CONFIG SET maxmemory-policy noeviction, if there are such filters");
    } else if (policy == "noeviction") {
      note("eviction", severity::ok, "noeviction: no filter is evicted");
    } else {
      note("eviction", severity::unknown,
           not_checked(n_.info.empty() ? n_.why_no_info : "INFO has no maxmemory_policy"),
           "ask the operator of the server for maxmemory-policy");
    }
  }

  void examine_memory() {
    const std::uint64_t most = n_.number("maxmemory");
    const std::uint64_t used = n_.number("used_memory");
    if (most == 0) {
      note("memory", severity::ok, fmt::format("{} used, no limit", bytes_text(used)));
    } else if (static_cast<double>(used) > 0.9 * static_cast<double>(most)) {
      note("memory", severity::risk, fmt::format("{} of {} used", bytes_text(used), bytes_text(most)),
           "raise maxmemory with CONFIG SET, or add nodes");
    } else {
      note("memory", severity::ok, fmt::format("{} of {} used", bytes_text(used), bytes_text(most)));
    }
  }

  void examine_replicas() {
    if (n_.of("role") == "slave") return;
    const std::uint64_t replicas = n_.number("connected_slaves");
    const std::optional<std::string> least = n_.setting("min-replicas-to-write");
    if (replicas == 0) {
      note("replicas", severity::risk, "none: if this machine is lost, so is all data that is not on another disk",
           "add a replica if keys must not be lost");
    } else if (!least) {
      note("replicas", severity::unknown,
           counted(replicas, "replica") + "; min-replicas-to-write " + not_checked(n_.why_no_config), allow_questions);
    } else if (*least == "0") {
      note("replicas", severity::risk,
           counted(replicas, "replica") + ": a failover may lose the last acknowledged keys",
           "insert with --wait-replicas 1, or CONFIG SET min-replicas-to-write 1");
    } else {
      note("replicas", severity::ok, counted(replicas, "replica") + ", min-replicas-to-write " + *least);
    }
  }

  void examine_permissions(const std::string& rules) {
    const auto list = [](const std::vector<std::string>& names) {
      std::string text;
      for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
      return text;
    };
    const std::string not_known =
        n_.unknown.empty()
            ? ""
            : fmt::format("unknown whether this user has permission for {}: the reply to ACL DRYRUN is '{}'",
                          list(n_.unknown), n_.why_unknown);
    const std::string hint = "ACL SETUSER USER " + rules;
    if (!n_.forbidden.empty()) {
      note("permissions", severity::bad,
           "this user has no permission for " + list(n_.forbidden) + " on the filter's keys" +
               (not_known.empty() ? "" : "; " + not_known),
           hint);
    } else if (!not_known.empty()) {
      note("permissions", severity::unknown, not_known,
           "run the check as a user with permission for ACL WHOAMI and ACL DRYRUN (Redis 7), or make sure of: " + hint);
    } else {
      note("permissions", severity::ok, "all commands that filters need are permitted");
    }
  }

  const node_facts& n_;
  std::vector<finding>& found_;
};

std::size_t order_of(std::string_view check) {
  constexpr std::string_view order[] = {"server",   "address", "cluster",  "role",    "permissions", "persistence",
                                        "eviction", "memory",  "replicas", "latency", "filter"};
  return static_cast<std::size_t>(std::find(std::begin(order), std::end(order), check) - std::begin(order));
}

}  // namespace

std::uint64_t node_facts::number(std::string_view field) const {
  const std::string text = of(field);
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string not_checked(const std::string& why) { return "not checked: " + why; }

void judge(const node_facts& n, const redis_address& address, const std::string& rules, std::vector<finding>& found) {
  verdict(n, found).examine_all(address, rules);
}

std::vector<finding> grouped(const std::vector<finding>& found) {
  std::vector<finding> lines;
  for (const finding& f : found) {
    const auto same = std::find_if(lines.begin(), lines.end(), [&](const finding& l) { return l.says_the_same(f); });
    if (same == lines.end())
      lines.push_back(f);
    else
      same->nodes.insert(same->nodes.end(), f.nodes.begin(), f.nodes.end());
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const finding& a, const finding& b) { return order_of(a.check) < order_of(b.check); });
  return lines;
}

}  // namespace bloomery::cli
