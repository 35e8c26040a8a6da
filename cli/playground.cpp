// The grammar of bloomery playground; with_playground.cpp serves the page.
#include "cli/playground.hpp"
#include "cli/commands/grammar.hpp"

#include <string>

namespace bloomery::cli {

void add_playground(command_line& line) {
  command& c =
      line.root.subcommand("playground", "a page to see filters work, to measure them, and to look into your own");
  auto& o = line.options_of(c, playground);
  c.positional("FILTER", o.filters, "filters to look into: files, or addresses as redis://HOST/NAME").file();
  c.option("--port", o.port, {0, 65535}, "PORT", "where to listen; any free port if not given");
  c.option("--host", o.host, "HOST", "an address of this machine to listen on; others can then come, too");
  c.flag(
      "--no-open", [&] { o.open = false; }, "do not open a browser");
  add_secret(c, o.secret);
  add_server(c, o.server);
}

}  // namespace bloomery::cli
