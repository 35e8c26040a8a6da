// bloomery add FILTER: inserts keys into a filter of any kind, in a file or on Redis.
//
//   $ printf 'bob\n' | bloomery add users.bloom
//   bloomery: users.bloom: 1 key read, 1 added, 3 in total, current FPR 0.0002%
//
// A file is locked, and a second writer waits. After a kill the filter still has every key that was added before. A
// filter with removal commits as a whole: after a kill it is unchanged.
#include "app/numbers.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/fpr_watch.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/key_changes.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/record_clock.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/commands/window.hpp"

#include "app/signals.hpp"

#include <fmt/format.h>

namespace bloomery::cli {
namespace {

struct add_options {
  std::string filter;
  std::string secret;
  std::optional<std::uint64_t> now;  ///< as in window_options
  chain_options chain;
  server_options server;
  input_options inputs;
  common_options common;
};

exit_status add(const add_options& options) {
  check_not_an_input(options.filter, "add", options.inputs);
  check_times(options.inputs, options.filter, options.now);
  const std::unique_ptr<filter_handle> filter =
      open_handle({options.filter, options.secret, options.now, options.chain, options.server, options.common.quiet},
                  access::read_write);
  const std::string name = shown_name(options.filter);
  warn_of_clock(name, *filter, options.now);
  timed_insertion into(*filter, options.inputs);
  fpr_watch watch(name);
  keys_done done = change_keys(
      *filter, options.inputs, options.common, "add", [&](key_batch& batch) { return into.insert(batch); },
      [&] { watch.after_batch(*filter); });
  const filter_summary now = summary_after(done, name, *filter);
  if (filter->capabilities().commits_whole) point_of_no_return();
  watch.judge(*filter, now);
  nlohmann::ordered_json result = json_of(done, name, "new", *filter, now);
  add_verdict(result, watch.judgement());
  const std::string state = state_text(*filter, now, "in total");
  commit(done, *filter);  // throws if the disk is full: only stored keys are reported
  if (options.common.json) {
    print_result(done, result);
  } else if (!options.common.quiet && !done.failure) {
    say(fmt::format("{}: {}{} read, {} added{}", name, done.finished ? "" : "interrupted: ", counted(done.keys, "key"),
                    new_keys_text(done, now), state));
  }
  if (done.failure) throw *done.failure;
  return watch.end();
}

}  // namespace

void add_add(command_line& line) {
  command& c = line.root.subcommand("add", "add keys to a filter");
  auto& o = line.options_of(c, add);
  c.positional("FILTER", o.filter, "file or address of the filter").required().file();
  add_inputs(line, c, o.inputs);
  add_common(c, o.common, "print only errors and warnings");
  add_secret(c, o.secret);
  add_no_lock(c);
  add_now(c, o.now);
  add_times(c, o.inputs);
  add_waiting(c, o.server);
  add_chain(c, o.chain);
  add_server(c, o.server);
  c.example("bloomery add users.bloom new-users.txt");
  c.example("zcat log.gz | bloomery add -d ' ' -f 1 addresses.bloom");
  c.example("bloomery add redis://cache/users new-users.txt");
  c.footer(
      "Exit status: 0 if all keys were added, 2 on error, 3 if all keys were added but the filter exceeds its target "
      "FPR because it has too many keys for its capacity.");
}

}  // namespace bloomery::cli
