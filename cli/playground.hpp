// Options of bloomery playground, an optional part of the program.
#pragma once

#include "cli/commands/options.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bloomery::cli {

struct playground_options {
  std::vector<std::string> filters;  ///< filters to inspect
  std::string host = "127.0.0.1";
  std::uint64_t port = 0;  ///< --port; 0: any free port
  bool has_port = false;   ///< --port was given; otherwise the default port, or any free port if it is in use
  bool open = true;        ///< opens a browser
  std::string secret;
  server_options server;
};

exit_status playground(const playground_options& options);

}  // namespace bloomery::cli
