// How full a shared filter is, whatever it is made of: its layers, or its generations, one behind another, and in each
// the shards.
#pragma once

#include "playground/inspect/fill_pass.hpp"

#include <bloomery/redis.hpp>

#include <functional>
#include <optional>
#include <vector>

namespace bloomery::playground {

/// Reads all bits of a filter of up to 64 MiB, and 16 MiB of a larger one, evenly spread to spare its servers. The
/// expected blocks are set, too, unless some of the blocks are as good as full.
/// @param now       and
/// @param shards    as info() told them just now; what came since then is left out
/// @param progress  hears the share that is done
/// @return          nothing: the filter was replaced meanwhile
std::optional<fill_seen> fill_of(redis_filter& filter, const redis_info& now, const std::vector<redis_shard>& shards,
                                 const std::function<void(double)>& progress);

}  // namespace bloomery::playground
