// The two kinds of filters that are looked into: files, and filters on Redis or Valkey.
#pragma once

#include "playground/inspection.hpp"

#include "cli/commands/commands.hpp"

#include <memory>
#include <string>

namespace bloomery::playground {

/// @param keyfile  of the filter's secret, to ask it; empty: none
std::unique_ptr<inspection> inspect_file(const std::string& path, const std::string& keyfile);

/// @throws error invalid_argument: it is no address
std::unique_ptr<inspection> inspect_on_redis(const std::string& address, const cli::playground_options& options);

}  // namespace bloomery::playground
