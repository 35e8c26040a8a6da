// bloomery redis replace ADDRESS: rebuilds a shared filter from its keys while other clients use it.
//
//   $ bloomery redis replace redis://cache/users users.txt
//   bloomery: redis://cache:6379/users: replaced: 1,000 lines, 1,000 added; capacity ...
//
// Until the new filter is complete, lookups use the old filter, and inserts of other clients go to both. If the input
// cannot be read to its end, the old filter stays.
#include "cli/commands/redis.hpp"

#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/fpr_watch.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/key_changes.hpp"
#include "cli/commands/redis_nodes.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/temporary_file.hpp"

#include <bloomery/error.hpp>
#include <bloomery/redis/handle.hpp>

#include "redis/filter/meta.hpp"
#include "redis/net/batch.hpp"
#include "redis/net/error_class.hpp"
#include "redis/net/router.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace bloomery::cli {
namespace {

struct replace_options {
  std::string address;
  making_options wanted;
  sharing_options sharing;
  server_options server;
  input_options inputs;
  common_options common;
  bool allow_empty = false;
};

// The parameters of the old filter, with the changes of the options.
redis_params changed(const redis_params& old, const replace_options& options) {
  redis_params p = old;
  const making_options& wanted = options.wanted;
  const sharing_options& sharing = options.sharing;
  p.filter.geometry = {};  // derived from the others
  if (wanted.capacity) p.filter.capacity = *wanted.capacity;
  if (wanted.rate) p.filter.target_fpr = *wanted.rate;
  if (!wanted.layout.empty()) p.filter.layout = wanted.layout;
  if (wanted.window.length) p.filter.extra = *wanted.window.length;
  if (wanted.growing) p.growth = redis_growth::unlimited;
  if (sharing.most_keys) p.growth = redis_growth::to_maximum;
  if (wanted.growing || sharing.most_keys) p.maximum = sharing.most_keys.value_or(0);
  const bool same_size = p.filter.capacity == old.filter.capacity && p.growth == old.growth && p.maximum == old.maximum;
  p.shards = sharing.shards.value_or(same_size ? old.shards : 0);
  return p;
}

// The expiry of the new filter: --ttl, or that of the old filter.
std::optional<std::chrono::milliseconds> expiry_of(const redis_address& old, const replace_options& options) {
  using std::chrono::milliseconds;
  if (options.sharing.milliseconds) return milliseconds(*options.sharing.milliseconds);
  redis::router servers(old, connection_of(options.server));
  std::int64_t left = -1;
  for (const std::string& key : {redis::meta_key(old.name), redis::second_key(old.name)}) {  // one may be evicted
    run_one(servers, key, {"PTTL", key}, [&](redis::reply r) {
      redis::throw_if_error(r, old, "read the expiry of the filter");
      left = std::max(left, r.integer());
    });
  }
  if (left < 0) return std::nullopt;
  return milliseconds(std::max<std::int64_t>(left, 1));
}

exit_status replace(const replace_options& options) {
  refuse_needless(options.server, {&options.address, 1});
  const redis_address address = redis_address::parse(options.address);
  check_shared_promise(options.wanted, options.sharing);
  { const reader readable(options.inputs); }  // report a missing file before anything else
  redis_filter filter = open_shared(address, options.server, options.wanted.secret, options.common.quiet);
  redis_params wanted = changed(filter.parameters(), options);
  wanted.expires_in = expiry_of(address, options);
  input_options inputs = options.inputs;
  std::optional<temporary_file> text;
  if (!options.wanted.capacity && wanted.growth == redis_growth::none && !wanted.filter.has_window()) {
    if (!can_reread(inputs)) inputs.files = {text.emplace(spool_text(inputs)).path()};
    const std::uint64_t lines = count_lines(inputs);
    if (lines > wanted.filter.capacity) {
      wanted.filter.capacity = lines;
      wanted.shards = options.sharing.shards.value_or(0);
    }
  }

  keys_done done;
  filter.replace(wanted, [&](redis_filter& fresh) {
    const std::unique_ptr<filter_handle> filled = redis::make_handle(std::move(fresh));
    done = change_keys(
        *filled, inputs, options.common, "replace", [&](key_batch& batch) { return filled->insert(batch.prepared); },
        [] {});
    fresh = std::move(*redis::shared_filter_of(*filled));
    if (done.failure) {
      error_text failed = done.failure->text();
      failed.hint = "the old filter stays; " + failed.hint.words();
      throw error(done.failure->code(), std::move(failed));
    }
    if (!done.finished) throw interrupted();
    if (done.keys == 0 && !options.allow_empty) {
      throw error(errc::invalid_argument,
                  {"an empty filter would replace the filter", address.text(), "input with keys", "no key",
                   "give --allow-empty to replace it anyway; the old filter stays"});
    }
    point_of_no_return();
  });

  const redis_params p = filter.parameters();
  const std::unique_ptr<filter_handle> replaced = redis::make_handle(std::move(filter));
  const filter_summary now = summary_after(done, address.text(), *replaced);
  fpr_watch watch(address.text());
  watch.judge(*replaced, now);
  if (options.common.json) {
    nlohmann::ordered_json result = {{"filter", address.text()},
                                     {"done", "replace"},
                                     {"kind", kind_of(p)},
                                     {"keys", done.keys},
                                     {"new", done.changed},
                                     {"capacity", p.filter.capacity},
                                     {"bytes", bytes_for(p.filter.geometry.bits)},
                                     {"target_rate", p.filter.target_fpr},
                                     {"rate", now.fpr ? number_or_null(*now.fpr) : nlohmann::ordered_json(nullptr)},
                                     {"layout", p.filter.layout},
                                     {"shards", p.shards}};
    add_verdict(result, watch.judgement());
    print_result(done, result);
  } else if (!options.common.quiet && !done.failure) {
    say(fmt::format("{}: replaced: {}, {} added; {}", address.text(), counted(done.keys, "line"),
                    new_keys_text(done, now), shared_size_text(p)));
  }
  if (done.failure) throw *done.failure;
  return watch.end();
}

}  // namespace

void add_redis_replace(command_line& line, command& redis) {
  command& c = redis.subcommand("replace", "rebuild a filter from its keys while other clients use it");
  auto& o = line.options_of(c, replace);
  c.positional("ADDRESS", o.address, "address of the filter").required().not_empty();
  add_size(c, o.wanted, false);
  c.option("--layout", o.wanted.layout, "NAME", "split_block512 or blocked; default: the old filter's")
      .suggest("split_block512, blocked")
      .group(of_size);
  c.flag("--grow", o.wanted.growing, "let the new filter grow without limit").group(of_size);
  parsed(
      c, "--window", o.wanted.window.length,
      [](const std::string& text, const std::string& option) {
        return window_of_milliseconds(parse_duration(text, option));
      },
      "DURATION", "let the new filter remember each key for this long: 24h, 7d")
      .group(of_windows);
  c.flag("--allow-empty", o.allow_empty, "replace the filter even if the input has no keys");
  add_secret(c, o.wanted.secret);
  add_inputs(line, c, o.inputs);
  add_common(c, o.common, "print only errors and warnings");
  add_sharing(c, o.sharing);
  add_waiting(c, o.server);
  add_server(c, o.server);
  c.example("bloomery redis replace redis://cache/users users.txt");
  c.footer(
      "Parameters that are not given stay the same, except that the capacity is raised to the number of input lines if "
      "necessary. The hash, the kind of keys, the seed and the secret key cannot be changed. Keys that other clients "
      "insert in the meantime are added to both the old and the new filter.\n");
  c.footer(addresses);
}

}  // namespace bloomery::cli
