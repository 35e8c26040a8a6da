// Inspections of filters by name, in files and on Redis or Valkey, each with a thread of its own.
#pragma once

#include "playground/inspect/watched.hpp"

#include <bloomery/error.hpp>
#include <bloomery/redis/handle.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace bloomery::playground {

/// Time for an exchange with a server unless the user gives another: a page should show soon that a server does not
/// answer, and the inspection tries again anyway.
inline constexpr std::chrono::seconds usual_server_time{3};

/// Starts to read a filter in a file or on Redis. If it cannot be read, the inspection has the error, and tries again.
/// @param options  how to reach its server; its secret, without which no key is looked up in a keyed filter
/// @throws error  invalid_argument: a malformed address
std::unique_ptr<inspection> inspect_filter(const std::string& name, const redis::open_options& options);

/// The error that the inspection of a file begins with; nothing for filters on Redis, whose servers are not asked.
std::optional<error> first_problem_of(const std::string& name);

/// @throws error invalid_argument: a malformed address
std::unique_ptr<watched> inspect_on_redis(const std::string& address, const redis::open_options& options);

}  // namespace bloomery::playground
