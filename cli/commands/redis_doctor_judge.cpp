// What the replies of a server mean for its filters.
#include "cli/commands/redis_doctor.hpp"

#include "app/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>

namespace bloomery::cli {
namespace {

constexpr const char* allow_questions = "ask as a user that may use INFO, CONFIG GET and ACL DRYRUN";

class verdict {
 public:
  verdict(const node_facts& n, std::vector<finding>& found) : n_(n), found_(found) {}

  void examine_all(const redis_address& address, const std::string& rules) {
    if (!n_.unreachable.empty()) {
      note("server", severity::bad, not_checked(n_.unreachable), "check that the server runs and can be reached");
      for (const char* check : {"permissions", "persistence", "eviction", "memory", "replicas"}) {
        note(check, severity::unknown, not_checked("the server did not answer"), "see the check 'server'");
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
    const std::string text = fmt::format("{} {}, {}", kind, version.empty() ? "of no version" : version,
                                         n_.of("cluster_enabled") == "1" ? "of a cluster" : "one server");
    if (major < 6 || (major == 6 && minor < 2))
      note("server", severity::risk, text + ": filters need Redis 6.2 or later, or Valkey", "a newer server");
    else
      note("server", severity::ok, text);
  }

  void examine_kind(const redis_address& address) {
    const bool of_cluster = n_.of("cluster_enabled") == "1";
    if (of_cluster && !address.cluster) {
      note("address", severity::bad, "it is a node of a cluster, and the address is that of a single server",
           "write redis+cluster://HOST:PORT/NAME");
    } else if (!of_cluster && address.cluster) {
      note("address", severity::bad, "it is no node of a cluster, and the address is that of a cluster",
           "write redis://HOST:PORT/NAME");
    }
    if (of_cluster) {
      const std::string& state = n_.cluster_state;
      if (state == "ok") {
        note("cluster", severity::ok, "all slots are served");
      } else {
        note("cluster", state.empty() ? severity::unknown : severity::bad,
             state.empty() ? not_checked("CLUSTER INFO is not allowed") : "its state is " + state,
             "redis-cli --cluster check HOST:PORT");
      }
    }
    if (n_.of("role") == "slave" && !n_.is_replica) {
      note("role", severity::bad, "it is a replica: it takes no keys", "give the address of its master");
    }
    if (n_.of("loading") == "1") note("role", severity::bad, "it is still loading its data", "wait");
  }

  void examine_persistence() {
    const bool log = n_.of("aof_enabled") == "1";
    const std::optional<std::string> sync = n_.setting("appendfsync");
    const std::optional<std::string> save = n_.setting("save");
    if (log && n_.of("aof_last_write_status") != "ok" && !n_.of("aof_last_write_status").empty()) {
      note("persistence", severity::bad, "the append-only file could not be written the last time",
           "look at its disk and its log");
    } else if (log && !sync) {
      note("persistence", severity::unknown, "append-only file; appendfsync " + not_checked(n_.why_no_config),
           allow_questions);
    } else if (log && sync == "always") {
      note("persistence", severity::ok, "append-only file, synced before it answers");
    } else if (log) {
      note("persistence", severity::risk,
           sync == "no"
               ? "append-only file, synced when the system likes: a crash loses half a minute of keys"
               : fmt::format("append-only file, appendfsync {}: a crash may lose the last second of keys that were "
                             "acknowledged",
                             *sync),
           "CONFIG SET appendfsync always, or add the last keys again after a crash");
    } else if (save && save->empty()) {
      note("persistence", severity::risk, "it keeps nothing on disk: a restart loses all filters",
           "CONFIG SET appendonly yes, and the same in its configuration; or build filters again after a restart");
    } else {
      note("persistence", severity::risk,
           "no append-only file: a restart goes back to the last snapshot" +
               (save ? " (save " + *save + ")" : "; save " + not_checked(n_.why_no_config)),
           "CONFIG SET appendonly yes, and the same in its configuration");
    }
    if (n_.of("rdb_last_bgsave_status") == "err") {
      note("persistence", severity::bad, "the last snapshot failed: it may refuse to take keys (MISCONF)",
           "look at its disk and its log");
    }
  }

  void examine_eviction() {
    std::string policy = n_.of("maxmemory_policy");
    if (policy.empty()) policy = n_.setting("maxmemory-policy").value_or("");
    if (policy.starts_with("allkeys")) {
      const bool has_limit = n_.number("maxmemory") != 0;
      note("eviction", has_limit ? severity::bad : severity::risk,
           policy + (has_limit ? ": when memory is full it throws away parts of filters, which are damaged then"
                               : ": as soon as maxmemory is set, it throws away parts of filters"),
           "CONFIG SET maxmemory-policy noeviction, or volatile-lru");
    } else if (policy.starts_with("volatile")) {
      note("eviction", severity::risk,
           policy + ": filters that expire (--ttl, --window) may lose parts of them when memory is full; others stay",
           "CONFIG SET maxmemory-policy noeviction, if there are such filters");
    } else if (policy == "noeviction") {
      note("eviction", severity::ok, "noeviction: what is there stays");
    } else {
      note("eviction", severity::unknown,
           not_checked(n_.info.empty() ? n_.why_no_info : "INFO has no maxmemory_policy"),
           "ask who runs it for maxmemory-policy");
    }
  }

  void examine_memory() {
    const std::uint64_t most = n_.number("maxmemory");
    const std::uint64_t used = n_.number("used_memory");
    if (most == 0) {
      note("memory", severity::ok, fmt::format("{} used, no limit", bytes_text(used)));
    } else if (static_cast<double>(used) > 0.9 * static_cast<double>(most)) {
      note("memory", severity::risk, fmt::format("{} of {} used", bytes_text(used), bytes_text(most)),
           "CONFIG SET maxmemory to more, or more nodes");
    } else {
      note("memory", severity::ok, fmt::format("{} of {} used", bytes_text(used), bytes_text(most)));
    }
  }

  void examine_replicas() {
    if (n_.of("role") == "slave") return;
    const std::uint64_t replicas = n_.number("connected_slaves");
    const std::optional<std::string> least = n_.setting("min-replicas-to-write");
    if (replicas == 0) {
      note("replicas", severity::risk, "none: who loses this machine has what its disk kept",
           "give it a replica, if keys must not be lost");
    } else if (!least) {
      note("replicas", severity::unknown,
           counted(replicas, "replica") + "; min-replicas-to-write " + not_checked(n_.why_no_config), allow_questions);
    } else if (*least == "0") {
      note("replicas", severity::risk,
           counted(replicas, "replica") + ": a failover may lose keys that were acknowledged just before",
           "add with --wait-replicas 1, or CONFIG SET min-replicas-to-write 1");
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
        n_.unknown.empty() ? ""
                           : fmt::format("not known whether this user may use {}: ACL DRYRUN is answered with '{}'",
                                         list(n_.unknown), n_.why_unknown);
    const std::string hint = "ACL SETUSER USER " + rules;
    if (!n_.forbidden.empty()) {
      note("permissions", severity::bad,
           "this user may not use " + list(n_.forbidden) + " on the filter's keys" +
               (not_known.empty() ? "" : "; " + not_known),
           hint);
    } else if (!not_known.empty()) {
      note("permissions", severity::unknown, not_known,
           "ask as a user that may use ACL WHOAMI and ACL DRYRUN, of a server that has it, or see to: " + hint);
    } else {
      note("permissions", severity::ok, "all commands that filters need");
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
