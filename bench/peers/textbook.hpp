// The textbook filter as a contestant: k probes at (h1 + i * h2) % m in a vector of words. It uses bloomery's hashes,
// so the comparison is between layouts and loops.
#pragma once

#include <bloomery/hash.hpp>
#include <bloomery/layouts/classic.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace bench {

template <class Key>
class textbook {
 public:
  textbook(std::uint64_t n, unsigned bits_per_key)
      : bits_(n * bits_per_key), probes_(bloomery::layouts::classic::best_probes(bits_, n)), words_(bits_ / 64 + 1) {}

  void clear() { std::fill(words_.begin(), words_.end(), 0); }
  std::uint64_t bytes() const { return words_.size() * sizeof(std::uint64_t); }

  void insert(Key key) {
    const bloomery::key_hash hash = hash_(key);
    for (std::uint32_t i = 0; i < probes_; ++i) {
      const std::uint64_t bit = (hash.hash64 + i * hash.high64) % bits_;
      words_[bit / 64] |= std::uint64_t{1} << (bit % 64);
    }
  }

  bool has(Key key) const {
    const bloomery::key_hash hash = hash_(key);
    for (std::uint32_t i = 0; i < probes_; ++i) {
      const std::uint64_t bit = (hash.hash64 + i * hash.high64) % bits_;
      if ((words_[bit / 64] >> (bit % 64) & 1) == 0) return false;
    }
    return true;
  }

 private:
  std::uint64_t bits_;
  std::uint32_t probes_;
  typename bloomery::default_hash<Key>::type hash_;
  std::vector<std::uint64_t> words_;
};

}  // namespace bench
