// bloomery redis repair ADDRESS: refills the lost shards of a shared filter from its keys. The others stay in use.
//
//   $ bloomery redis repair redis://cache/users users.txt
//   bloomery: redis://cache:6379/users: repaired: shard 3 of 16, 1,000,000 lines, 62,411 of them inserted again
//
// Lookups in the lost shards fail, or report keys present, until all keys are inserted. If the input cannot be read to
// its end, the shards stay damaged, and the command can be repeated.
#include "cli/commands/redis.hpp"

#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/fpr_watch.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/key_changes.hpp"
#include "cli/commands/shared_filter.hpp"

#include <bloomery/error.hpp>
#include <bloomery/redis/handle.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bloomery::cli {
namespace {

constexpr std::size_t most_named = 16;

struct repair_options {
  std::string address;
  std::string secret;
  server_options server;
  input_options inputs;
  common_options common;
  bool allow_empty = false;
};

// "shard 3 of 16", "shards 3 and 5 of 16", "shards 1, 3 and 5 of 16", "40 of 64 shards"
std::string shards_text(const std::vector<std::uint64_t>& shards, std::uint64_t all) {
  if (shards.size() > most_named) return fmt::format("{} of {} shards", count_text(shards.size()), count_text(all));
  std::string text = shards.size() == 1 ? "shard " : "shards ";
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (i > 0) text += i + 1 == shards.size() ? " and " : ", ";
    text += count_text(shards[i]);
  }
  return text + " of " + count_text(all);
}

exit_status repair(const repair_options& options) {
  refuse_needless(options.server, {&options.address, 1});
  const redis_address address = redis_address::parse(options.address);
  { const reader readable(options.inputs); }  // report a missing file before anything else
  redis_filter filter = open_shared(address, options.server, options.secret, options.common.quiet);
  keys_done done;
  const std::vector<std::uint64_t> shards = filter.repair([&](redis_filter& lost) {
    const std::unique_ptr<filter_handle> filled = redis::make_handle(std::move(lost));
    done = change_keys(
        *filled, options.inputs, options.common, "repair",
        [&](key_batch& batch) { return filled->insert(batch.prepared); }, [] {});
    lost = std::move(*redis::shared_filter_of(*filled));
    const char* const what_stays = "the lost shards stay damaged; repair the filter again";
    if (done.failure) {
      error_text failed = done.failure->text();
      failed.hint = failed.hint.empty() ? what_stays : failed.hint.words() + "; " + what_stays;
      throw error(done.failure->code(), std::move(failed));
    }
    if (!done.finished) throw interrupted();
    if (done.keys == 0 && !options.allow_empty) {
      throw error(errc::invalid_argument,
                  {"the lost shards would become empty", address.text(), "input with keys", "no key",
                   std::string("give --allow-empty if the filter had no keys; ") + what_stays});
    }
    point_of_no_return();
  });

  const std::uint64_t all = filter.parameters().shards;
  const std::string kind = kind_of(filter.parameters());
  const std::unique_ptr<filter_handle> repaired = redis::make_handle(std::move(filter));
  const filter_summary now = summary_after(done, address.text(), *repaired);
  fpr_watch watch(address.text());
  watch.judge(*repaired, now);
  if (options.common.json) {
    nlohmann::ordered_json result = {{"filter", address.text()},
                                     {"done", "repair"},
                                     {"kind", kind},
                                     {"lost", shards},
                                     {"shards", all},
                                     {"keys", done.keys},
                                     {"new", done.changed},
                                     {"rate", now.fpr ? number_or_null(*now.fpr) : nlohmann::ordered_json(nullptr)}};
    add_verdict(result, watch.judgement());
    print_result(done, result);
  } else if (!options.common.quiet && !done.failure) {
    say(address.text() + ": " +
        (shards.empty() ? fmt::format("nothing to repair: {} are intact", counted(all, "shard"))
                        : fmt::format("repaired: {}; {}, {} of them inserted again", shards_text(shards, all),
                                      counted(done.keys, "line"), count_text(done.changed))));
  }
  if (done.failure) throw *done.failure;
  return watch.end();
}

}  // namespace

void add_redis_repair(command_line& line, command& redis) {
  command& c = redis.subcommand("repair", "refill the lost shards of a filter from its keys");
  auto& o = line.options_of(c, repair);
  c.positional("ADDRESS", o.address, "address of the filter").required().not_empty();
  c.flag("--allow-empty", o.allow_empty, "repair the filter even if the input has no keys");
  add_secret(c, o.secret);
  add_inputs(line, c, o.inputs);
  add_common(c, o.common, "print only errors and warnings");
  add_waiting(c, o.server);
  add_server(c, o.server);
  c.example("bloomery redis repair redis://cache/users users.txt");
  c.footer(
      "The input must contain all keys of the filter. Keys that belong to intact shards are skipped. If no shard is "
      "lost, the input is not read. A counting filter cannot be repaired; use 'bloomery redis replace' instead.\n");
  c.footer(addresses);
}

}  // namespace bloomery::cli
