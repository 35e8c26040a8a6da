// The check of a filter's description by the clients that use the filter.
//
// A call that finds the versions of its shards unchanged has not read the description, {NAME}:m and {NAME}:m2. Without
// a check, a client would continue to use shards that no other client can find, after the server evicted the
// description or a user deleted it. So about twice per minute a call also reads the description and headers of shards
// that it uses, in the batch that it sends anyway. This also prevents these keys from becoming the least recently used
// keys of a full server.
//
// If the description is missing and the shards exist, the client writes the description again. It must not do so for a
// filter that was dropped or replaced: both leave a drop mark (mark_key() in meta.hpp).
#pragma once

#include <chrono>
#include <cstdint>

namespace bloomery::redis {

/// Milliseconds after the last check from which a call includes the next one.
inline constexpr std::int64_t check_interval = 30'000;

/// The same after a check that found no description: a server that has evicted it may do so again, within seconds under
/// a high write load. Each check that finds the description increases the interval by an eighth, up to check_interval.
inline constexpr std::int64_t check_interval_after_loss = 1'000;

/// Milliseconds after the last check from which no call returns without another check.
inline constexpr std::int64_t check_limit = 60'000;

/// Maximum number of headers that a check reads.
inline constexpr std::uint64_t headers_per_check = 256;

/// Shards whose headers have a copy of the description, counted from shard 0.
inline constexpr std::uint64_t shards_with_copy = 4;

/// How long the drop mark stays after its shards were removed. Longer than any call takes between reading the version
/// of a shard and restoring the description.
inline constexpr std::chrono::minutes time_of_mark{10};

/// Moves the clock of the checks forward, for tests.
void advance_check_clock(std::chrono::milliseconds time) noexcept;

}  // namespace bloomery::redis
