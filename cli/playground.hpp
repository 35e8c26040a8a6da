// Options of the command that starts the playground, which a program can be built without.
#pragma once

#include "cli/commands/options.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bloomery::cli {

struct playground_options {
  std::vector<std::string> filters;  ///< to be inspected
  std::string host = "127.0.0.1";
  std::uint64_t port = 0;  ///< 0: any that is free
  bool open = true;        ///< a browser
  std::string secret;
  server_options server;
};

exit_status playground(const playground_options& options);

}  // namespace bloomery::cli
