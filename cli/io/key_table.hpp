// A set of keys in memory, as exact texts or as 70-bit hashes.
//
// The low 6 bits of key_hash::high64 choose one of 64 partitions; hash64 is stored. A partition is an array of slots in
// the order of their hashes, with gaps: a slot is at its proportional place or a few slots behind. Growing one
// partition moves its slots once, in sequence, and the partitions grow at different times, so memory grows smoothly.
#pragma once

#include "cli/io/page_memory.hpp"

#include <bloomery/detail/key_hash.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace bloomery::cli {

/// The slot of a key that is remembered by its hash. 0 is an empty slot.
struct hash_slot {
  static constexpr std::size_t most_used_percent = 90;
  std::uint64_t hash = 0;
  bool used() const noexcept { return hash != 0; }
};

/// The slot of a key whose text is remembered.
struct text_slot {
  static constexpr std::size_t most_used_percent = 60;  // less for speed: the text takes most of the memory
  std::uint64_t hash = 0;
  const char* text = nullptr;  ///< the key's length, then its bytes
  bool used() const noexcept { return text != nullptr; }
};

/// One partition.
template <class Slot>
class sorted_slots {
 public:
  /// @param first  slots to begin with
  explicit sorted_slots(std::size_t first) : first_(first) {}

  /// Inserts make() unless a slot of this hash is the same key. Returns true if the key is new.
  template <class Same, class Make>
  bool insert(std::uint64_t hash, Same same, Make make) {
    if (count_ >= most_) grow();
    Slot* at = slots() + multiply_high(hash, proportional_);
    while (at->used() && at->hash < hash) ++at;
    for (; at->used() && at->hash == hash; ++at) {
      if (same(*at)) return false;
    }
    Slot* gap = at;
    while (gap->used()) ++gap;
    if (gap == last()) {  // the last slot stays empty and ends every search
      most_ = 0;
      return insert(hash, same, make);
    }
    std::move_backward(at, gap, gap + 1);
    *at = make();
    ++count_;
    return true;
  }

  /// Whether there is a slot of this hash.
  bool contains(std::uint64_t hash) const noexcept {
    if (size_ == 0) return false;
    const Slot* at = slots() + multiply_high(hash, proportional_);
    while (at->used() && at->hash < hash) ++at;
    return at->used() && at->hash == hash;
  }

  /// Loads the slots of this hash into the cache.
  void prefetch(std::uint64_t hash) const noexcept {
    if (size_ > 0) __builtin_prefetch(slots() + multiply_high(hash, proportional_));
  }

  std::size_t size() const noexcept { return count_; }
  std::size_t bytes() const noexcept { return size_ * sizeof(Slot); }

 private:
  Slot* last() const noexcept { return slots() + size_ - 1; }
  Slot* slots() const noexcept { return reinterpret_cast<Slot*>(memory_.data()); }

  void grow() {
    std::size_t proportional = proportional_ == 0 ? first_ : proportional_ + proportional_ / 2;
    while (!move_to(proportional)) proportional += proportional / 4;
    most_ = proportional * Slot::most_used_percent / 100;
  }

  // False if there are too many slots at the end. Zeroed memory is empty slots.
  bool move_to(std::size_t proportional) {
    static_assert(std::is_trivially_copyable_v<Slot>);
    const std::size_t size = proportional + proportional / 64 + 8;
    page_memory memory(size * sizeof(Slot));
    auto* const to = reinterpret_cast<Slot*>(memory.data());
    std::size_t next = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      const Slot& slot = slots()[i];
      if (!slot.used()) continue;
      next = std::max<std::size_t>(next, multiply_high(slot.hash, proportional));
      if (next >= size - 1) return false;
      to[next++] = slot;
    }
    memory_ = std::move(memory);
    size_ = size;
    proportional_ = proportional;
    return true;
  }

  page_memory memory_;
  std::size_t first_;
  std::size_t size_ = 0;
  std::size_t proportional_ = 0;  // slots that hashes map to; the others are for overflow at the end
  std::size_t count_ = 0;
  std::size_t most_ = 0;  // slots to fill before it grows
};

