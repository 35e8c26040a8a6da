// bloomery redis drop, clear, reset, expire, persist and rotate: operations on one shared filter or Guava chain.
//
//   $ bloomery redis expire redis://cache/users 7d
//   bloomery: redis://cache:6379/users: expires in 7 d
//   $ bloomery redis drop --yes redis://cache/users
//   bloomery: redis://cache:6379/users: dropped: 1,000 keys (fixed, split_block512)
//
// Commands that remove keys show how many and ask for confirmation. Other clients may use the filter at the same time.
#include "cli/commands/redis.hpp"

#include "app/numbers.hpp"
#include "cli/commands/confirmation.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/shared_filter.hpp"

#include <bloomery/error.hpp>
#include <bloomery/redis/chain.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace bloomery::cli {
namespace {

struct operate_options {
  std::string address;
  std::uint64_t milliseconds = 0;  // of expire
  std::string secret;
  chain_options chain;
  server_options server;
  bool yes = false;
  bool quiet = false;
  bool json = false;
};

// A shared filter or a Guava chain, with its number of keys if known.
class operand {
 public:
  explicit operand(const operate_options& options)
      : options_(options), address_(redis_address::parse(options.address)), opened_(open()) {}

  redis_filter* filter() { return std::get_if<redis_filter>(&opened_); }
  redis_chain* chain() { return std::get_if<redis_chain>(&opened_); }
  std::string name() const { return address_.text(); }

  redis_filter& filter_for(const char* verb, const char* hint) {
    if (redis_filter* const f = filter()) return *f;
    throw error(errc::incompatible, {std::string("cannot ") + verb + " a Guava chain", name(), "", "", hint});
  }

  std::string kind() { return chain() != nullptr ? chain_scheme : kind_of(filter()->parameters()); }

  // Called before the operation. A damaged filter cannot count its keys, but may still be removed.
  void count_keys() {
    try {
      if (redis_chain* const c = chain()) {
        keys_ = static_cast<std::uint64_t>(c->info().keys + 0.5);
      } else if (const auto now = info_at_once(*filter())) {
        keys_ = now->inserted;
      }
    } catch (const error& e) {
      if (e.code() == errc::unavailable) throw;
    }
  }

  // "about 1,000 keys (fixed, split_block512)"
  std::string content() {
    const std::string layout = filter() == nullptr ? "" : ", " + filter()->parameters().filter.layout;
    return fmt::format("{} ({}{})", keys_ ? "about " + counted(*keys_, "key") : "an unknown number of keys", kind(),
                       layout);
  }

  void report(const char* done, const std::string& said, std::optional<std::int64_t> expires_at = {}) {
    if (options_.json) {
      nlohmann::ordered_json result = {{"filter", name()}, {"done", done}, {"kind", kind()}};
      if (keys_) result["keys"] = *keys_;
      if (expires_at) result["expires_at"] = *expires_at;
      print_result(result);
    } else if (!options_.quiet) {
      say(name() + ": " + said);
    }
  }

 private:
  std::variant<redis_filter, redis_chain> open() const {
    refuse_needless(options_.server, {&options_.address, 1});
    std::optional<redis_chain_params> known;
    if (options_.chain.capacity && options_.chain.rate)
      known = redis_chain_params{*options_.chain.capacity, *options_.chain.rate};
    const auto open_chain = [&] { return redis_chain::open(address_, known, connection_of(options_.server)); };
    if (!options_.chain.scheme.empty()) {
      if (options_.chain.scheme != chain_scheme) {
        throw error(errc::invalid_argument, {"unknown scheme on Redis", "--scheme", chain_scheme,
                                             "'" + options_.chain.scheme + "'", "leave out --scheme"});
      }
      return open_chain();
    }
    try {
      return redis_filter::open(address_, options_for(address_, options_.server, options_.secret, options_.quiet));
    } catch (const error& e) {
      if (e.code() != errc::not_found || !finds_chain(address_, options_.server)) throw;
    }
    return open_chain();
  }

