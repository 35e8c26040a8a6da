// The options of bloomery playground. with_playground.cpp serves the page.
#include "cli/playground.hpp"
#include "cli/commands/grammar.hpp"

#include <string>

namespace bloomery::cli {

void add_playground(command_line& line) {
  command& c = line.root.subcommand("playground", "open an interactive web page for exploring and inspecting filters");
  auto& o = line.options_of(c, playground);
  c.positional("FILTER", o.filters, "filters to inspect: files or addresses").file();
  const argument& port = c.option("--port", o.port, {0, 65535}, "PORT",
                                  "port to listen on, 0: any free port; default: 25666, or any free port");
  c.when_parsed([&](const command& parsed) { o.has_port = parsed.given(port); });
  c.option("--host", o.host, "HOST", "address to listen on; default: 127.0.0.1 (this machine only)");
  c.flag(
      "--no-open", [&] { o.open = false; }, "do not open a browser");
  add_secret(c, o.secret);
  add_server(c, o.server);
  c.example("bloomery playground");
  c.example("bloomery playground users.bloom redis://cache/users");
}

}  // namespace bloomery::cli
