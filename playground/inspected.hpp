// Inspections of filters in files and of filters on Redis or Valkey.
#pragma once

#include "playground/inspection.hpp"

#include <memory>
#include <optional>
#include <string>

namespace bloomery::playground {

/// @param secret  the key of a keyed filter, for lookups; empty: none
std::unique_ptr<inspection> inspect_file(const std::string& path, const std::optional<secret_key>& secret);

/// @throws error invalid_argument: a malformed address
std::unique_ptr<inspection> inspect_on_redis(const std::string& address, const redis::open_options& options);

}  // namespace bloomery::playground
