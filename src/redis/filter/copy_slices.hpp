// Slices in copies of shared filters with a window, as of a given time.
#pragma once

#include <bloomery/layered_filter.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace bloomery::redis {

/// The slices that have not expired by `now`. A shard whose slices have all expired gets an empty slice, the last that
/// begins before `now`.
/// @param slices  of all shards, in order; each shard has at least one
/// @param now     milliseconds since 1970
std::vector<filter_layer> unexpired(std::span<const filter_layer> slices, const window_length& window,
                                    std::uint64_t now);

/// The copy as of a later time, without the slices that have expired by then.
layered_filter as_of(const layered_filter& copy, std::uint64_t now);

}  // namespace bloomery::redis
