// hash_span: the keys of a batch as layouts take them: computed hashes, or integers that the kernels hash themselves.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/key_hash.hpp>
#include <bloomery/hash.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace BLOOMERY_EXPORT bloomery {

/// A view of keys. It owns nothing.
///
/// Example:
///     const std::uint64_t keys[] = {7, 8, 9};
///     const hash_span source = hash_span::mixed(keys, mix{});
///     assert(source.size() == 3);
///     assert(source.hash(1) == mix{}(8));
class hash_span {
 public:
  /// Computed hashes.
  static hash_span hashes(std::span<const key_hash> hashes) noexcept {
    return {kind::hashes, reinterpret_cast<const std::uint64_t*>(hashes.data()), hashes.size(), 0};
  }

  /// The hash64 of computed hashes, for layouts that read hash64 only: hash().high64 is 0.
  static hash_span hash64s(std::span<const std::uint64_t> hash64s) noexcept {
    return {kind::hash64s, hash64s.data(), hash64s.size(), 0};
  }

  /// Integers, to be hashed by `hash`.
  static hash_span mixed(std::span<const std::uint64_t> keys, mix hash) noexcept {
    return {kind::mixed, keys.data(), keys.size(), hash.whitening()};
  }

  enum class kind { hashes, hash64s, mixed };

  kind form() const noexcept { return form_; }
  std::size_t size() const noexcept { return size_; }

  /// For `hashes` pairs of hash64 and high64, otherwise one word per key; aligned to 8 bytes.
  const std::uint64_t* words() const noexcept { return words_; }

  /// The value that is xored with the integers of `mixed` before mix64.
  std::uint64_t whitening() const noexcept { return whitening_; }

  /// The hash of a key. Requires i < size().
  key_hash hash(std::size_t i) const noexcept {
    switch (form_) {
      case kind::hashes: return {words_[2 * i], words_[2 * i + 1]};
      case kind::hash64s: return {words_[i], 0};
      case kind::mixed: break;
    }
    return mix::of_hash64(hash64(i));
  }

  /// hash(i).hash64. It reads a single word: if a key_hash was just written as two words, a read of both as one value
  /// waits until they are in the cache.
  std::uint64_t hash64(std::size_t i) const noexcept {
    return form_ == kind::mixed ? mix64(words_[i] ^ whitening_) : words_[form_ == kind::hashes ? 2 * i : i];
  }

  /// `count` keys from `first` on.
  hash_span part(std::size_t first, std::size_t count) const noexcept {
    return {form_, words_ + (form_ == kind::hashes ? 2 * first : first), count, whitening_};
  }

 private:
  hash_span(kind form, const std::uint64_t* words, std::size_t size, std::uint64_t whitening) noexcept
      : words_(words), size_(size), whitening_(whitening), form_(form) {}

  const std::uint64_t* words_;
  std::size_t size_;
  std::uint64_t whitening_;
  kind form_;

  static_assert(sizeof(key_hash) == 16);  // a hash is a pair of words
};

/// Writes the hash64 of each key. The kernels hash eight integers at a time.
void hash64s_of(const hash_span& keys, std::uint64_t* hash64s) noexcept;

}  // namespace bloomery
