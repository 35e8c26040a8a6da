// Requests of bloomery redis doctor, on a separate connection for each server.
//
// If a server does not reply, or the user lacks a permission, only the checks that need the reply are skipped. All
// requests together have the time limit of one: each gets at most half of the remaining time.
#include "cli/commands/redis_doctor.hpp"

#include "app/numbers.hpp"
#include "cli/commands/redis_nodes.hpp"
#include "cli/commands/redis_survey.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/text/error_text.hpp"

#include <bloomery/error.hpp>

#include "redis/chain/chain_keys.hpp"
#include "redis/filter/meta.hpp"
#include "redis/filter/rights.hpp"
#include "redis/net/batch.hpp"
#include "redis/net/error_class.hpp"
#include "redis/net/router.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <utility>

namespace bloomery::cli {
namespace {

using std::chrono::milliseconds;
using words = std::vector<std::string>;

// "name:value\r\n" and comments.
void read_info(std::string_view text, std::map<std::string, std::string, std::less<>>& into) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || line.front() == '#') continue;
    into.emplace(line.substr(0, colon), line.substr(colon + 1));
  }
}

std::string answered_with(std::string_view command, std::string_view answer) {
  return fmt::format("the reply to {} is '{}'", command, answer);
}

class examiner {
 public:
  examiner(redis_address address, const doctor_options& options)
      : address_(std::move(address)),
        options_(options),
        connection_(connection_of(options.server)),
        end_(std::chrono::steady_clock::now() + connection_.time) {}

  examination run() {
    for (server_node& node : nodes_at(address_, connection_, options_.server.from_replicas, part_of_time())) {
      node_facts facts;
      facts.name = node.name;
      facts.is_replica = node.is_replica;
      nodes_.push_back({std::move(node.link), std::move(facts)});
    }
    for (examined& n : nodes_) ask_what_it_is(n);
    if (std::all_of(nodes_.begin(), nodes_.end(), [](const examined& n) { return !n.facts.unreachable.empty(); }))
      std::rethrow_exception(first_failure_);
    const bool serves_all =
        std::all_of(nodes_.begin(), nodes_.end(), [](const examined& n) { return n.facts.cluster_state != "fail"; });
    is_chain_ = serves_all && finds_chain(address_, limited_server());
    for (examined& n : nodes_) ask_for_permissions(n);
    for (examined& n : nodes_) measure_latency(n);

    examination result;
    for (const examined& n : nodes_) {
      result.nodes.push_back(n.facts.name);
      judge(n.facts, address_, rules(), found_);
    }
    judge_latency();
    if (serves_all)
      examine_filter();
    else
      found_.push_back({"filter", severity::unknown, not_checked("the cluster does not serve all slots"),
                        "see the check 'cluster'"});
    result.findings = grouped(found_);
    return result;
  }

 private:
  struct examined {
    std::unique_ptr<redis::router> link;
    node_facts facts;
  };

  // ---- requests

  milliseconds rest_of_time() const {
    return std::chrono::duration_cast<milliseconds>(end_ - std::chrono::steady_clock::now());
  }
  milliseconds part_of_time() const { return std::max(rest_of_time() / 2, milliseconds(1)); }

  server_options limited_server() const {
    server_options limited = options_.server;
    limited.milliseconds = static_cast<std::uint64_t>(part_of_time().count());
    return limited;
  }

  // Runs commands, and calls take(number of the command, reply). @throws error  as redis::router::run
  template <class Take>
  void ask(examined& n, const std::vector<words>& commands, Take take) {
    if (rest_of_time() <= milliseconds::zero()) {
      throw error(errc::unavailable,
                  {"the time limit was reached", n.facts.name, "", "", "give a longer limit: --timeout 30s"});
    }
    redis::batch all;
    for (const words& command : commands) {
      all.begin(0, redis::mode::read);
      all.start(command.size());
      for (const std::string& word : command) all.word(word);
    }
    n.link->run(all, take, part_of_time());
  }

