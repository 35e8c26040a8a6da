// The hashes of a key_span, by a hash that is chosen at run time.
#pragma once

#include <bloomery/key_hash.hpp>
#include <bloomery/key_span.hpp>

#include "registry/tables.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace bloomery {

inline constexpr std::size_t keys_of_a_batch = 256;  // a multiple of 64: a batch fills whole words of the answer

/// Calls work(first, count) for each batch of `total` keys.
template <class Work>
void in_batches(std::size_t total, Work work) {
  for (std::size_t first = 0; first < total; first += keys_of_a_batch)
    work(first, std::min(keys_of_a_batch, total - first));
}

/// Writes the hash of each key. Requires text or integers, whichever the filter has.
inline void hash_keys(const hash_row& hash, const hash_seed& seed, key_span keys, key_hash* out) {
  if (keys.form() == key_span::form_of_keys::integers) return hash.of_integers(seed, keys.integers(), out);
  if (keys.form() == key_span::form_of_keys::views) return hash.of_bytes(seed, keys.views(), out);
  std::array<std::string_view, keys_of_a_batch> views;
  in_batches(keys.size(), [&](std::size_t first, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) views[i] = keys.text(first + i);
    hash.of_bytes(seed, std::span(views).first(count), out + first);
  });
}

}  // namespace bloomery
