// bloomery redis doctor ADDRESS: checks servers for settings that endanger a filter, and names the fix.
//
//   $ bloomery redis doctor redis://cache/users
//   OK      server       redis 7.0.15, one server
//   RISK    persistence  no append-only file: a restart goes back to the last snapshot
//                        mend: CONFIG SET appendonly yes, and the same in its configuration
//   ...
//
// It looks and changes nothing. Exit status: 0 all is well, 1 there are risks, or something is not known, 2 an
// error.
#include "cli/commands/grammar.hpp"
#include "cli/commands/redis.hpp"
#include "cli/commands/shared_filter.hpp"

#include "app/numbers.hpp"
#include "cli/io/output.hpp"
#include "cli/text/error_text.hpp"

#include <bloomery/error.hpp>

#include "redis/chain/chain_keys.hpp"
#include "redis/filter/meta.hpp"
#include "redis/filter/rights.hpp"
#include "redis/net/batch.hpp"
#include "redis/net/router.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::cli {
namespace {

struct doctor_options {
  std::string address;
  std::string secret;
  server_options server;
  bool json = false;
};

enum class severity : std::uint8_t { ok, unknown, risk, bad };

const char* name_of(severity s) {
  constexpr const char* names[] = {"OK", "UNKNOWN", "RISK", "BAD"};
  return names[static_cast<std::size_t>(s)];
}

struct finding {
  const char* check;
  severity status;
  std::string text;
  std::string mend = {};
  std::vector<std::string> nodes = {};  // empty: it is about all of them

  bool says_the_same(const finding& other) const {
    return std::string_view(check) == other.check && status == other.status && text == other.text && mend == other.mend;
  }
};

// What one server says of itself.
struct node_facts {
  std::string name;
  bool is_replica = false;
  std::map<std::string, std::string, std::less<>> info;
  std::map<std::string, std::string, std::less<>> config;  // what may be seen of it
  bool cluster_is_well = true;
  std::string cluster_state;
  std::vector<std::string> forbidden;  // commands that this user may not use
  std::vector<std::string> unknown;    // of which no server gave the value
  std::string why_unknown;             // the server's words

  std::string of(std::string_view field) const {
    const auto at = info.find(field);
    return at == info.end() ? "" : at->second;
  }
  std::uint64_t number(std::string_view field) const {
    const std::string text = of(field);
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
  std::optional<std::string> setting(std::string_view name_of_it) const {
    const auto at = config.find(name_of_it);
    return at == config.end() ? std::nullopt : std::optional(at->second);
  }
};

class examination {
 public:
  examination(redis_address address, const doctor_options& options)
      : address_(std::move(address)), options_(options), servers_(address_, connection_of(options.server)) {}

  std::vector<finding> findings() {
    ask();
    for (const node_facts& n : nodes_) {
      if (n.info.empty()) {
        note(n, "server", severity::risk, "it does not let this user ask what it is",
             "ask as a user that may use INFO, CONFIG GET and ACL DRYRUN");
        examine_permissions(n);
        continue;
      }
      examine_server(n);
      examine_kind(n);
      examine_persistence(n);
      examine_eviction(n);
      examine_replicas(n);
      examine_permissions(n);
    }
    measure_latency();
    examine_filter();
    return group();
  }

  const std::vector<node_facts>& nodes() const { return nodes_; }

 private:
  void note(const node_facts& n, const char* check, severity status, std::string text, std::string mend = {}) {
    found_.push_back({check, status, std::move(text), std::move(mend), {n.name}});
  }

  // ---- asking

  // One answer of each node, in the order of nodes_.
  std::vector<redis::router::node_reply> all(const std::vector<std::string_view>& words) {
    return servers_.run_on_nodes(words, options_.server.from_replicas);
  }

