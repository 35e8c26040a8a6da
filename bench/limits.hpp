// Lower bounds of the machine: the times to read a random cache line and to hash a key. A filter that reads one cache
// line per key cannot be much faster than the first bound, and no filter is faster than the second.
#pragma once

#include "pages.hpp"

#include <bloomery/detail/key_hash.hpp>
#include <bloomery/hash.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace bench {

/// Memory of the size of a filter, with every page allocated.
class lines {
 public:
  lines(std::uint64_t bytes, bool huge) : count_(bytes / 64), at_(take_pages(bytes, huge)), size_(bytes) {
    std::memset(at_, 1, bytes);
  }
  lines(const lines&) = delete;
  lines& operator=(const lines&) = delete;
  ~lines() { munmap(at_, size_); }

  /// Reads one word of a cache line per key. Keys are random, so they serve as hashes.
  std::uint64_t read(std::span<const std::uint64_t> keys) const {
    std::uint64_t sum = 0;
    for (const std::uint64_t key : keys) sum += word_of(key);
    return sum;
  }

  /// As read(), but prefetches the cache lines 64 keys ahead into cache level `Level`.
  template <int Level>
  std::uint64_t read_ahead(std::span<const std::uint64_t> keys) const {
    constexpr std::size_t ahead = 64;
    std::uint64_t sum = 0;
    std::size_t i = 0;
    for (; i + ahead < keys.size(); ++i) {
      __builtin_prefetch(line_of(keys[i + ahead]), 0, 4 - Level);
      sum += word_of(keys[i]);
    }
    for (; i < keys.size(); ++i) sum += word_of(keys[i]);
    return sum;
  }

 private:
  const std::uint8_t* line_of(std::uint64_t key) const { return at_ + bloomery::multiply_high(key, count_) * 64; }
  std::uint64_t word_of(std::uint64_t key) const {
    std::uint64_t word;
    std::memcpy(&word, line_of(key), sizeof word);
    return word;
  }

  std::uint64_t count_;
  std::uint8_t* at_;
  std::uint64_t size_;
};

/// Hashes the keys one by one; returns the sum of their hash64s.
template <class Hash, class Key>
std::uint64_t hash_each(std::span<const Key> keys) {
  std::uint64_t sum = 0;
  for (const Key& key : keys) sum += Hash{}(key).hash64;
  return sum;
}

}  // namespace bench
