#include "playground/inspection.hpp"

#include "playground/inspected.hpp"

#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/redis/address.hpp>

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace bloomery::playground {

std::unique_ptr<inspection> inspect_filter(const std::string& name, const redis::open_options& options) {
  if (redis_address::is_one(name)) return inspect_on_redis(name, options);
  // Fails at once, rather than on the page, if there is no such filter.
  try {
    open_filter(name, {.facts_only = true});
  } catch (const error& e) {
    if (e.code() != errc::not_a_filter) throw;
    constexpr std::string_view ending = ".log";
    const std::string filter = name.substr(0, name.size() - std::min(name.size(), ending.size()));
    const bool is_log = name.ends_with(ending) && ::access(filter.c_str(), R_OK) == 0;
    error_text text = e.text();
    if (is_log) text.hint = "name " + filter + ": this is its log";
    if (text.hint.empty()) text.hint = "name a filter's file, or its address on Redis";
    throw error(e.code(), std::move(text));
  }
  return inspect_file(name, options.secret);
}

}  // namespace bloomery::playground