/// Keeps text. Memory is taken a chunk at a time and freed with the object.
class text_arena {
 public:
  /// A copy of the text, behind its length.
  const char* keep(std::string_view text) {
    const std::size_t length = text.size();
    const std::size_t bytes = sizeof length + length;
    if (bytes > left_) take(bytes);
    char* const to = next_;
    std::memcpy(to, &length, sizeof length);
    if (length > 0) std::memcpy(to + sizeof length, text.data(), length);
    next_ += bytes;
    left_ -= bytes;
    return to;
  }

  static std::string_view text_at(const char* kept) noexcept {
    std::size_t length = 0;
    std::memcpy(&length, kept, sizeof length);
    return {kept + sizeof length, length};
  }

 private:
  static constexpr std::size_t least_chunk = std::size_t{64} << 10;
  static constexpr std::size_t largest_chunk = std::size_t{8} << 20;

  // Chunk sizes double, so that few keys need little memory.
  void take(std::size_t least) {
    const std::size_t doubled = chunks_.empty() ? least_chunk : 2 * chunks_.back().size();
    left_ = std::max(least, std::min(doubled, largest_chunk));
    chunks_.emplace_back(left_);
    next_ = chunks_.back().data();
  }

  std::vector<page_memory> chunks_;
  char* next_ = nullptr;
  std::size_t left_ = 0;
};

/// All partitions, in groups. Several threads may insert at once, each into another group.
template <class Slot>
class key_table {
 public:
  static constexpr bool is_exact = requires(Slot slot) { slot.text; };
  static constexpr unsigned groups = 8;
  static constexpr unsigned partition_bits = 6;

  /// The group of a key.
  static unsigned group_of(key_hash hash) noexcept { return partition_of(hash) % groups; }

  void prefetch(key_hash hash) const noexcept { partitions_[partition_of(hash)].prefetch(hash.hash64); }

  /// Returns true if the key is new. @param text  its bytes; not read unless is_exact
  bool insert(key_hash hash, std::string_view text) {
    sorted_slots<Slot>& slots = partitions_[partition_of(hash)];
    if constexpr (is_exact) {
      return slots.insert(
          hash.hash64, [&](const Slot& slot) { return text_arena::text_at(slot.text) == text; },
          [&] {
            return Slot{hash.hash64, arenas_[group_of(hash)].arena.keep(text)};
          });
    } else {
      const std::uint64_t stored = stored_of(hash);
      return slots.insert(
          stored, [](const Slot&) { return true; }, [&] { return Slot{stored}; });
    }
  }

  /// Whether a key of this hash was inserted. Requires !is_exact. Any number of threads may call it while none inserts.
  bool contains(key_hash hash) const noexcept { return partitions_[partition_of(hash)].contains(stored_of(hash)); }

  std::uint64_t size() const noexcept {
    std::uint64_t total = 0;
    for (const auto& slots : partitions_) total += slots.size();
    return total;
  }

  /// Memory of the slots.
  std::uint64_t bytes() const noexcept {
    std::uint64_t total = 0;
    for (const auto& slots : partitions_) total += slots.bytes();
    return total;
  }

 private:
  struct alignas(64) aligned_arena {  // a separate cache line: the thread of its group writes it for every key
    text_arena arena;
  };

  static std::uint64_t stored_of(key_hash hash) noexcept { return std::max<std::uint64_t>(hash.hash64, 1); }

  static std::size_t partition_of(key_hash hash) noexcept {
    return hash.high64 & ((std::size_t{1} << partition_bits) - 1);
  }

  static std::vector<sorted_slots<Slot>> empty_partitions() {
    std::vector<sorted_slots<Slot>> result;
    constexpr std::size_t count = std::size_t{1} << partition_bits;
    constexpr std::size_t least = 128;
    for (std::size_t i = 0; i < count; ++i) result.emplace_back(least + least / 2 * i / count);
    return result;
  }

  std::vector<sorted_slots<Slot>> partitions_ = empty_partitions();
  std::vector<aligned_arena> arenas_ = std::vector<aligned_arena>(is_exact ? groups : 0);
};

/// Expected number of distinct keys that collide with others in a table of hashes: every pair agrees in 70 bits with
/// probability 2^-70, so n^2 / 2^71 of n keys.
///
/// Example: 10^9 keys lose 0.0004 of a key, 4.8e9 keys one in a hundred runs.
inline double losses_by_hash(double keys) noexcept { return keys * keys * 0x1p-71; }

}  // namespace bloomery::cli
