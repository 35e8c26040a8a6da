// Storages of a filter's bytes: on the heap, in the caller's memory, or in a mapped file (mapped_storage.hpp).
//
// A storage owns or refers to bytes and key counts, and may track which bytes changed.
#pragma once

#include <bloomery/detail/export.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace BLOOMERY_EXPORT bloomery {

/// The counts of a filter.
struct key_counts {
  std::uint64_t inserted = 0;          ///< keys that were certainly new when inserted; in counting filters all copies
  bool is_estimate = false;            ///< `inserted` was estimated from the bits: after a merge, or a killed writer
  std::uint64_t refused_removals = 0;  ///< counting: removals of absent keys, which prove misuse
  std::uint64_t logged = 0;            ///< with a key log: bytes of the log whose keys are all in the bits
  std::uint64_t log_generation = 0;    ///< with a key log: the generation of the log that `logged` refers to

  friend bool operator==(const key_counts&, const key_counts&) = default;
};

/// The counts of a merge of two counting filters.
inline key_counts sum_of_counts(const key_counts& a, const key_counts& b) noexcept {
  return {a.inserted + b.inserted, a.is_estimate || b.is_estimate, a.refused_removals + b.refused_removals, 0};
}

template <class S>
concept storage = std::movable<S> && requires(S s, const S c, std::uint64_t byte) {
  { s.data() } -> std::same_as<std::uint8_t*>;
  { c.data() } -> std::same_as<const std::uint8_t*>;
  { c.size() } -> std::same_as<std::uint64_t>;
  { s.counts() } -> std::same_as<key_counts&>;
  { c.counts() } -> std::convertible_to<const key_counts&>;
  { S::tracks_changes } -> std::convertible_to<bool>;
  s.changed(byte);
};

/// A storage that may be read-only. Filters call writable() before they write.
template <class S>
concept storage_with_access = storage<S> && requires(const S s) {
  { s.writable() } -> std::convertible_to<bool>;
};

/// Zeroed bytes on the heap, aligned to 64. From 2 MiB on they are in huge pages if the system supports them, which
/// makes random access about 1.5 times as fast.
class heap_storage {
 public:
  static constexpr bool tracks_changes = false;

  /// @param bytes  at least 1
  /// @throws error too_large: more than the memory of this machine or control group, or the allocation fails; the
  ///               message names the limit
  explicit heap_storage(std::uint64_t bytes);
  heap_storage(const heap_storage& other);
  heap_storage(heap_storage&& other) noexcept;
  heap_storage& operator=(heap_storage other) noexcept;
  ~heap_storage();

  std::uint8_t* data() noexcept { return data_; }
  const std::uint8_t* data() const noexcept { return data_; }
  std::uint64_t size() const noexcept { return size_; }
  key_counts& counts() noexcept { return counts_; }
  const key_counts& counts() const noexcept { return counts_; }
  void changed(std::uint64_t) noexcept {}

 private:
  std::uint8_t* data_ = nullptr;
  std::uint64_t size_ = 0;
  key_counts counts_;
};

/// Bytes owned by the caller, which must outlive the filter: shared memory, an arena, a page of another system's file.
///
/// Example:
///     std::vector<std::uint8_t> arena(64);
///     filter<std::uint64_t, layouts::split_block, mix, span_storage> seen({512, 8}, span_storage(arena));
///     seen.insert(42);
///     assert(seen.may_contain(42));
class span_storage {
 public:
  static constexpr bool tracks_changes = false;

  explicit span_storage(std::span<std::uint8_t> bytes) noexcept : bytes_(bytes) {}

  std::uint8_t* data() noexcept { return bytes_.data(); }
  const std::uint8_t* data() const noexcept { return bytes_.data(); }
  std::uint64_t size() const noexcept { return bytes_.size(); }
  key_counts& counts() noexcept { return counts_; }
  const key_counts& counts() const noexcept { return counts_; }
  void changed(std::uint64_t) noexcept {}

 private:
  std::span<std::uint8_t> bytes_;
  key_counts counts_;
};

}  // namespace bloomery
