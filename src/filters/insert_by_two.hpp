// Inserting with two threads, each of which owns half of the blocks.
#pragma once

#include <bloomery/detail/bulk_insert.hpp>
#include <bloomery/layout.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace bloomery {

/// With fewer keys, starting a thread takes longer than it saves.
inline constexpr std::size_t fewest_for_two = std::size_t{1} << 18;

/// Inserts `count` keys with this thread and another one, and returns the number of new keys. Takes less than 3 MiB of
/// scratch memory. Nothing is inserted and the result is empty if the memory or the thread is not available.
std::optional<std::uint64_t> insert_by_two(const bulk_target& target, std::size_t count,
                                           const hash64s_of_keys& write_hash64s);

}  // namespace bloomery
