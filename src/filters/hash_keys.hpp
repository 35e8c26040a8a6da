// Hashing of a key_span by a hash that is chosen at run time.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/key_hash.hpp>
#include <bloomery/key.hpp>

#include "registry/tables.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace bloomery {

inline constexpr std::size_t keys_of_a_batch = 256;  // a multiple of 64: a batch fills whole words of the bitmap

/// Calls work(first, count) for each batch of `total` keys.
template <class Work>
void in_batches(std::size_t total, Work work) {
  for (std::size_t first = 0; first < total; first += keys_of_a_batch)
    work(first, std::min(keys_of_a_batch, total - first));
}

namespace detail {

// In small steps: 256 views take a page of the stack, and so do 256 hashes. Loads from one would wait for stores to the
// other at the same page offset.
[[gnu::noinline]] inline void hash_strings(const hash_row& hash, const hash_seed& seed, key_span keys, key_hash* out) {
  std::array<std::string_view, 64> views;
  for (std::size_t first = 0; first < keys.size(); first += views.size()) {
    const std::size_t count = std::min(views.size(), keys.size() - first);
    for (std::size_t i = 0; i < count; ++i) views[i] = keys.text(first + i);
    hash.of_bytes(seed, std::span(views).first(count), out + first);
  }
}

}  // namespace detail

/// Writes the hash of each key. Requires text or integers, according to the filter.
inline void hash_keys(const hash_row& hash, const hash_seed& seed, key_span keys, key_hash* out) {
  if (keys.form() == key_span::form_of_keys::integers) return hash.of_integers(seed, keys.integers(), out);
  if (keys.form() == key_span::form_of_keys::views) return hash.of_bytes(seed, keys.views(), out);
  detail::hash_strings(hash, seed, keys, out);
}

/// The keys as hashes in `room` if the filter accepts hashes, otherwise unchanged.
inline key_span hashed(const any_filter& filter, key_span keys, std::vector<key_hash>& room) {
  if (!filter.uses_hashes() || keys.form() == key_span::form_of_keys::hashes) return keys;
  room.resize(keys.size());
  filter.hash(keys, room);
  return room;
}

}  // namespace bloomery
