// bloomery remove FILTER: removes keys from a filter with removal, in a file or on Redis.
//
//   $ printf 'bob\n' | bloomery remove users.bloom
//   bloomery: users.bloom: 1 key removed, 2 left with copies, current FPR 0.0002%
//
// A file changes as a whole, after all keys are read. After an earlier kill or interruption it is unchanged, and the
// command can be repeated. Exit status: 0 all keys were removed, 1 some were not present, 2 an error.
#include "app/numbers.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/key_changes.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/removal.hpp"
#include "cli/commands/shared_filter.hpp"

#include "app/signals.hpp"

#include <fmt/format.h>

namespace bloomery::cli {
namespace {

struct remove_options {
  std::string filter;
  std::string secret;
  server_options server;
  input_options inputs;
  common_options common;
};

// "the key was", "2 of 10 keys were".
std::string those_not_there(std::uint64_t keys, std::uint64_t not_found) {
  if (keys == 1) return "the key was";
  return fmt::format("{} of {} {}", count_text(not_found), counted(keys, "key"), not_found == 1 ? "was" : "were");
}

// The effect of removing absent keys. Without a count of refusals, no number is known.
std::string consequence(const filter_summary& now, double unnoticed) {
  if (!now.refused_removals)
    return "removals of other absent keys may have gone unnoticed and may have removed present keys";
  return "the filter is now " + taint_text(*now.refused_removals, unnoticed) + "; build it again if no key may be lost";
}

exit_status remove_keys(const remove_options& options) {
  check_not_an_input(options.filter, "remove", options.inputs);
  const std::unique_ptr<filter_handle> filter = open_handle(
      {options.filter, options.secret, {}, {}, options.server, options.common.quiet}, access::read_write, true);
  const std::string name = shown_name(options.filter);
  keys_done done = change_keys(
      *filter, options.inputs, options.common, "remove",
      [&](key_batch& batch) { return filter->remove(batch.prepared); }, [] {});
  filter_summary now = summary_after(done, name, *filter);
  // The FPR of the present counters or slots: the expected FPR does not include the effect of wrong removals.
  if (now.refused_removals) now.fpr = filter->info(info_depth::bits).fill->current_fpr;
  const std::uint64_t not_found = done.keys - done.changed;
  nlohmann::ordered_json result = json_of(done, name, "removed", *filter, now);
  result["not_found"] = not_found;
  double unnoticed = 0;
  if (now.refused_removals) {
    unnoticed = unnoticed_by_now(filter->parameters(), *now.refused_removals, now.fpr.value_or(1));
    result["tainted"] = *now.refused_removals > 0;
    result["refused_removals"] = *now.refused_removals;
    result["unnoticed_removals"] = number_or_null(unnoticed);
  }
  const std::string state = state_text(*filter, now, "left");
  if (filter->capabilities().commits_whole) point_of_no_return();
  if (done.keys > 0) commit(done, *filter);  // throws if the disk is full: only stored changes are reported
  if (not_found > 0) {
    say(fmt::format("{}: warning: {} not present; remove only keys that were added: {}", name,
                    those_not_there(done.keys, not_found), consequence(now, unnoticed)));
  }
  if (options.common.json) {
    print_result(done, result);
  } else if (!options.common.quiet && !done.failure) {
    say(fmt::format("{}: {}{} removed{}", name, done.finished ? "" : "interrupted: ", counted(done.changed, "key"),
                    state));
  }
  if (done.failure) throw *done.failure;
  return not_found == 0 ? exit_status::found : exit_status::nothing;
}

}  // namespace

void add_remove(command_line& line) {
  command& c = line.root.subcommand("remove", "remove keys from a counting or quotient filter");
  auto& o = line.options_of(c, remove_keys);
  c.positional("FILTER", o.filter, "file or address of a filter built with --counting or --quotient").required().file();
  add_inputs(line, c, o.inputs);
  add_common(c, o.common, "print only errors and warnings");
  add_secret(c, o.secret);
  add_no_lock(c);
  add_server(c, o.server);
  c.example("bloomery remove users.bloom gone.txt");
  c.footer(
      "Remove only keys that were added. Removing a key that was never added may also remove other keys.\n"
      "Exit status: 0 if all keys were removed, 1 if some were not present, 2 on error.");
}

}  // namespace bloomery::cli
