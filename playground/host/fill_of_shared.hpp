// The fill pass over a filter on Redis: its layers or generations in order, and within each the shards.
#pragma once

#include "playground/inspect/fill_pass.hpp"

#include <bloomery/redis.hpp>

#include <functional>
#include <optional>
#include <vector>

namespace bloomery::playground {

/// Reads all bits of a filter of up to 64 MiB, and 16 MiB of a larger one, evenly spread, to limit the load on its
/// servers. Sets the expected blocks, too, unless some blocks are nearly full.
/// @param now       facts from info()
/// @param shards    shards from info(); layers and generations that began later are left out
/// @param progress  receives the completed share
/// @return          nothing if the filter was replaced meanwhile
std::optional<fill_seen> fill_of(redis_filter& filter, const redis_info& now, const std::vector<redis_shard>& shards,
                                 const std::function<void(double)>& progress);

}  // namespace bloomery::playground
