// Search for the shards of a name whose filter has no description: they were orphaned when the description was evicted
// or deleted. Their keys have the epoch in their names, which only the description has, so all keys of the server are
// searched with SCAN.
#pragma once

#include "redis/net/router.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::redis {

/// Passes the keys of all masters that match {NAME~`rest` to `take`, some at a time; `rest` is a pattern. `take` may use
/// the router. A key may come twice.
/// @param time  after which the search ends
/// @returns whether all keys were searched
/// @throws error  as router::run; what `take` throws
bool search_keys(router& servers, std::string_view rest, std::chrono::milliseconds time,
                 const std::function<void(const std::vector<std::string>&)>& take);

/// NAME~EPOCH in the name of a key of a shard: {NAME~EPOCH:SHARD}:REST.
std::optional<std::string> instance_in(std::string_view key, std::string_view name);

}  // namespace bloomery::redis
