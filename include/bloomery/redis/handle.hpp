// Handles of filters on Redis and Valkey: open_filter() for addresses. Requires the library bloomery::redis.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/redis.hpp>
#include <bloomery/redis/chain.hpp>

#include <memory>
#include <optional>
#include <string>

namespace BLOOMERY_EXPORT bloomery {
namespace redis {

/// Options of open_filter() for addresses. Of the options for files, it uses `mode`, `secret`, `notes` and `to_remove`.
struct open_options : bloomery::open_options {
  redis_connection_options connection = {};
  unsigned wait_replicas = 0;                    ///< as redis_options::wait_replicas
  bool local_copy = false;                       ///< as redis_options::local_copy
  redis_damage on_damage = redis_damage::error;  ///< as redis_options::on_damage

  bool guava_chain = false;  ///< open a Guava chain only, not a shared filter

  /// Capacity and target FPR of one bitmap, for a Guava chain that does not store them.
  std::optional<redis_chain_params> chain = {};
};

/// Opens a shared filter or a Guava chain if `name` is an address, otherwise the filter in the file `name`.
///
/// @throws error  as redis_address::parse, redis_filter::open, redis_chain::open and bloomery::open_filter; not_found:
///                neither a shared filter nor a chain has this name
///
/// Example:
///     any_filter(complete({.capacity = 1000, .target_fpr = 0.01})).save("cities.bloom");
///     assert(!redis::open_filter("cities.bloom")->contains("Madrid"));
std::unique_ptr<filter_handle> open_filter(const std::string& name, const open_options& options = {});

/// The shared filter behind a handle, for callers that read its shards; null for all other filters.
redis_filter* shared_filter_of(filter_handle& filter) noexcept;

/// The facts of a shared filter in this state, as filter_handle::info(info_depth::bits) returns them.
filter_facts facts_of(const redis_info& now);

/// The summary of a shared filter in this state, as filter_handle::summary() returns it.
filter_summary summary_of(const redis_info& now);

/// A handle for an open shared filter or Guava chain.
std::unique_ptr<filter_handle> make_handle(redis_filter filter);
std::unique_ptr<filter_handle> make_handle(redis_chain chain);

}  // namespace redis
}  // namespace bloomery
