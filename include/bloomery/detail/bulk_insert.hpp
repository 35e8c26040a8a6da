// Inserting many keys at once into a filter larger than the caches, in the order that suits the memory.
#pragma once

#include <bloomery/detail/function_ref.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/export.hpp>
#include <bloomery/geometry.hpp>
#include <bloomery/layout.hpp>

#include <cstddef>
#include <cstdint>

namespace BLOOMERY_EXPORT bloomery {

/// Writes hash64 of the hashes of `count` keys from `first` on to `hash64s`. Called by several threads
/// at once; throws nothing.
using hash64s_of_keys = function_ref<void(std::size_t first, std::size_t count, std::uint64_t* hash64s)>;

/// Inserts `count` keys in any order, with up to `threads` threads (0: one a processor), and returns how many were new.
///
/// The keys are dealt out by block to partitions that fit a core's own cache, and inserted partition by partition:
/// memory is then read and written in sequence, and each partition belongs to one thread. Takes at most twice the
/// filter's memory meanwhile; where that cannot be had, or would not pay, keys are inserted one after another. The
/// bytes are the same as after inserting one by one; so is the number of new keys with one thread, while with several
/// it may differ by a few false positives.
std::uint64_t bulk_insert(const bulk_target& target, std::size_t count, const hash64s_of_keys& write_hash64s,
                          unsigned threads);

/// Whether bulk_insert() would deal out so many keys. If not, insertion in order does without a copy of their hashes.
bool bulk_insert_pays(const bulk_target& target, std::size_t count, unsigned threads);

}  // namespace bloomery
