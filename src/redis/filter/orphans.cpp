// Search for orphaned shards: their restoration or removal.
#include "redis/filter/orphans.hpp"

#include "redis/filter/description_check.hpp"
#include "redis/filter/impl.hpp"
#include "redis/filter/lifecycle.hpp"
#include "redis/filter/scripts.hpp"

#include <bloomery/error.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

namespace bloomery {

using redis::mode;
using redis::reply;

namespace {

constexpr std::size_t epoch_digits = 16;
constexpr std::size_t most_instances = 1024;  // maximum number of instances of one name that are examined

// Escapes a text so that a pattern matches only this text.
std::string literally(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '*' || c == '?' || c == '[' || c == ']' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

// A slot of each master, because SCAN has no key that selects a node.
std::vector<std::uint16_t> slots_of_masters(redis::router& servers) {
  if (!servers.address().cluster) return {0};
  std::map<std::string, std::uint16_t> slots;
  for (std::size_t slot = 0; slot < redis::num_slots; ++slot) {
    slots.try_emplace(servers.node_of(slot), static_cast<std::uint16_t>(slot));
  }
  std::vector<std::uint16_t> result;
  for (const auto& [node, slot] : slots) {
    if (!node.empty()) result.push_back(slot);
  }
  return result;
}

std::uint64_t epoch_of(std::string_view instance) {
  std::uint64_t epoch = 0;
  const char* const end = instance.data() + instance.size();
  std::from_chars(end - epoch_digits, end, epoch, 16);
  return epoch;
}

}  // namespace

bool redis::search_keys(router& servers, std::string_view rest, std::chrono::milliseconds time,
                        const std::function<void(const std::vector<std::string>&)>& take) {
  const std::string pattern = literally("{" + key_name(servers.address().name) + "~") + std::string(rest);
  struct node_search {
    std::uint16_t slot;
    std::string cursor = "0";
  };
  std::vector<node_search> searches;
  for (const std::uint16_t slot : slots_of_masters(servers)) searches.push_back({slot});
  const auto end = std::chrono::steady_clock::now() + time;
  while (!searches.empty()) {
    batch commands;
    for (const node_search& s : searches) {
      commands.begin(s.slot, mode::write);
      commands.command({"SCAN", s.cursor, "MATCH", pattern, "COUNT", "1000"});
    }
    std::vector<std::string> found;
    servers.run(commands, [&](std::size_t number, reply r) {
      throw_if_error(r, servers.address(), "search the server for shards");
      node_search& s = searches[number];
      s.cursor = r.size() == 2 ? r[0].text() : "0";
      for (std::size_t i = 0; r.size() == 2 && i < r[1].size(); ++i) found.emplace_back(r[1][i].text());
    });
    if (!found.empty()) take(found);
    std::erase_if(searches, [](const node_search& s) { return s.cursor == "0"; });
    if (!searches.empty() && std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

std::optional<std::string> redis::instance_in(std::string_view key, std::string_view name) {
  const std::string begin = "{" + key_name(name) + "~";
  if (!key.starts_with(begin)) return std::nullopt;
  const std::string_view rest = key.substr(begin.size());
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789abcdef"), rest.size());
  if (digits != epoch_digits || rest.substr(digits, 1) != ":") return std::nullopt;
  const std::string_view shard = rest.substr(digits + 1);
  const std::size_t shard_digits = std::min(shard.find_first_not_of("0123456789"), shard.size());
  if (shard_digits == 0 || shard.substr(shard_digits, 2) != "}:") return std::nullopt;
  return std::string(key.substr(1, begin.size() - 1 + digits));
}

// Only filters that were complete at some time have copies of their description in headers. A full server also evicts
// headers: shards without a copy may have keys that clients are inserting at this moment.
bool redis_filter::impl::restore_orphan() {
  std::set<std::string> instances;
  try {
    const bool all = redis::search_keys(router, "*", options.connection.time, [&](const auto& keys) {
      for (const std::string& key : keys) {
        const std::optional<std::string> instance = redis::instance_in(key, address.name);
        if (instance && instances.size() < most_instances) instances.insert(*instance);
      }
    });
    if (!all) {
      note(
          "the server has too many keys to search all of them for shards of a filter of this name whose description "
          "was lost");
    }
  } catch (const error& e) {
    if (e.code() != errc::not_permitted) throw;
    note("without permission for SCAN, shards of this name whose description was lost are not found");
  }
  if (instances.empty()) return false;
  // A client that creates the filter at the same time writes the description first.
  if (read_meta()) return true;

  redis::batch ask;
  std::vector<std::string> asked;  // instance of each group
  for (const std::string& instance : instances) {
    const std::string mark = redis::mark_key(instance);
    ask.begin(redis::slot_of(mark), mode::write);
    ask.command({"GET", mark});
    asked.push_back(instance);
    for (std::uint64_t s = 0; s < redis::shards_with_copy; ++s) {
      const std::string header = redis::header_key(instance, s);
      ask.begin(redis::slot_of(header), mode::write);
      ask.command({"HGETALL", header});
      asked.push_back(instance);
    }
  }
  std::map<std::string, std::string> copies;  // by instance
  std::set<std::string> dropped;
  router.run(ask, [&](std::size_t group, reply r) {
    redis::throw_if_error(r, address, "restore the description of the filter");
    if (r.is(redis::reply_type::text)) dropped.insert(asked[group]);
    const std::string_view copy = redis::field_of(r, "meta");
    if (!copy.empty()) copies.emplace(asked[group], copy);
  });
  std::erase_if(copies, [&](const auto& copy) { return dropped.contains(copy.first); });
  if (dropped.size() == instances.size()) return false;
  if (copies.empty()) {
    throw error(errc::damaged, {"the server has shards of a filter of this name, but its description is lost; a client "
                                "that uses the filter restores it within a minute",
                                where(), "", "", hint::remove_and_build_again});
  }
  if (copies.size() > 1) {
    throw error(errc::damaged, {"several filters of this name have shards without a description", where(), "one",
                                std::to_string(copies.size()), hint::remove_and_build_again});
  }
  const auto& [instance, copy] = *copies.begin();
  redis::meta lost = redis::meta::parse(copy, address);
  if (lost.instance != instance) {
    throw error(errc::damaged, {"the copy of a description names another filter", where(), instance, lost.instance,
                                hint::remove_and_build_again});
  }
  lost.ready = true;
  return write_if_missing(lost).first >= 0;
}

bool redis_filter::impl::remove_orphans() {
  std::map<std::string, bool> instances;  // true: to be removed
  redis::search_keys(router, "*", std::chrono::hours(24), [&](const std::vector<std::string>& keys) {
    std::vector<std::string> names;
    for (const std::string& key : keys) {
      const std::optional<std::string> instance = redis::instance_in(key, address.name);
      if (!instance) continue;
      const auto added = instances.try_emplace(*instance, false);
      bool& removed = added.first->second;
      if (added.second) {
        redis::meta orphan;
        orphan.instance = *instance;
        orphan.epoch = epoch_of(*instance);
        redis::start_on_all(commands, redis::scripts::condemn, address.name, orphan, 0);
        run([&](std::size_t, reply r) { removed = r.integer() == 1; }, "remove the filter");
      }
      if (removed) names.push_back(key);
    }
    commands.clear();
    for (const std::string& name : names) {
      commands.begin(redis::slot_of(name), mode::write);
      commands.command({"UNLINK", name});
    }
    if (!commands.empty()) run([](std::size_t, reply) {}, "remove the filter");
  });
  bool any = false;
  for (const auto& [instance, removed] : instances) {
    if (!removed) continue;
    any = true;
    redis::meta orphan;
    orphan.instance = instance;
    let_mark_expire(orphan);
  }
  return any;
}

}  // namespace bloomery
