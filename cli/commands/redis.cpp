// bloomery redis: operations on servers and their shared filters.
#include "cli/commands/redis.hpp"
#include "cli/commands/grammar.hpp"

#include <bloomery/layouts/counting.hpp>

#include <chrono>

namespace bloomery::cli {

std::string kind_of(const redis_params& p) {
  if (p.filter.layout == layouts::counting::name) return "counting";
  if (p.filter.has_window()) return "window";
  return p.growth == redis_growth::none ? "fixed" : "growing";
}

std::int64_t milliseconds_now() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count();
}

void add_redis(command_line& line) {
  command& c = line.root.subcommand("redis", "manage filters on Redis and check the servers");
  add_redis_list(line, c);
  add_redis_operations(line, c);
  add_redis_replace(line, c);
  add_redis_repair(line, c);
  add_redis_gc(line, c);
  add_redis_doctor(line, c);
}

}  // namespace bloomery::cli
