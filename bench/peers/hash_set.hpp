// An exact set as a contestant: no false positives, and the memory that costs. Strings are views, their text is not
// counted.
#pragma once

#include <cstdint>
#include <unordered_set>

namespace bench {

inline constexpr std::uint64_t most_keys_of_sets = 10'000'000;

/// A pointer for each bucket; for each key a piece of the heap with its link, the key, and the hash of a string.
template <class Key>
std::uint64_t memory_of(const std::unordered_set<Key>& set) {
  constexpr std::uint64_t piece = sizeof(Key) == 8 ? 32 : 48;  // as glibc rounds 16 and 32 bytes with its own 8
  return set.bucket_count() * sizeof(void*) + set.size() * piece;
}

template <class Set>
class hash_set {
 public:
  hash_set(std::uint64_t n, unsigned) { set_.reserve(n); }

  void clear() { set_.clear(); }
  std::uint64_t bytes() const { return memory_of(set_); }
  void insert(const typename Set::key_type& key) { set_.insert(key); }
  bool has(const typename Set::key_type& key) const { return set_.find(key) != set_.end(); }

 private:
  Set set_;
};

}  // namespace bench
