// bloomery redis gc SERVER: removes shards that no filter uses.
//
//   $ bloomery redis gc redis://cache
//   {users~0011223344556677}  2 keys  13 KiB  idle 2 h  replaced by another instance
//   bloomery: 1 orphan, 13 KiB; give --yes to remove it
//
// A client that is killed while it replaces or drops a filter may leave the shards of one instance: {NAME~EPOCH:s}. An
// instance is an orphan if the description {NAME}:m or {NAME}:m2 names another one, {NAME}:n does not announce it, and
// none of its keys was used for some minutes: during a replacement, shards are created before they are announced.
//
// If a name has no description, it may have been evicted while clients that know it still write to the shards. Such
// instances are only reported, unless --without-description is given.
#include "cli/commands/redis.hpp"

#include "app/numbers.hpp"
#include "cli/commands/confirmation.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/redis_nodes.hpp"
#include "cli/commands/redis_survey.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/io/output.hpp"

#include <bloomery/error.hpp>

#include "redis/filter/meta.hpp"
#include "redis/net/batch.hpp"
#include "redis/net/error_class.hpp"
#include "redis/net/router.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bloomery::cli {
namespace {

constexpr std::uint64_t usual_idle_time = 5 * 60 * 1000;
constexpr std::size_t keys_together = 1024;

struct gc_options {
  std::string server_address;
  std::uint64_t least_idle = usual_idle_time;  // milliseconds
  bool without_description = false;
  bool yes = false;
  bool json = false;
  server_options server;
};

enum class owner : std::uint8_t { in_use, other_instance, no_description, unreadable };

const char* text_of(owner o) {
  constexpr const char* texts[] = {"in use", "replaced by another instance", "without a description",
                                   "its description is unreadable"};
  return texts[static_cast<std::size_t>(o)];
}

// The shards of one instance, NAME~EPOCH.
struct instance {
  std::string name;  // of the filter
  std::string text;  // NAME~EPOCH, as in keys
  std::vector<std::string> keys = {};
  owner owned_by = owner::in_use;
  std::optional<std::uint64_t> memory = {};
  std::optional<std::uint64_t> idle = {};  // seconds since the last use of any of its keys
  bool is_old = false;                     // idle for long enough
  bool is_removed = false;
};

// The instance in a key "{NAME~EPOCH:s}:PART"; empty for other keys.
std::string_view instance_in(std::string_view key) {
  const auto is_number = [](std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  constexpr std::size_t epoch_digits = 16;
  const std::size_t brace = key.find('}');
  if (!key.starts_with('{') || brace == key.npos || key.substr(brace, 2) != "}:") return {};
  const std::string_view rest = key.substr(brace + 2);  // the header, a layer, or a copy being made
  if (rest.empty() || rest.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz") != rest.npos) return {};
  const std::string_view tag = key.substr(1, brace - 1);
  const std::size_t colon = tag.rfind(':');
  if (colon == tag.npos || !is_number(tag.substr(colon + 1))) return {};
  const std::string_view text = tag.substr(0, colon);
  const std::size_t tilde = text.rfind('~');
  if (tilde == text.npos || text.size() - tilde - 1 != epoch_digits) return {};
  const std::string_view epoch = text.substr(tilde + 1);
  return epoch.find_first_not_of("0123456789abcdef") == epoch.npos ? text : std::string_view();
}

owner owner_of(const instance& i, const described_name& described) {
  for (const auto* named : {&described.now, &described.second, &described.coming}) {
    if (*named && (*named)->instance == i.text) return owner::in_use;
  }
  if (!described.problem.empty() || described.is_other) return owner::unreadable;
  return described.now ? owner::other_instance : owner::no_description;
}

class collection {
 public:
  explicit collection(const gc_options& options)
      : options_(options),
        address_(redis_address::parse_server(options.server_address)),
        servers_(address_, connection_of(options.server)) {}

  /// Instances that are not in use, the largest first.
  std::vector<instance>& find() {
    std::map<std::string, instance, std::less<>> all;
    scan_keys(address_, servers_.options(), "{*~*:*}:*", [&](std::string_view key) {
      const std::string_view text = instance_in(key);
      if (text.empty()) return;
      const std::optional<std::string> name = decoded_key_name(text.substr(0, text.rfind('~')));
      if (!name || (!address_.name.empty() && *name != address_.name)) return;
      auto at = all.find(text);
      if (at == all.end()) at = all.emplace(text, instance{*name, std::string(text)}).first;
      at->second.keys.emplace_back(key);
    });
    std::vector<instance*> candidates;
    candidates.reserve(all.size());
    for (auto& [text, i] : all) candidates.push_back(&i);
    judge(candidates);
    for (instance* i : candidates) {
      if (i->owned_by == owner::in_use) continue;
      std::sort(i->keys.begin(), i->keys.end());  // SCAN may return a key twice
      i->keys.erase(std::unique(i->keys.begin(), i->keys.end()), i->keys.end());
      i->memory = memory_of_keys(servers_, i->keys);
      measure_idle_time(*i);
      found_.push_back(std::move(*i));
    }
    std::stable_sort(found_.begin(), found_.end(),
                     [](const instance& a, const instance& b) { return a.memory.value_or(0) > b.memory.value_or(0); });
    return found_;
  }

  bool may_remove(const instance& i) const {
    return i.is_old && (i.owned_by == owner::other_instance ||
                        (i.owned_by == owner::no_description && options_.without_description));
  }

  /// Removes an instance, after checking its description and its use again.
  void remove() {
    for (instance& i : found_) {
      if (!may_remove(i)) continue;
      const owner before = i.owned_by;
      judge({&i});
      measure_idle_time(i);
      if (i.owned_by != before || !i.is_old) continue;
      for (std::size_t first = 0; first < i.keys.size(); first += keys_together) {
        redis::batch unlink;
        for (std::size_t k = first; k < std::min(i.keys.size(), first + keys_together); ++k) {
          unlink.begin(redis::slot_of(i.keys[k]), redis::mode::write);
          unlink.command({"UNLINK", i.keys[k]});
        }
        servers_.run(unlink, [&](std::size_t, redis::reply r) {
          redis::throw_if_error(r, servers_.address(), "remove the keys of an orphan");
        });
      }
      i.is_removed = true;
    }
  }

  std::string server() const { return address_.text(); }

 private:
  void judge(const std::vector<instance*>& these) {
    std::vector<std::string> names;
    names.reserve(these.size());
    for (const instance* i : these) names.push_back(i->name);
    const std::vector<described_name> described = descriptions_of(servers_, names);
    for (std::size_t k = 0; k < these.size(); ++k) these[k]->owned_by = owner_of(*these[k], described[k]);
  }

  // OBJECT IDLETIME does not count as a use. It fails under the policies *-lfu, which count uses instead.
  void measure_idle_time(instance& i) {
    std::optional<std::uint64_t> least;
    bool known = true;
    for (std::size_t first = 0; first < i.keys.size() && known; first += keys_together) {
      redis::batch question;
      for (std::size_t k = first; k < std::min(i.keys.size(), first + keys_together); ++k) {
        question.begin(redis::slot_of(i.keys[k]), redis::mode::write);  // of masters
        question.command({"OBJECT", "IDLETIME", i.keys[k]});
      }
      servers_.run(question, [&](std::size_t, redis::reply r) {
        known &= !r.is_error();
        if (!r.is(redis::reply_type::integer)) return;  // removed in the meantime
        const auto idle = static_cast<std::uint64_t>(std::max<std::int64_t>(r.integer(), 0));
        least = std::min(least.value_or(idle), idle);
      });
    }
    i.idle = known ? least : std::nullopt;
    i.is_old = options_.least_idle == 0 || (i.idle && *i.idle * 1000 >= options_.least_idle);
  }

  const gc_options& options_;
  redis_address address_;
  redis::router servers_;
  std::vector<instance> found_;
};

std::string memory_text(const instance& i) { return i.memory ? bytes_text(*i.memory) : "unknown size"; }

std::string idle_text(const instance& i) {
  return i.idle ? "idle " + duration_text(*i.idle * 1000) : "idle time unknown";
}

std::string status_of(const instance& i, const gc_options& options) {
  if (i.is_removed) return "removed";
  if (i.owned_by == owner::unreadable) return "kept";
  if (!i.is_old) {
    return i.idle ? "kept: used within " + duration_text(options.least_idle)
                  : "kept: the server does not report idle times; see --min-idle";
  }
  if (i.owned_by == owner::no_description && !options.without_description) {
    return "kept: clients may still write to it; see --without-description";
  }
  return "can be removed";
}

nlohmann::ordered_json json_of(const instance& i, const std::string& status) {
  const auto or_null = [](const std::optional<std::uint64_t>& n) {
    return n ? nlohmann::ordered_json(*n) : nlohmann::ordered_json(nullptr);
  };
  return {{"instance", i.text},          {"name", i.name},
          {"why", text_of(i.owned_by)},  {"keys", i.keys.size()},
          {"memory", or_null(i.memory)}, {"idle_seconds", or_null(i.idle)},
          {"removed", i.is_removed},     {"status", status}};
}

// "3 orphans, 1.2 MiB"
template <class Counts>
std::string sum_text(const std::vector<instance>& all, Counts counts) {
  std::size_t orphans = 0;
  std::uint64_t bytes = 0;
  for (const instance& i : all) {
    if (!counts(i)) continue;
    ++orphans;
    bytes += i.memory.value_or(0);
  }
  return counted(orphans, "orphan") + ", " + bytes_text(bytes);
}

void print(const std::vector<instance>& all, const gc_options& options) {
  output out(STDOUT_FILENO, "standard output");
  for (const instance& i : all) {
    const std::string line = fmt::format("{{{}}}  {}  {}  {}  {}: {}", i.text, counted(i.keys.size(), "key"),
                                         memory_text(i), idle_text(i), text_of(i.owned_by), status_of(i, options));
    out.write(printable(line) + "\n");
  }
  out.flush();
}

exit_status gc(const gc_options& options) {
  refuse_needless(options.server, {&options.server_address, 1});
  collection servers(options);
  std::vector<instance>& found = servers.find();
  const auto may_go = [&](const instance& i) { return servers.may_remove(i); };
  const auto is_gone = [](const instance& i) { return i.is_removed; };
  const bool has_orphans = std::any_of(found.begin(), found.end(), may_go);
  const std::string where = servers.server() + ": ";
  const bool asks = has_orphans && !options.yes && !options.json && can_ask();
  if (asks) print(found, options);  // before the question
  const bool removes =
      has_orphans && (options.yes || (asks && confirmed(where + "gc removes " + sum_text(found, may_go), false)));
  if (removes) servers.remove();
  if (options.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const instance& i : found) all.push_back(json_of(i, status_of(i, options)));
    print_result({{"server", servers.server()}, {"instances", all}});
    return exit_status::found;
  }
  if (!asks) print(found, options);
  if (removes)
    say(where + sum_text(found, is_gone) + " removed");
  else if (!asks)
    say(where + sum_text(found, may_go) + (has_orphans ? "; give --yes to remove them" : ""));
  return exit_status::found;
}

}  // namespace

void add_redis_gc(command_line& line, command& redis) {
  command& c = redis.subcommand("gc", "find and remove shards that no filter uses");
  auto& o = line.options_of(c, gc);
  c.positional("SERVER", o.server_address, server_help).required().not_empty();
  c.option(
      "--min-idle",
      [&o](const std::string& text) { o.least_idle = text == "0" ? 0 : parse_duration(text, "--min-idle"); },
      "DURATION", "keep shards used within this time; default: 5min; 0: do not check");
  c.flag("--without-description", o.without_description,
         "also remove shards whose filter has no description; see below");
  add_yes(c, o.yes);
  c.flag("--json", o.json, "print the result as one JSON object").group(of_all_verbs);
  add_server(c, o.server);
  c.example("bloomery redis gc redis://cache");
  c.example("bloomery redis gc --yes redis://cache");
  c.footer(
      "Some servers do not report when a shard was last used. For them, give --min-idle 0, but only while no filter is "
      "being replaced.\n"
      "The description of a filter may have been evicted while clients still write to its shards. Therefore, stop all "
      "writers before you give --without-description.\n");
  c.footer(addresses);
}

}  // namespace bloomery::cli
