// Search for orphaned shards of a name: shards of a filter whose description was evicted or deleted. Their keys contain
// the epoch, which only the description has, so all keys of the server are searched with SCAN.
#pragma once

#include "redis/net/router.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::redis {

/// Passes the keys on all masters that match {NAME~`rest` to `take`, several at a time; `rest` is a pattern. `take` may
/// use the router. A key may be passed twice.
/// @param time  time limit of the search
/// @returns whether all keys were searched
/// @throws error  as router::run; what `take` throws
bool search_keys(router& servers, std::string_view rest, std::chrono::milliseconds time,
                 const std::function<void(const std::vector<std::string>&)>& take);

/// NAME~EPOCH in the name of a shard's key, {NAME~EPOCH:SHARD}:REST.
std::optional<std::string> instance_in(std::string_view key, std::string_view name);

}  // namespace bloomery::redis
