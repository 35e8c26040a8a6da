// How full a shared filter is, whatever it is made of: its layers, or its generations, one behind another, and in each the
// shards.
#pragma once

#include "playground/fill_pass.hpp"

#include <bloomery/params.hpp>
#include <bloomery/redis.hpp>

#include <functional>
#include <vector>

namespace bloomery::playground {

/// Reads all bits of a filter of up to 64 MiB, and 16 MiB of a larger one: evenly spread, so that others who ask the servers
/// hardly notice. What is expected of the blocks is set, too, where the groups of layers that are filled alike are few.
/// @param shards    as info() told them just now; what came since then is left out
/// @param progress  hears the share that is done
fill_seen fill_of(redis_filter& filter, const params& p, const std::vector<redis_shard>& shards,
                  const std::function<void(double)>& progress);

}  // namespace bloomery::playground