  void ask() {
    for (const auto& answer : all({"INFO"})) {
      // A user without permission for this command may still be able to use the filter.
      if (!answer.reply().text().starts_with("NOPERM")) {
        redis::throw_if_error(answer.reply(), address_, "ask the server what it is");
      }
      node_facts n;
      n.name = answer.node;
      n.is_replica = answer.is_replica;
      if (!answer.reply().is_error()) read_info(answer.reply().text(), n);
      nodes_.push_back(std::move(n));
    }
    for (const std::string_view name : {"appendonly", "appendfsync", "save", "min-replicas-to-write"}) {
      each({"CONFIG", "GET", name}, [&](node_facts& n, redis::reply r) {
        if (r.size() >= 2) n.config[std::string(name)] = std::string(r[1].text());
      });
    }
    if (std::any_of(nodes_.begin(), nodes_.end(), [](const node_facts& n) { return n.of("cluster_enabled") == "1"; })) {
      each({"CLUSTER", "INFO"}, [](node_facts& n, redis::reply r) {
        if (r.is_error()) return;
        node_facts lines;
        read_info(r.text(), lines);
        n.cluster_state = lines.of("cluster_state");
        n.cluster_is_well = n.cluster_state == "ok";
      });
    }
    is_chain_ = finds_chain(address_, options_.server);
    ask_for_permissions();
  }

  template <class Take>
  void each(const std::vector<std::string_view>& words, Take take) {
    const auto answers = all(words);
    for (std::size_t i = 0; i < answers.size() && i < nodes_.size(); ++i) take(nodes_[i], answers[i].reply());
  }

  // "name:value\r\n" and comments.
  static void read_info(std::string_view text, node_facts& n) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      const std::size_t colon = line.find(':');
      if (colon == std::string_view::npos || line.front() == '#') continue;
      n.info.emplace(line.substr(0, colon), line.substr(colon + 1));
    }
  }

  // ---- permissions

  bool needs(redis::need what) const {
    switch (what) {
      case redis::need::filter: return !is_chain_;
      case redis::need::chain: return is_chain_;
      case redis::need::both: return true;
      case redis::need::cluster: return address_.cluster;
      case redis::need::sentinel: return !address_.master.empty();
      case redis::need::replica: return address_.cluster && options_.server.from_replicas;
      case redis::need::waiting: return options_.server.wait_replicas != 0;
      case redis::need::database: return address_.database != 0;
    }
    return false;
  }

  // A key of each pattern that the user needs. What may be done with a key does not depend on the command, but on
  // whether that reads or writes.
  std::vector<std::string> some_keys() const {
    if (is_chain_) return {redis::bitmap_key(address_.name, 0), redis::cursor_key(address_.name)};
    const std::string name = redis::key_name(address_.name);
    return {"{" + name + "~0:0}:h", redis::meta_key(address_.name)};
  }

  // What ACL SETUSER has to be told.
  std::string rules() const {
    std::string name;  // no part of it is a pattern
    for (const char c : is_chain_ ? address_.name : redis::key_name(address_.name)) {
      if (c == '*' || c == '?' || c == '[' || c == '\\') name += '\\';
      name += c;
    }
    std::string text = is_chain_ ? "~" + name + "-*" : "~{" + name + "}:* ~{" + name + "~*";
    if (is_chain_ && redis::cursor_key(address_.name) == "cursor") text += " ~cursor";
    for (const redis::right& r : redis::rights) {
      if (needs(r.what)) text += " " + redis::rule_of(r);
    }
    return text;
  }

  void ask_for_permissions() {
    std::string user = address_.user.empty() ? "default" : address_.user;
    each({"ACL", "WHOAMI"}, [&](node_facts&, redis::reply r) {
      if (!r.is_error()) user = std::string(r.text());
    });
    const std::vector<std::string> keys = some_keys();
    for (const redis::right& r : redis::rights) {
      if (r.what == redis::need::database || !needs(r.what)) continue;  // the database is there, or we would not be
      ask_for_permission(user, redis::words_of(r, keys.front()), std::string(redis::name_of(r)),
                         r.harmless && !(redis::takes_key(r) && address_.cluster));  // there a node has other keys
    }
    for (std::size_t i = 1; i < keys.size(); ++i) {
      ask_for_permission(user, {"GET", keys[i]}, "GET on " + keys[i], !address_.cluster);
      ask_for_permission(user, {"SET", keys[i], "x"}, "SET on " + keys[i], false);
    }
  }

