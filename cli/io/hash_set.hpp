// An exact set of 128-bit hashes with a fixed capacity: the hashes seen since the last flush.
#pragma once

#include <bloomery/detail/key_hash.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bloomery::cli {

/// Open addressing, linear probing, at most half full; 32 to 64 bytes of memory per hash of capacity.
class hash_set {
 public:
  explicit hash_set(std::size_t most)
      : most_(most), slots_(std::bit_ceil(2 * std::max<std::size_t>(most, 1))), mask_(slots_.size() - 1) {}

  /// Returns true if the hash is new. Requires !full().
  bool insert(key_hash hash) {
    if (hash == key_hash{}) {  // the value of an empty slot
      const bool is_new = !has_zero_;
      has_zero_ = true;
      count_ += is_new ? 1 : 0;
      return is_new;
    }
    for (std::size_t at = hash.high64 & mask_;; at = (at + 1) & mask_) {
      if (slots_[at] == hash) return false;
      if (slots_[at] == key_hash{}) {
        slots_[at] = hash;
        ++count_;
        return true;
      }
    }
  }

  std::size_t size() const noexcept { return count_; }
  bool full() const noexcept { return count_ >= most_; }

  void clear() {
    std::fill(slots_.begin(), slots_.end(), key_hash{});
    has_zero_ = false;
    count_ = 0;
  }

 private:
  std::size_t most_;
  std::vector<key_hash> slots_;
  std::size_t mask_;
  bool has_zero_ = false;
  std::size_t count_ = 0;
};

}  // namespace bloomery::cli
