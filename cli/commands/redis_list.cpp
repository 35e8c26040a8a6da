// bloomery redis list SERVER: the filters on a server or cluster.
//
//   $ bloomery redis list redis://cache
//   NAME   KIND   KEYS   CAPACITY  FPR TARGET  MEMORY  EXPIRES  STATE
//   users  fixed  1,000  10,000    1%          13 KiB  never    ready
//
// Key names are read with SCAN, a thousand at a time, so other clients are not blocked.
#include "cli/commands/redis.hpp"

#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/redis_nodes.hpp"
#include "cli/commands/redis_survey.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/io/output.hpp"
#include "cli/text/error_text.hpp"

#include <bloomery/error.hpp>
#include <bloomery/redis/chain.hpp>

#include "redis/chain/chain_keys.hpp"
#include "redis/filter/meta.hpp"
#include "redis/net/batch.hpp"
#include "redis/net/error_class.hpp"
#include "redis/net/router.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bloomery::cli {
namespace {

struct list_options {
  std::string server_address;
  server_options server;
  bool json = false;
};

struct listed {
  std::string name;
  std::string address;
  std::string kind;   // empty: unknown
  std::string state;  // "ready", "in the making", "being replaced", or the problem
  std::optional<std::uint64_t> keys = {};
  std::optional<std::uint64_t> capacity = {};
  std::optional<double> target_fpr = {};
  std::optional<double> fpr = {};
  std::optional<std::uint64_t> memory = {};
  std::optional<std::uint64_t> shards = {};
  std::optional<std::int64_t> expires_at = {};
};

class listing {
 public:
  explicit listing(const list_options& options)
      : options_(options),
        address_(redis_address::parse_server(options.server_address)),
        servers_(address_, connection_of(options.server)) {}

  std::vector<listed> filters() {
    find_names();
    std::vector<listed> all = shared_filters();
    for (const std::string& name : chains_) {
      if (std::optional<listed> chain = chain_of(name)) all.push_back(*std::move(chain));
    }
    std::sort(all.begin(), all.end(), [](const listed& a, const listed& b) { return a.name < b.name; });
    return all;
  }

  std::string server() const { return address_.text(); }

 private:
  redis_address address_of(const std::string& name) const {
    redis_address address = address_;
    address.name = name;
    return address;
  }

  bool is_wanted(const std::string& name) const { return address_.name.empty() || name == address_.name; }

  void find_names() {
    const auto add = [&](std::set<std::string>& to, const std::optional<std::string>& name) {
      if (name && !name->empty() && is_wanted(*name)) to.insert(*name);
    };
    // Descriptions end in m or 2, facts of chains in y, cursors in r.
    scan_keys(address_, servers_.options(), "*[m2yr]", [&](std::string_view key) {
      const auto without = [&](std::string_view ending) {
        return std::string(key.substr(0, key.size() - ending.size()));
      };
      for (const std::string_view ending : {"}:m", "}:m2"}) {
        if (key.starts_with('{') && key.ends_with(ending))
          add(filters_, decoded_key_name(std::string_view(without(ending)).substr(1)));
      }
      for (const std::string_view ending : {"-bloomery", "-cursor"}) {
        if (key.ends_with(ending)) add(chains_, without(ending));
      }
      if (key == redis::cursor_key("bloomfilter")) add(chains_, "bloomfilter");
    });
  }

  std::vector<listed> shared_filters() {
    const std::vector<std::string> names(filters_.begin(), filters_.end());
    const std::vector<described_name> described = descriptions_of(servers_, names);
    std::vector<listed> all;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const described_name& d = described[i];
      if (!d.now && (d.is_other || d.problem.empty())) continue;  // not a filter, or removed in the meantime
      listed one{names[i], address_of(names[i]).text(), "", d.problem};
      if (d.now) describe(*d.now, d.coming != nullptr, one);
      all.push_back(std::move(one));
    }
    return all;
  }

  void describe(const redis::meta& m, bool being_replaced, listed& one) {
    const redis_params& p = m.parameters;
    one.kind = kind_of(p);
    one.state = !m.ready ? "in the making" : being_replaced ? "being replaced" : "ready";
    one.capacity = p.growth == redis_growth::to_maximum ? p.maximum : p.filter.capacity;
    one.target_fpr = p.filter.target_fpr;
    one.shards = p.shards;
    if (m.expires_at != 0) one.expires_at = m.expires_at;
    try {
      one.memory = memory_of(servers_, m);
      if (!m.ready || p.filter.key_check != 0) return;  // opening would complete it, or needs its secret
      redis_filter filter =
          redis_filter::open(address_of(one.name), options_for(address_of(one.name), options_.server, "", true));
      if (const std::optional<redis_info> now = info_at_once(filter)) {
        one.keys = now->inserted;
        one.fpr = now->rate_now;
      }
    } catch (const error& e) {
      if (e.code() == errc::unavailable) throw;
      one.state = sentence_of(e);
    }
  }

