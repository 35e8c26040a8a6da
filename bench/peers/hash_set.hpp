// Exact sets as contestants: no false positives, but much more memory. Strings are views; their text is not counted.
#pragma once

#include <cstdint>
#include <unordered_set>

namespace bench {

inline constexpr std::uint64_t most_keys_of_sets = 10'000'000;

/// A pointer per bucket, and a heap node per key: the link, the key, and for strings the hash.
template <class Key>
std::uint64_t memory_of(const std::unordered_set<Key>& set) {
  constexpr std::uint64_t node = sizeof(Key) == 8 ? 32 : 48;  // 16 or 32 bytes plus the header of glibc, rounded up
  return set.bucket_count() * sizeof(void*) + set.size() * node;
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
