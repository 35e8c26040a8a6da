#include "playground/host/inspect_filter.hpp"

#include "playground/host/own_thread.hpp"
#include "playground/inspect/inspected_file.hpp"

#include "app/parallel.hpp"

#include <bloomery/redis/address.hpp>

namespace bloomery::playground {

std::unique_ptr<inspection> inspect_filter(const std::string& name, const redis::open_options& options) {
  return in_own_thread(redis_address::is_one(name) ? inspect_on_redis(name, options)
                                                   : inspect_file(name, options.secret, app::hardware_threads()));
}

}  // namespace bloomery::playground