  // Asked by ACL DRYRUN, or, where that is not there or not permitted, by trying what does no harm.
  void ask_for_permission(const std::string& user, const std::vector<std::string_view>& words, const std::string& name,
                          bool may_try) {
    std::vector<std::string_view> dry_run = {"ACL", "DRYRUN", user};
    dry_run.insert(dry_run.end(), words.begin(), words.end());
    std::vector<const node_facts*> silent;
    each(dry_run, [&](node_facts& n, redis::reply r) {
      if (r.text().starts_with("ERR Command '") || (!r.is_error() && r.text() != "OK")) {
        n.forbidden.push_back(name);
      } else if (r.is_error()) {
        silent.push_back(&n);
        if (!may_try) n.unknown.push_back(name);
        n.why_unknown = std::string(r.text());
      }
    });
    if (silent.empty() || !may_try) return;
    each(words, [&](node_facts& n, redis::reply r) {
      const bool refused = r.text().starts_with("NOPERM") || r.text().starts_with("ERR unknown command");
      const bool was_silent = std::find(silent.begin(), silent.end(), &n) != silent.end();
      if (was_silent && r.is_error() && refused) n.forbidden.push_back(name);
    });
  }

  // ---- judging

  void examine_server(const node_facts& n) {
    const std::string valkey = n.of("valkey_version");
    const std::string version = valkey.empty() ? n.of("redis_version") : valkey;
    const std::string kind = valkey.empty() ? n.of("server_name").empty() ? "redis" : n.of("server_name") : "valkey";
    unsigned major = 0;
    unsigned minor = 0;
    const char* const end = version.data() + version.size();
    const char* const dot = std::from_chars(version.data(), end, major).ptr;
    if (dot != end) std::from_chars(dot + 1, end, minor);
    const std::string text = fmt::format("{} {}, {}", kind, version.empty() ? "of no version" : version,
                                         n.of("cluster_enabled") == "1" ? "of a cluster" : "one server");
    if (major < 6 || (major == 6 && minor < 2))
      note(n, "server", severity::risk, text + ": filters need Redis 6.2 or later, or Valkey", "a newer server");
    else
      note(n, "server", severity::ok, text);
  }

  void examine_kind(const node_facts& n) {
    const bool of_cluster = n.of("cluster_enabled") == "1";
    if (of_cluster && !address_.cluster) {
      note(n, "address", severity::bad, "it is a node of a cluster, and the address is that of a single server",
           "write redis+cluster://HOST:PORT/NAME");
    } else if (!of_cluster && address_.cluster) {
      note(n, "address", severity::bad, "it is no node of a cluster, and the address is that of a cluster",
           "write redis://HOST:PORT/NAME");
    }
    if (of_cluster) {
      if (n.cluster_is_well)
        note(n, "cluster", severity::ok, "all slots are served");
      else
        note(n, "cluster", severity::bad,
             n.cluster_state.empty() ? "its state is not to be seen" : "its state is " + n.cluster_state,
             "redis-cli --cluster check HOST:PORT");
    }
    if (n.of("role") == "slave" && !n.is_replica) {
      note(n, "role", severity::bad, "it is a replica: it takes no keys", "give the address of its master");
    }
    if (n.of("loading") == "1") note(n, "role", severity::bad, "it is still loading its data", "wait");
  }