  const operate_options& options_;
  redis_address address_;
  std::variant<redis_filter, redis_chain> opened_;
  std::optional<std::uint64_t> keys_;
};

// Removes a filter that cannot be opened: damaged, or without a description.
exit_status drop_unopened(const operate_options& options, const error& problem) {
  const redis_address address = redis_address::parse(options.address);
  if (!confirmed(fmt::format("{}: {}; drop removes all remaining parts", address.text(), problem.text().what),
                 options.yes)) {
    return exit_status::nothing;
  }
  if (!redis_filter::drop(address, options_for(address, options.server, "", options.quiet))) throw problem;
  if (options.json) {
    print_result({{"filter", address.text()}, {"done", "drop"}});
  } else if (!options.quiet) {
    say(address.text() + ": dropped");
  }
  return exit_status::found;
}

exit_status drop(const operate_options& options) try {
  operand what(options);
  what.count_keys();
  if (!confirmed(fmt::format("{}: drop removes {}", what.name(), what.content()), options.yes))
    return exit_status::nothing;
  if (redis_chain* const c = what.chain())
    c->drop();
  else
    what.filter()->drop();
  what.report("drop", "dropped: " + what.content());
  return exit_status::found;
} catch (const error& e) {
  const bool may_be_left = e.code() == errc::damaged || e.code() == errc::not_found;
  if (!may_be_left || !options.chain.scheme.empty()) throw;
  return drop_unopened(options, e);
}

exit_status clear(const operate_options& options) {
  operand what(options);
  redis_filter& filter = what.filter_for("clear", "use 'bloomery redis reset' for a Guava chain");
  what.count_keys();
  if (!confirmed(fmt::format("{}: clear removes {}; the empty filter stays", what.name(), what.content()), options.yes))
    return exit_status::nothing;
  filter.clear();
  what.report("clear", "cleared: " + what.content());
  return exit_status::found;
}

exit_status reset(const operate_options& options) {
  operand what(options);
  redis_chain* const chain = what.chain();
  if (chain == nullptr) {
    throw error(errc::incompatible, {"only a Guava chain can be reset", what.name(), "a Guava chain", what.kind(),
                                     "use 'bloomery redis clear' for a shared filter"});
  }
  what.count_keys();
  if (!confirmed(fmt::format("{}: reset removes {}; an empty first bitmap stays", what.name(), what.content()),
                 options.yes))
    return exit_status::nothing;
  chain->reset();
  what.report("reset", "reset: " + what.content());
  return exit_status::found;
}

exit_status expire(const operate_options& options) {
  operand what(options);
  const std::chrono::milliseconds time(options.milliseconds);
  if (redis_chain* const c = what.chain())
    c->expire(time);
  else
    what.filter()->expire(time);
  what.report("expire", "expires in " + duration_text(options.milliseconds), milliseconds_now() + time.count());
  return exit_status::found;
}

exit_status persist(const operate_options& options) {
  operand what(options);
  if (redis_chain* const c = what.chain())
    c->persist();
  else
    what.filter()->persist();
  what.report("persist", "does not expire");
  return exit_status::found;
}

exit_status rotate(const operate_options& options) {
  operand what(options);
  what.filter_for("rotate", "only a sliding-window filter has generations").rotate();
  what.report("rotate", "created the current generation in all shards");
  return exit_status::found;
}

using action = exit_status (*)(const operate_options&);

enum class destroys : bool { no, yes };

void add_operation(command_line& line, command& redis, const char* verb, action act, const std::string& help,
                   destroys what, bool of_chains, bool of_filters = true) {
  command& c = redis.subcommand(verb, help);
  auto& o = line.options_of(c, act);
  c.positional("ADDRESS", o.address, "address of the filter").required().not_empty();
  const bool takes_time = act == expire;
  if (takes_time) {
    c.positional(
         "DURATION", [&o](const std::string& text) { o.milliseconds = parse_duration(text, "DURATION"); },
         "time from now: 90min, 7d")
        .required();
  }
  if (what == destroys::yes) add_yes(c, o.yes);
  if (of_filters) add_secret(c, o.secret);
  c.flag("-q,--quiet", o.quiet, "print only errors and warnings").group(of_all_verbs);
  c.flag("--json", o.json, "print the result as one JSON object").group(of_all_verbs);
  if (of_chains) add_chain(c, o.chain);
  if (act == clear) add_waiting(c, o.server);
  add_server(c, o.server);
  c.example(std::string("bloomery redis ") + verb + (what == destroys::yes ? " --yes" : "") + " redis://cache/users" +
            (takes_time ? " 7d" : ""));
  c.footer(addresses);
}

}  // namespace

void add_redis_operations(command_line& line, command& redis) {
  add_operation(line, redis, "drop", drop, "delete a filter or a Guava chain", destroys::yes, true);
  add_operation(line, redis, "clear", clear, "remove all keys from a filter, but keep the filter", destroys::yes,
                false);
  add_operation(line, redis, "reset", reset, "remove all keys from a Guava chain, and all its bitmaps but the first",
                destroys::yes, true, false);
  add_operation(line, redis, "expire", expire, "set the expiry of a filter or a Guava chain", destroys::no, true);
  add_operation(line, redis, "persist", persist, "remove the expiry of a filter or a Guava chain", destroys::no, true);
  add_operation(line, redis, "rotate", rotate,
                "begin the generation that is due in all shards of a sliding-window filter", destroys::no, false);
}

}  // namespace bloomery::cli
