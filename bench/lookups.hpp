// Lookup passes: batch, single and chained (each call starts after the previous one has ended). Each returns the number
// of keys found.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace bench {

#if defined(__x86_64__)
[[gnu::target("popcnt")]]
#endif
inline std::uint64_t
ones_in(std::span<const std::uint64_t> words) {
  std::uint64_t sum = 0;
  for (const std::uint64_t word : words) sum += static_cast<std::uint64_t>(__builtin_popcountll(word));
  return sum;
}

/// Calls has(keys, bitmap) for pieces whose bitmap fits into the first-level cache; returns the number of set bits.
template <class Key, class Has>
std::uint64_t count_in_pieces(std::span<const Key> keys, Has has) {
  std::array<std::uint64_t, 512> bitmap;
  constexpr std::size_t piece = 64 * 512;
  std::uint64_t hits = 0;
  for (std::size_t first = 0; first < keys.size(); first += piece) {
    const std::size_t count = std::min(piece, keys.size() - first);
    has(keys.subspan(first, count), std::span(bitmap));
    hits += ones_in(std::span(bitmap).first((count + 63) / 64));
  }
  return hits;
}

template <class Filter, class Key>
std::uint64_t count_batch(const Filter& filter, std::span<const Key> keys) {
  return count_in_pieces(keys, [&](auto some, auto bitmap) { filter.may_contain(some, bitmap); });
}

template <class Filter, class Key>
std::uint64_t count_single(const Filter& filter, std::span<const Key> keys) {
  std::uint64_t hits = 0;
  for (const Key& key : keys) hits += filter.may_contain(key) ? 1 : 0;
  return hits;
}

/// Each lookup starts after the previous one has read its memory.
template <class Filter, class Key>
std::uint64_t count_chained(const Filter& filter, std::span<const Key> keys) {
  std::uint64_t hits = 0;
  for (const Key& key : keys) {
    hits += filter.may_contain(key) ? 1 : 0;
#if defined(__x86_64__)
    asm volatile("lfence" : : : "memory");
#elif defined(__aarch64__)
    asm volatile("dsb ld\n\tisb" : : : "memory");
#endif
  }
  return hits;
}

}  // namespace bench
