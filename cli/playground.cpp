// The grammar of bloomery playground; with_playground.cpp serves the page.
#include "cli/playground.hpp"
#include "cli/commands/grammar.hpp"

#include <string>

namespace bloomery::cli {

void add_playground(command_line& line) {
  auto& c =
      *line.app.add_subcommand("playground", "a page to see filters work, to measure them, and to look into your own");
  auto& o = line.options_of(c, playground);
  c.add_option("FILTER", o.filters, "filters to look into: files, or addresses as redis://HOST/NAME");
  c.add_option("--port", o.port, "where to listen; any free port if not given")->check(CLI::Range(0, 65535));
  c.add_option("--host", o.host, "an address of this machine to listen on; others can then come, too")
      ->capture_default_str();
  c.add_flag_callback(
      "--no-open", [&] { o.open = false; }, "do not open a browser");
  add_secret(c, o.secret);
  add_server(c, o.server);
}

}  // namespace bloomery::cli