  // Empty if there is no chain with this name.
  std::optional<listed> chain_of(const std::string& name) {
    const redis_address address = address_of(name);
    if (!finds_chain(address, options_.server)) return std::nullopt;
    listed one{name, address.text(), chain_scheme, "ready"};
    std::uint64_t bitmaps = 1;
    const std::string cursor = redis::cursor_key(name);
    run_one(servers_, cursor, {"GET", cursor}, [&](redis::reply r) {
      constexpr std::uint64_t most_bitmaps = 10'000;
      std::uint64_t number = 0;
      std::from_chars(r.text().data(), r.text().data() + r.text().size(), number);
      if (!r.is_error()) bitmaps += std::min(number, most_bitmaps);
    });
    std::vector<std::string> keys;
    for (std::uint64_t i = 0; i < bitmaps; ++i) keys.push_back(redis::bitmap_key(name, i));
    one.memory = memory_of_keys(servers_, keys);
    one.shards = bitmaps;
    run_one(servers_, keys.front(), {"PTTL", keys.front()}, [&](redis::reply r) {
      if (!r.is_error() && r.integer() >= 0) one.expires_at = milliseconds_now() + r.integer();
    });
    try {
      redis_chain chain = redis_chain::open(address, {}, connection_of(options_.server));
      const redis_chain_info now = chain.info();
      one.capacity = now.parameters.capacity;
      one.target_fpr = now.parameters.target_fpr;
      one.keys = static_cast<std::uint64_t>(std::llround(now.keys));
      one.fpr = now.rate_now;
    } catch (const redis_chain_params_unknown&) {
      // The Java implementation stores neither capacity nor target FPR.
    } catch (const error& e) {
      if (e.code() == errc::unavailable) throw;
      one.state = sentence_of(e);
    }
    return one;
  }

  const list_options& options_;
  redis_address address_;
  redis::router servers_;
  std::set<std::string> filters_;
  std::set<std::string> chains_;
};

template <class Value>
nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json json_of(const listed& f) {
  return {{"name", f.name},
          {"filter", f.address},
          {"kind", f.kind.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(f.kind)},
          {"state", f.state},
          {"keys", or_null(f.keys)},
          {"capacity", or_null(f.capacity)},
          {"target_rate", or_null(f.target_fpr)},
          {"rate", or_null(f.fpr)},
          {"memory", or_null(f.memory)},
          {"shards", or_null(f.shards)},
          {"expires_at", or_null(f.expires_at)}};
}

// "in 3 h", rounded to a whole number of the largest unit of which there are at least two.
std::string time_left_text(std::int64_t left) {
  constexpr std::int64_t second = 1'000;
  constexpr std::int64_t minute = 60 * second;
  constexpr std::int64_t hour = 60 * minute;
  constexpr std::int64_t day = 24 * hour;
  const std::int64_t unit = left >= 2 * day ? day : left >= 2 * hour ? hour : left >= 2 * minute ? minute : second;
  const std::int64_t units = (std::max<std::int64_t>(left, 0) + unit / 2) / unit;
  return fmt::format("in {} {}", units, unit == day ? "d" : unit == hour ? "h" : unit == minute ? "min" : "s");
}

std::string table_of(const std::vector<listed>& filters) {
  using row = std::array<std::string, 8>;
  std::vector<row> rows = {{"NAME", "KIND", "KEYS", "CAPACITY", "TARGET FPR", "MEMORY", "EXPIRES", "STATE"}};
  const std::int64_t now = milliseconds_now();
  for (const listed& f : filters) {
    rows.push_back({printable(f.name), f.kind.empty() ? "?" : f.kind, f.keys ? count_text(*f.keys) : "?",
                    f.capacity ? count_text(*f.capacity) : "?", f.target_fpr ? rate_text(*f.target_fpr) : "?",
                    f.memory ? bytes_text(*f.memory) : "?",
                    f.expires_at ? time_left_text(*f.expires_at - now) : "never", printable(f.state)});
  }
  row::value_type text;
  std::array<std::size_t, std::tuple_size_v<row>> widths{};
  for (const row& r : rows) {
    for (std::size_t i = 0; i < r.size(); ++i) widths[i] = std::max(widths[i], r[i].size());
  }
  for (const row& r : rows) {
    for (std::size_t i = 0; i + 1 < r.size(); ++i) text += fmt::format("{:<{}}  ", r[i], widths[i]);
    text += r.back() + "\n";
  }
  return text;
}

exit_status list(const list_options& options) {
  refuse_needless(options.server, {&options.server_address, 1});
  end_at_once_when_stopped();
  listing servers(options);
  const std::vector<listed> filters = servers.filters();
  if (options.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const listed& f : filters) all.push_back(json_of(f));
    print_result({{"server", servers.server()}, {"filters", all}});
    return exit_status::found;
  }
  output out(STDOUT_FILENO, "standard output");
  if (filters.empty())
    say(servers.server() + ": no filters");
  else
    out.write(table_of(filters));
  out.flush();
  return exit_status::found;
}

}  // namespace

void add_redis_list(command_line& line, command& redis) {
  command& c = redis.subcommand("list", "list the filters on a server or cluster");
  auto& o = line.options_of(c, list);
  c.positional("SERVER", o.server_address, server_help).required().not_empty();
  c.flag("--json", o.json, "print the result as one JSON object").group(of_all_verbs);
  add_server(c, o.server);
  c.example("bloomery redis list redis://cache");
  c.footer("For filters of up to 64 MiB, the server counts the bits, and the number of keys is estimated from them.\n");
  c.footer(addresses);
}

}  // namespace bloomery::cli