  void examine_persistence(const node_facts& n) {
    const bool log = n.of("aof_enabled") == "1";
    const std::string sync = n.setting("appendfsync").value_or("");
    const std::optional<std::string> save = n.setting("save");
    if (log && n.of("aof_last_write_status") != "ok" && !n.of("aof_last_write_status").empty()) {
      note(n, "persistence", severity::bad, "the append-only file could not be written the last time",
           "look at its disk and its log");
    } else if (log && sync == "always") {
      note(n, "persistence", severity::ok, "append-only file, synced before it answers");
    } else if (log) {
      note(n, "persistence", severity::risk,
           sync == "no"
               ? "append-only file, synced when the system likes: a crash loses half a minute of keys"
               : fmt::format("append-only file{}: a crash may lose the last second of keys that were acknowledged",
                             sync.empty() ? "" : ", appendfsync " + sync),
           "CONFIG SET appendfsync always, or add the last keys again after a crash");
    } else if (save && save->empty()) {
      note(n, "persistence", severity::risk, "it keeps nothing on disk: a restart loses all filters",
           "CONFIG SET appendonly yes, and the same in its configuration; or build filters again after a restart");
    } else {
      note(n, "persistence", severity::risk,
           "no append-only file: a restart goes back to the last snapshot" +
               (save ? " (save " + *save + ")" : std::string()),
           "CONFIG SET appendonly yes, and the same in its configuration");
    }
    if (n.of("rdb_last_bgsave_status") == "err") {
      note(n, "persistence", severity::bad, "the last snapshot failed: it may refuse to take keys (MISCONF)",
           "look at its disk and its log");
    }
  }

  void examine_eviction(const node_facts& n) {
    const std::uint64_t most = n.number("maxmemory");
    const std::uint64_t used = n.number("used_memory");
    const std::string policy = n.of("maxmemory_policy");
    if (policy.starts_with("allkeys")) {
      note(n, "eviction", most == 0 ? severity::risk : severity::bad,
           policy + (most == 0 ? ": as soon as maxmemory is set, it throws away parts of filters"
                               : ": when memory is full it throws away parts of filters, which are damaged then"),
           "CONFIG SET maxmemory-policy noeviction, or volatile-lru");
    } else if (policy.starts_with("volatile")) {
      note(n, "eviction", severity::risk,
           policy + ": filters that expire (--ttl, --window) may lose parts of them when memory is full; others stay",
           "CONFIG SET maxmemory-policy noeviction, if there are such filters");
    } else if (policy == "noeviction") {
      note(n, "eviction", severity::ok, "noeviction: what is there stays");
    } else {
      note(n, "eviction", severity::risk, "its policy is not to be seen in INFO",
           "ask who runs it for maxmemory-policy");
    }
    if (most == 0) {
      note(n, "memory", severity::ok, fmt::format("{} used, no limit", bytes_text(used)));
    } else if (static_cast<double>(used) > 0.9 * static_cast<double>(most)) {
      note(n, "memory", severity::risk, fmt::format("{} of {} used", bytes_text(used), bytes_text(most)),
           "CONFIG SET maxmemory to more, or more nodes");
    } else {
      note(n, "memory", severity::ok, fmt::format("{} of {} used", bytes_text(used), bytes_text(most)));
    }
  }

  void examine_replicas(const node_facts& n) {
    if (n.of("role") == "slave") return;
    const std::uint64_t replicas = n.number("connected_slaves");
    const std::optional<std::string> least = n.setting("min-replicas-to-write");
    if (replicas == 0) {
      note(n, "replicas", severity::risk, "none: who loses this machine has what its disk kept",
           "give it a replica, if keys must not be lost");
    } else if (least.value_or("0") == "0") {
      note(n, "replicas", severity::risk,
           counted(replicas, "replica") + ": a failover may lose keys that were acknowledged just before",
           "add with --wait-replicas 1, or CONFIG SET min-replicas-to-write 1");
    } else {
      note(n, "replicas", severity::ok, counted(replicas, "replica") + ", min-replicas-to-write " + *least);
    }
  }

