// bloomery rebuild FILTER: rebuilds a filter from its key log with another size, rate or layout.
//
//   $ bloomery rebuild users.bloom -p 0.1%
//   bloomery: users.bloom: 1,000,000 keys, current FPR 0.02%; capacity 1,240,000 keys at 0.1%: 2.43 MiB (...); ...
//
// The old filter stays until the new one is complete. FILTER itself may be missing or damaged, because the log
// suffices.
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/logged.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/io/output.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

namespace bloomery::cli {
namespace {

struct rebuild_options {
  std::string filter;  ///< a filter with a key log
  std::string secret;
  std::optional<double> rate;             ///< -p; default: that of the filter
  std::optional<std::uint64_t> capacity;  ///< -n; default: a quarter more than its keys
  std::string layout;                     ///< default: that of the filter
  bool salvage = false;                   ///< continue without the keys in the damaged part of the log
  common_options common;
};

exit_status rebuild(const rebuild_options& options) {
  refuse_shared(options.filter, "rebuild", true);
  check_locks(options.filter);
  const bool quiet = options.common.quiet;
  rebuilding_filter filter = rebuilding_filter::recover(options.filter,
                                                        {.rate = options.rate,
                                                         .capacity = options.capacity,
                                                         .layout = options.layout,
                                                         .salvage = options.salvage,
                                                         .watch =
                                                             [] {
                                                               if (stop_signal() != 0) throw interrupted();
                                                             }},
                                                        {.waiting = wait_for_writer,
                                                         .secret = secret_of(options.secret),
                                                         .notes =
                                                             [&](const std::string& text) {
                                                               if (!quiet) say(text);
                                                             },
                                                         .no_lock = no_lock()});
  const params p = filter.parameters();
  const std::uint64_t keys = filter.insert_count();
  const std::uint64_t lost = filter.lost_keys();
  const double rate = filter.expected_fpr();
  const std::uint64_t log_bytes = filter.log().bytes();
  const std::uint64_t logged = filter.log().keys();
  filter.close();
  if (lost > 0)
    say(fmt::format("{}: warning: {} lost in the damaged part of the log", options.filter, counted(lost, "key")));
  if (options.common.json) {
    output out(STDOUT_FILENO, "standard output");
    out.write(json_line({{"filter", options.filter},
                         {"keys", keys},
                         {"lost", lost},
                         {"capacity", p.capacity},
                         {"bytes", bytes_for(p.geometry.bits)},
                         {"target_rate", p.target_fpr},
                         {"rate", rate},
                         {"layout", p.layout},
                         {"bits", p.geometry.bits},
                         {"probes", p.geometry.probes},
                         {"log_bytes", log_bytes},
                         {"log_keys", logged}}));
    out.flush();
  } else if (!quiet) {
    say(fmt::format("{}: {}, current FPR {}; {}; key log {}", options.filter, counted(keys, "key"), rate_text(rate),
                    size_text(p), bytes_text(log_bytes)));
  }
  return exit_status::found;
}

}  // namespace

void add_rebuild(command_line& line) {
  command& c =
      line.root.subcommand("rebuild", "rebuild a filter from its key log with another capacity, rate or layout");
  auto& o = line.options_of(c, rebuild);
  c.positional("FILTER", o.filter, "file of the filter; its log is FILTER.log").required().file();
  parsed(c, "-p,--rate", o.rate, parse_rate, "RATE", "false-positive rate; default: the current target rate")
      .group(of_size);
  parsed(c, "-n,--capacity", o.capacity, parse_count, "N",
         "expected number of distinct keys; default: 25% more than now")
      .group(of_size);
  c.option("--layout", o.layout, "NAME", "new layout: split_block, split_block512, blocked or blocked_page")
      .suggest("split_block, split_block512, blocked, blocked_page")
      .group(of_size);
  c.flag("--salvage", o.salvage, "skip the damaged part of the log; its keys are lost");
  add_common(c, o.common, "print only errors and warnings");
  add_secret(c, o.secret);
  add_no_lock(c);
  c.example("bloomery rebuild users.bloom -p 0.1%");
}

}  // namespace bloomery::cli
