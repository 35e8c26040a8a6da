// Random keys that are in no filter, for measuring false-positive rates.
#pragma once

#include <bloomery/hash.hpp>
#include <bloomery/key.hpp>
#include <bloomery/params.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace bloomery {

/// The keys of a seed: a counter mixed by bijections, so that all keys are distinct. Strings of 16 bytes, or integers.
class absent_keys {
 public:
  /// @param most  maximum number of keys of a call
  absent_keys(key_kind kind, std::uint64_t seed, std::size_t most) : kind_(kind), seed_(seed) {
    words_.resize(kind == key_kind::u64le ? most : 2 * most);
    if (kind != key_kind::u64le) texts_.resize(most);
  }

  /// `count` keys from key number `first` on, valid until the next call.
  key_span at(std::uint64_t first, std::size_t count) {
    if (kind_ == key_kind::u64le) {
      for (std::size_t i = 0; i < count; ++i) words_[i] = word(first + i);
      return std::span<const std::uint64_t>(words_.data(), count);
    }
    for (std::size_t i = 0; i < count; ++i) {
      words_[2 * i] = word(first + i);
      words_[2 * i + 1] = word(~(first + i));
      texts_[i] = {reinterpret_cast<const char*>(&words_[2 * i]), 16};
    }
    return std::span<const std::string_view>(texts_.data(), count);
  }

 private:
  std::uint64_t word(std::uint64_t i) const { return mix64(mix64(i + mix64(seed_)) ^ 0x9E3779B97F4A7C15u); }

  key_kind kind_;
  std::uint64_t seed_;
  std::vector<std::uint64_t> words_;
  std::vector<std::string_view> texts_;
};

}  // namespace bloomery