  void examine_permissions(const node_facts& n) {
    const auto list = [](const std::vector<std::string>& names) {
      std::string text;
      for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
      return text;
    };
    const std::string not_known =
        n.unknown.empty() ? ""
                          : fmt::format("not known whether this user may use {}: ACL DRYRUN is answered with '{}'",
                                        list(n.unknown), n.why_unknown);
    const std::string hint = "ACL SETUSER USER " + rules();
    if (!n.forbidden.empty()) {
      note(n, "permissions", severity::bad,
           "this user may not use " + list(n.forbidden) + " on the filter's keys" +
               (not_known.empty() ? "" : "; " + not_known),
           hint);
    } else if (!not_known.empty()) {
      note(n, "permissions", severity::unknown, not_known,
           "ask as a user that may use ACL WHOAMI and ACL DRYRUN, of a server that has it, or see to: " + hint);
    } else {
      note(n, "permissions", severity::ok, "all commands that filters need");
    }
  }

  void measure_latency() {
    constexpr int times = 20;
    std::vector<double> taken;
    for (int i = 0; i < times; ++i) {
      const auto start = std::chrono::steady_clock::now();
      all({"PING"});
      const std::chrono::duration<double, std::milli> all_nodes = std::chrono::steady_clock::now() - start;
      taken.push_back(all_nodes.count() / static_cast<double>(std::max<std::size_t>(nodes_.size(), 1)));
    }
    std::sort(taken.begin(), taken.end());
    const double median = taken[taken.size() / 2];
    const bool slow = median > 10;
    found_.push_back({"latency", slow ? severity::risk : severity::ok,
                      fmt::format("{:.3g} ms from here and back{}", median,
                                  slow ? ": a key at a time is slow, batches are not" : ""),
                      slow ? "work in batches, and nearer to the servers" : ""});
  }

  void examine_filter() {
    if (is_chain_) {
      found_.push_back({"filter", severity::ok, "there is a chain of bitmaps of this name, for --scheme guava-chain"});
      return;
    }
    try {
      auto there = find_shared(address_, options_.server, options_.secret, true);
      if (!there) {
        found_.push_back({"filter", severity::ok, "there is none of this name"});
        return;
      }
      const redis_params& p = there->parameters();
      const std::optional<redis_info> now = info_at_once(*there);
      std::string text = shared_size_text(p);
      if (now) text += fmt::format("; {} in, error now {}", counted(now->inserted, "key"), rate_text(now->rate_now));
      const bool broken = now && judge_fpr(p.filter, now->rate_now).is_broken();
      if (const auto bytes = memory_of_filter()) text += fmt::format("; it takes {} of memory", bytes_text(*bytes));
      found_.push_back({"filter", broken ? severity::risk : severity::ok, text,
                        broken ? "it has more keys than it was made for: make a larger one" : ""});
    } catch (const error& e) {
      if (e.code() == errc::unavailable) throw;
      const bool needs_secret = e.code() == errc::incompatible && options_.secret.empty();
      found_.push_back(
          {"filter", needs_secret ? severity::risk : severity::bad, sentence_of(e),
           e.code() == errc::damaged ? "build it again: what is missing cannot be told from its bits" : ""});
    }
  }

  // By MEMORY USAGE of some shards' keys; nothing if that is not permitted.
  std::optional<std::uint64_t> memory_of_filter() {
    constexpr std::uint64_t most_asked = 16;
    const std::optional<redis::meta> description = redis::read_meta(servers_);
    if (!description) return std::nullopt;
    const std::uint64_t shards = description->shards();
    const std::uint64_t asked = std::min(shards, most_asked);
    std::uint64_t bytes = 0;
    bool known = true;
    for (std::uint64_t i = 0; i < asked; ++i) {
      const std::uint64_t shard = i * shards / asked;
      const std::string header = redis::header_key(*description, shard);
      std::vector<std::string> names = {header};
      ask(header, {"HGETALL", header}, [&](redis::reply r) {
        const auto view = redis::view_of(*description, r, address_.text());
        for (std::size_t l = 0; view && l < view->numbers.size(); ++l) {
          names.push_back(redis::layer_key(*description, shard, view->numbers[l]));
        }
      });
      for (const std::string& name : names) {
        ask(name, {"MEMORY", "USAGE", name}, [&](redis::reply r) {
          known &= !r.is_error();
          bytes += static_cast<std::uint64_t>(r.integer());
        });
      }
    }
    if (!known) return std::nullopt;
    return static_cast<std::uint64_t>(static_cast<double>(bytes) / static_cast<double>(asked) *
                                      static_cast<double>(shards));
  }