  void ask_what_it_is(examined& n) {
    node_facts& f = n.facts;
    const std::vector<std::string> settings = {"appendonly", "appendfsync", "save", "min-replicas-to-write",
                                               "maxmemory-policy"};
    std::vector<words> commands = {{"INFO"}, {"CLUSTER", "INFO"}, {"ACL", "WHOAMI"}};
    for (const std::string& setting : settings) commands.push_back({"CONFIG", "GET", setting});
    try {
      ask(n, commands, [&](std::size_t i, const redis::reply& r) {
        if (r.text().starts_with("NOAUTH")) redis::throw_if_error(r, address_, "query the server");
        if (i == 0) {
          if (r.is_error())
            f.why_no_info = answered_with("INFO", r.text());
          else
            read_info(r.text(), f.info);
        } else if (i == 1) {
          std::map<std::string, std::string, std::less<>> lines;
          if (!r.is_error()) read_info(r.text(), lines);
          f.cluster_state = lines["cluster_state"];
        } else if (i == 2) {
          if (!r.is_error()) user_ = r.text();
        } else if (r.size() >= 2) {
          f.config[settings[i - 3]] = r[1].text();
        } else if (f.why_no_config.empty()) {
          f.why_no_config = r.is_error() ? answered_with("CONFIG GET", r.text()) : "CONFIG GET does not have it";
        }
      });
      f.name = n.link->node_of(0);  // with sentinels it is known only now
    } catch (const error& e) {
      f.unreachable = sentence_of(e);
      if (!first_failure_) first_failure_ = std::current_exception();
    }
  }

  void measure_latency(examined& n) {
    constexpr int times = 20;
    try {
      for (int i = 0; i < times && n.facts.unreachable.empty(); ++i) {
        const auto start = std::chrono::steady_clock::now();
        ask(n, {{"PING"}}, [](std::size_t, const redis::reply&) {});  // an error is a round trip as well
        const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
        n.facts.latencies.push_back(taken.count());
      }
    } catch (const error& e) {
      why_no_latency_ = sentence_of(e);
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

  // A key of each pattern that the user needs. Permissions for a key distinguish reading and writing, not commands.
  std::vector<std::string> some_keys() const {
    if (is_chain_) return {redis::bitmap_key(address_.name, 0), redis::cursor_key(address_.name)};
    const std::string name = redis::key_name(address_.name);
    return {"{" + name + "~0:0}:h", redis::meta_key(address_.name)};
  }

  // The arguments of ACL SETUSER.
  std::string rules() const {
    const std::string name = literal_pattern(is_chain_ ? address_.name : redis::key_name(address_.name));
    std::string text = is_chain_ ? "~" + name + "-*" : "~{" + name + "}:* ~{" + name + "~*";
    if (is_chain_ && redis::cursor_key(address_.name) == "cursor") text += " ~cursor";
    for (const redis::right& r : redis::rights) {
      if (needs(r.what)) text += " " + redis::rule_of(r);
    }
    return text;
  }

  std::string allow_all() const { return "ACL SETUSER USER " + rules(); }

  struct permission {
    std::string name;
    words command;
    bool may_try;  // whether to send the command if there is no ACL DRYRUN
  };

  std::vector<permission> permissions() const {
    std::vector<permission> all;
    const std::vector<std::string> keys = some_keys();
    for (const redis::right& r : redis::rights) {
      if (r.what == redis::need::database || !needs(r.what))
        continue;  // the connection has selected the database already
      const std::vector<std::string_view> command = redis::words_of(r, keys.front());
      all.push_back(
          {std::string(redis::name_of(r)), words(command.begin(), command.end()),
           r.harmless && !(redis::takes_key(r) && address_.cluster)});  // a node of a cluster may have other keys
    }
    for (std::size_t i = 1; i < keys.size(); ++i) {
      all.push_back({"GET on " + keys[i], {"GET", keys[i]}, !address_.cluster});
      all.push_back({"SET on " + keys[i], {"SET", keys[i], "x"}, false});
    }
    return all;
  }

  // Checks permissions by ACL DRYRUN, or if that is missing or not permitted, by harmless commands.
  void ask_for_permissions(examined& n) {
    if (!n.facts.unreachable.empty()) return;
    enum class answer : std::uint8_t { none, allowed, forbidden };
    const std::vector<permission> all = permissions();
    std::vector<answer> answers(all.size(), answer::none);
    const auto try_to_ask = [&](const std::vector<words>& commands, auto take) {
      try {
        if (!commands.empty()) ask(n, commands, take);
      } catch (const error& e) {
        n.facts.why_unknown = sentence_of(e);
      }
    };
    std::vector<words> dry_runs;
    for (const permission& p : all) {
      words command = {"ACL", "DRYRUN", user_.empty() ? address_.user.empty() ? "default" : address_.user : user_};
      command.insert(command.end(), p.command.begin(), p.command.end());
      dry_runs.push_back(std::move(command));
    }
    try_to_ask(dry_runs, [&](std::size_t i, const redis::reply& r) {
      if (r.text().starts_with("ERR Command '") || (!r.is_error() && r.text() != "OK"))
        answers[i] = answer::forbidden;
      else if (!r.is_error())
        answers[i] = answer::allowed;
      else
        n.facts.why_unknown = r.text();
    });
    std::vector<words> tries;
    std::vector<std::size_t> tried;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (answers[i] != answer::none || !all[i].may_try) continue;
      tries.push_back(all[i].command);
      tried.push_back(i);
    }
    try_to_ask(tries, [&](std::size_t i, const redis::reply& r) {
      const bool refused = r.text().starts_with("NOPERM") || r.text().starts_with("ERR unknown command");
      answers[tried[i]] = r.is_error() && refused ? answer::forbidden : answer::allowed;
    });
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (answers[i] == answer::forbidden) n.facts.forbidden.push_back(all[i].name);
      if (answers[i] == answer::none) n.facts.unknown.push_back(all[i].name);
    }
  }

