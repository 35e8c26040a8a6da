// Where a filter's bytes live: on the heap, in memory of the caller's, or in a mapped file (mapped_storage.hpp).
//
// A storage has bytes, the number of keys inserted so far and whether that is an estimate, and wants to hear which byte
// a new key changed.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace bloomery {

template <class S>
concept storage = std::movable<S> && requires(S s, const S c, std::uint64_t byte) {
  { s.data() } -> std::same_as<std::uint8_t*>;
  { c.data() } -> std::same_as<const std::uint8_t*>;
  { c.size() } -> std::same_as<std::uint64_t>;
  { s.inserted() } -> std::same_as<std::uint64_t&>;
  { c.inserted() } -> std::convertible_to<std::uint64_t>;
  { s.count_is_estimate() } -> std::same_as<bool&>;
  { c.count_is_estimate() } -> std::convertible_to<bool>;
  { S::tracks_changes } -> std::convertible_to<bool>;
  s.changed(byte);
};

/// Zeroed bytes on the heap, aligned to 64. From 2 MiB up they are whole huge pages where the system has them, which
/// makes random access about 1.5 times as fast.
class heap_storage {
 public:
  static constexpr bool tracks_changes = false;

  /// @param bytes  at least 1
  /// @throws error too_large: more than this machine's physical memory, or the system refuses
  explicit heap_storage(std::uint64_t bytes);
  heap_storage(const heap_storage& other);
  heap_storage(heap_storage&& other) noexcept;
  heap_storage& operator=(heap_storage other) noexcept;
  ~heap_storage();

  std::uint8_t* data() noexcept { return data_; }
  const std::uint8_t* data() const noexcept { return data_; }
  std::uint64_t size() const noexcept { return size_; }
  std::uint64_t& inserted() noexcept { return inserted_; }
  std::uint64_t inserted() const noexcept { return inserted_; }
  bool& count_is_estimate() noexcept { return count_is_estimate_; }
  bool count_is_estimate() const noexcept { return count_is_estimate_; }
  void changed(std::uint64_t) noexcept {}

 private:
  std::uint8_t* data_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint64_t inserted_ = 0;
  bool count_is_estimate_ = false;
};

/// Bytes that the caller owns and keeps alive: shared memory, an arena, a page of another system's file.
///
/// Example:
///     std::vector<std::uint8_t> arena(64);
///     filter<std::uint64_t, split_block, mix, span_storage> seen({512, 8}, span_storage(arena));
///     seen.insert(42);
///     assert(seen.may_contain(42));
class span_storage {
 public:
  static constexpr bool tracks_changes = false;

  explicit span_storage(std::span<std::uint8_t> bytes) noexcept : bytes_(bytes) {}

  std::uint8_t* data() noexcept { return bytes_.data(); }
  const std::uint8_t* data() const noexcept { return bytes_.data(); }
  std::uint64_t size() const noexcept { return bytes_.size(); }
  std::uint64_t& inserted() noexcept { return inserted_; }
  std::uint64_t inserted() const noexcept { return inserted_; }
  bool& count_is_estimate() noexcept { return count_is_estimate_; }
  bool count_is_estimate() const noexcept { return count_is_estimate_; }
  void changed(std::uint64_t) noexcept {}

 private:
  std::span<std::uint8_t> bytes_;
  std::uint64_t inserted_ = 0;
  bool count_is_estimate_ = false;
};

}  // namespace bloomery
