// The subcommands of bloomery redis: each file adds its own.
#pragma once

#include <bloomery/redis.hpp>

#include <cstdint>
#include <string>

namespace bloomery::cli {

class command;
struct command_line;

void add_redis_doctor(command_line& line, command& redis);
void add_redis_list(command_line& line, command& redis);
void add_redis_operations(command_line& line, command& redis);
void add_redis_replace(command_line& line, command& redis);
void add_redis_repair(command_line& line, command& redis);
void add_redis_gc(command_line& line, command& redis);

/// The help of SERVER.
inline constexpr const char* server_help = "address of a server or cluster; add /NAME to select one filter";

/// Milliseconds since 1970.
std::int64_t milliseconds_now();

/// "fixed", "growing", "window" or "counting".
std::string kind_of(const redis_params& p);

}  // namespace bloomery::cli
