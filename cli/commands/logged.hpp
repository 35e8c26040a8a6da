// Filters that keep a log and grow by it, as the commands meet them.
#pragma once

#include "cli/commands/commands.hpp"

#include <bloomery/rebuilding_filter.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bloomery::cli {

/// Whether this is a filter that has a log.
bool keeps_log(const std::string& path);

/// A filter to hash with, of the kind of `p`: hashes do not depend on the size, and a filter that grows is now one and
/// now another.
any_filter hasher_for(params p);

/// Opens a filter that has a log for writing; waits for another writer, and says what it is told.
rebuilding_filter open_logged(const std::string& path, const std::string& keyfile, bool quiet);

/// Refuses what a filter with a log cannot be. @throws error incompatible, invalid_argument
void check_growing(const making_options& wanted);

/// The params asked for, for rebuilding_filter::create.
params growing_params(const making_options& wanted, double default_rate);

/// build --grow.
exit_status build_growing(const build_options& options);

/// Removes the log that an old filter at `path` had, after a filter without one took its place: what was
/// old_log_of(path) before.
std::optional<std::uint64_t> old_log_of(const std::string& path);
void remove_old_log(const std::string& path, std::optional<std::uint64_t> id);

}  // namespace bloomery::cli