  template <class Take>
  void ask(const std::string& key, std::initializer_list<std::string_view> words, Take take) {
    redis::batch one;
    one.begin(redis::slot_of(key), redis::mode::read);
    one.command(words);
    servers_.run(one, [&](std::size_t, redis::reply r) { take(r); });
  }

  // One line for what several nodes have in common.
  std::vector<finding> group() const {
    std::vector<finding> lines;
    for (const finding& f : found_) {
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

  static std::size_t order_of(std::string_view check) {
    constexpr std::string_view order[] = {"server",   "address", "cluster",  "role",    "permissions", "persistence",
                                          "eviction", "memory",  "replicas", "latency", "filter"};
    return static_cast<std::size_t>(std::find(std::begin(order), std::end(order), check) - std::begin(order));
  }

  redis_address address_;
  const doctor_options& options_;
  redis::router servers_;
  bool is_chain_ = false;
  std::vector<node_facts> nodes_;
  std::vector<finding> found_;
};

exit_status redis_doctor(const doctor_options& options) {
  refuse_needless(options.server, {&options.address, 1});
  const redis_address address = redis_address::parse(options.address);
  examination examined(address, options);
  const std::vector<finding> found = examined.findings();
  severity worst = severity::ok;
  for (const finding& f : found) worst = std::max(worst, f.status);

  output out(STDOUT_FILENO, "standard output");
  if (options.json) {
    nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
    for (const node_facts& n : examined.nodes()) nodes.push_back(n.name);
    nlohmann::ordered_json lines = nlohmann::ordered_json::array();
    for (const finding& f : found) {
      lines.push_back({{"check", f.check},
                       {"status", name_of(f.status)},
                       {"text", f.text},
                       {"mend", f.mend.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(f.mend)},
                       {"nodes", f.nodes}});
    }
    out.write(
        json_line({{"filter", address.text()}, {"status", name_of(worst)}, {"nodes", nodes}, {"findings", lines}}));
  } else {
    for (const finding& f : found) {
      std::string where;
      if (!f.nodes.empty() && f.nodes.size() < examined.nodes().size()) {
        for (const std::string& name : f.nodes) where += (where.empty() ? " [" : ", ") + name;
        where += "]";
      }
      out.write(fmt::format("{:<7} {:<12} {}\n", name_of(f.status), f.check, printable(f.text + where)));
      if (!f.mend.empty()) out.write(fmt::format("{:<7} {:<12} mend: {}\n", "", "", printable(f.mend)));
    }
  }
  out.flush();
  return worst == severity::ok ? exit_status::found : exit_status::nothing;
}

}  // namespace

void add_redis_doctor(command_line& line, CLI::App& redis) {
  auto& d = *redis.add_subcommand("doctor", "check servers for settings that endanger a filter");
  auto& o = line.options_of(d, redis_doctor);
  d.add_option("ADDRESS", o.address, "a filter's address; the filter need not be there")->required()->check(check_name);
  add_secret(d, o.secret);
  d.add_flag("--json", o.json, "the result as one JSON object");
  add_waiting(d, o.server);
  add_from_replicas(d, o.server);
  add_server(d, o.server);
  d.footer(std::string(addresses) +
           "Exit status: 0 all is well, 1 there are risks, or something is not known, 2 an error.\nExample: bloomery "
           "redis doctor redis://cache/users");
}

}  // namespace bloomery::cli