  // ---- checks of the whole cluster

  void judge_latency() {
    std::vector<double> taken;
    for (const examined& n : nodes_) taken.insert(taken.end(), n.facts.latencies.begin(), n.facts.latencies.end());
    if (taken.empty()) {
      found_.push_back({"latency", severity::unknown, not_checked(why_no_latency_), "see the check 'server'"});
      return;
    }
    std::sort(taken.begin(), taken.end());
    const double median = taken[taken.size() / 2];
    const bool slow = median > 10;
    found_.push_back(
        {"latency", slow ? severity::risk : severity::ok,
         fmt::format("round trip {:.3g} ms{}", median, slow ? ": single keys are slow, batches are fast" : ""),
         slow ? "use batches, and run the client closer to the servers" : ""});
  }

  void examine_filter() {
    if (is_chain_) {
      found_.push_back({"filter", severity::ok, "the name is that of a Guava chain; use --scheme guava-chain"});
      return;
    }
    try {
      if (rest_of_time() <= milliseconds::zero()) {
        throw error(errc::unavailable,
                    {"the time limit was reached", "", "", "", "give a longer limit: --timeout 30s"});
      }
      const server_options limited = limited_server();
      auto there = find_shared(address_, limited, options_.secret, true);
      if (!there) {
        found_.push_back({"filter", severity::ok, "there is no filter with this name"});
        return;
      }
      const redis_params& p = there->parameters();
      std::string text = shared_size_text(p);
      std::optional<redis_info> now;
      try {
        now = info_at_once(*there);
      } catch (const error& e) {
        if (e.code() != errc::not_permitted) throw;
        found_.push_back(
            {"filter", severity::unknown, text + "; number of keys " + not_checked(sentence_of(e)), allow_all()});
        return;
      }
      if (now) text += fmt::format("; {}, current FPR {}", counted(now->inserted, "key"), rate_text(now->rate_now));
      const bool broken = now && judge_fpr(p.filter, now->rate_now).is_broken();
      redis::router servers(address_, connection_of(limited));
      if (const auto description = redis::read_meta(servers)) {
        if (const auto bytes = memory_of(servers, *description))
          text += fmt::format("; {} of server memory", bytes_text(*bytes));
      }
      found_.push_back({"filter", broken ? severity::risk : severity::ok, text,
                        broken ? "it has more keys than its capacity; build a larger filter" : ""});
    } catch (const error& e) {
      if (e.code() == errc::unavailable || e.code() == errc::not_permitted) {
        found_.push_back({"filter", severity::unknown, not_checked(sentence_of(e)),
                          e.code() == errc::unavailable ? "see the check 'server'" : allow_all()});
        return;
      }
      const bool needs_secret = e.code() == errc::incompatible && options_.secret.empty();
      found_.push_back({"filter", needs_secret ? severity::risk : severity::bad, sentence_of(e),
                        e.code() == errc::damaged ? "build it again from its keys" : ""});
    }
  }

  redis_address address_;
  const doctor_options& options_;
  redis_connection_options connection_;
  std::chrono::steady_clock::time_point end_;
  std::vector<examined> nodes_;
  std::vector<finding> found_;
  std::exception_ptr first_failure_;
  std::string user_;
  std::string why_no_latency_ = "the servers did not reply";
  bool is_chain_ = false;
};

}  // namespace

examination examine(const redis_address& address, const doctor_options& options) {
  return examiner(address, options).run();
}

}  // namespace bloomery::cli
