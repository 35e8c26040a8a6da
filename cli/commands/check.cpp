// bloomery check FILTER: prints the lines whose key may be in the filter.
//
//   $ printf 'alice\nmallory\n' | bloomery check users.bloom
//   alice
//
// Lines are printed in order; with -v, those whose key is certainly absent. The exit status is that of grep.
#include "cli/commands/common.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/screen.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/key_batch.hpp"

#include <bloomery/error.hpp>
#include <bloomery/parquet.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <string>
#include <string_view>

namespace bloomery::cli {
namespace {

struct check_options {
  std::string filter;
  std::string secret;
  std::optional<std::uint64_t> now;  ///< as in window_options
  bool invert = false;
  bool count = false;
  file_check pages = file_check::automatic;
  std::string column;       ///< of a Parquet file
  bool row_groups = false;  ///< print their numbers before each line
  chain_options chain;
  server_options server;
  input_options inputs;
  common_options common;
};

// "0,3<TAB>": the row groups that may contain the value.
std::function<std::string(std::string_view)> row_groups_before(const filter_handle& filter) {
  const parquet_filters* const filters = parquet_filters_of(filter);
  if (filters == nullptr)
    throw error(errc::invalid_argument, {"only Parquet files have row groups", "--row-groups", "", "", "leave it out"});
  return [filters](std::string_view value) {
    return fmt::format("{}\t", fmt::join(filters->row_groups_with(value), ","));
  };
}

exit_status check(const check_options& options) {
  check_output(options.inputs, options.filter);
  const std::unique_ptr<filter_handle> filter = open_handle({.name = options.filter,
                                                             .secret = options.secret,
                                                             .now = options.now,
                                                             .chain = options.chain,
                                                             .server = options.server,
                                                             .quiet = options.common.quiet,
                                                             .check = options.pages,
                                                             .takes_layers = true,
                                                             .column = options.column});
  warn_of_clock(shown_name(options.filter), *filter, options.now);
  nlohmann::ordered_json about = {{"filter", shown_name(options.filter)}};
  if (const auto time = fix_time(*filter, options.now)) {
    about["time"] = seconds_json(*time);
    if (!options.common.quiet) note_if_expired(shown_name(options.filter), *filter, *time);
  }
  screen_options how{options.invert, options.count, options.inputs, options.common};
  if (options.row_groups) how.before = row_groups_before(*filter);
  return screen(lookups_in(*filter), how, about);
}

}  // namespace

void add_check(command_line& line) {
  command& c = line.root.subcommand("check", "print the lines whose keys may be in a filter");
  auto& o = line.options_of(c, check);
  c.positional("FILTER", o.filter, file_or_address).required().file();
  c.flag("-v,--invert", o.invert, "print the lines whose keys are certainly absent instead");
  c.flag("-c,--count", o.count, "print only the number of selected lines");
  c.option("--column", o.column, "NAME", "look up values of a column of a Parquet file");
  argument& groups =
      c.flag("--row-groups", o.row_groups, "print the row groups to read before each line; with --column");
  add_secret(c, o.secret);
  add_now(c, o.now);
  add_no_verify(c, o.pages);
  add_inputs(line, c, o.inputs);
  for (const char* name : {"--invert", "--csv"}) groups.excludes(*c.find(name));
  add_common(c, o.common, "print nothing; stop at the first selected line");
  add_from_replicas(c, o.server);
  add_on_damage(c, o.server);
  add_chain(c, o.chain);
  add_server(c, o.server);
  c.example("bloomery check users.bloom requests.txt");
  c.example("bloomery check -v users.bloom requests.txt");
  c.example("bloomery check --column user_id --row-groups orders.parquet ids.txt");
  c.footer("Exit status: 0 if a line was selected, 1 if none was, 2 on error.");
}

}  // namespace bloomery::cli
