// Bulk insert: inserting many keys into a filter larger than the caches, partitioned by block for memory locality.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/function_ref.hpp>
#include <bloomery/detail/geometry.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/layout.hpp>

#include <cstddef>
#include <cstdint>

namespace BLOOMERY_EXPORT bloomery {

/// Writes the hash64 of `count` keys from `first` on to `hash64s`. Called by several threads at the same time; does not
/// throw.
using hash64s_of_keys = function_ref<void(std::size_t first, std::size_t count, std::uint64_t* hash64s)>;

/// Inserts `count` keys with up to `threads` threads (0: one per processor) and returns the number of new keys.
///
/// The keys are partitioned by block, such that the blocks of a partition fit into a core's private cache, and then
/// inserted partition by partition. So memory is accessed sequentially, and each partition belongs to one thread. This
/// takes scratch memory of at most 64 MiB, or half the filter's size if that is more, plus write buffers. If that is
/// not available, or partitioning would not be faster, keys are inserted in order, by two threads if that is faster.
/// The bytes are the same as after inserting one by one. The number of new keys is the same with one thread; with
/// several it may differ by a few false positives.
std::uint64_t bulk_insert(const bulk_target& target, std::size_t count, const hash64s_of_keys& write_hash64s,
                          unsigned threads);

/// Whether bulk_insert() would partition `count` keys or use two threads. Otherwise inserting in order avoids a copy of
/// the hashes.
bool bulk_insert_pays(const bulk_target& target, std::size_t count, unsigned threads);

}  // namespace bloomery
