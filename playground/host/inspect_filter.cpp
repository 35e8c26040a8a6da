#include "playground/host/inspect_filter.hpp"

#include "playground/host/own_thread.hpp"
#include "playground/inspect/inspected_file.hpp"

#include <bloomery/processors.hpp>
#include <bloomery/redis/address.hpp>

namespace bloomery::playground {

std::unique_ptr<inspection> inspect_filter(const std::string& name, const redis::open_options& options) {
  return in_own_thread(redis_address::is_one(name) ? inspect_on_redis(name, options)
                                                   : inspect_mapped(name, options.secret, available_processors()));
}

std::optional<error> first_problem_of(const std::string& name) {
  if (redis_address::is_one(name)) return std::nullopt;
  try {
    check_file(name);
  } catch (const error& e) {
    return e;
  }
  return std::nullopt;
}

}  // namespace bloomery::playground
