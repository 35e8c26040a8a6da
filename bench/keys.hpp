// Benchmark keys, generated from numbers: random 64-bit integers, or strings of 43 bytes that contain 64 random bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// Output i of the generator SplitMix64 [Steele, Lea & Flood 2014]: distinct for distinct i.
constexpr std::uint64_t random_word(std::uint64_t i) {
  std::uint64_t x = (i + 1) * 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

template <class Key>
class key_list;

template <>
class key_list<std::uint64_t> {
 public:
  static constexpr const char* name = "u64";

  explicit key_list(std::size_t most) { keys_.reserve(most); }
  void clear() { keys_.clear(); }
  void add(std::uint64_t number) { keys_.push_back(random_word(number)); }
  std::span<const std::uint64_t> view() const { return keys_; }

 private:
  std::vector<std::uint64_t> keys_;
};

template <>
class key_list<std::string_view> {
 public:
  static constexpr const char* name = "string";

  explicit key_list(std::size_t most) : text_(most * length, '\0') { keys_.reserve(most); }
  void clear() { keys_.clear(); }
  void add(std::uint64_t number) {
    char* const begin = text_.data() + keys_.size() * length;
    char* at = std::copy(prefix.begin(), prefix.end(), begin);
    for (std::uint64_t bits = random_word(number), digit = 0; digit < 16; ++digit, bits >>= 4) {
      *at++ = "0123456789abcdef"[bits & 15];
    }
    keys_.emplace_back(begin, length);
  }
  std::span<const std::string_view> view() const { return keys_; }

 private:
  static constexpr std::string_view prefix = "https://www.example.org/ab/";
  static constexpr std::size_t length = prefix.size() + 16;
  static_assert(length == 43);
  std::string text_;
  std::vector<std::string_view> keys_;
};

/// Lookup keys: some of the first n keys and some absent keys, in random order. renew() replaces them by others.
template <class Key>
class query_list {
 public:
  query_list(std::uint64_t n, std::size_t count, unsigned percent_present)
      : keys_(count), n_(n), count_(count), percent_(percent_present) {
    renew();
  }

  void renew() {
    keys_.clear();
    present_ = 0;
    for (std::size_t i = 0; i < count_; ++i, ++drawn_) {
      const std::uint64_t dice = random_word(~drawn_);
      const bool is_present = (dice & 0xFFFFFFFF) % 100 < percent_;
      present_ += is_present ? 1 : 0;
      keys_.add(is_present ? random_word(~(dice | std::uint64_t{1} << 63)) % n_ : absent + drawn_);
    }
  }
  std::span<const Key> view() const { return keys_.view(); }
  std::uint64_t present() const { return present_; }

 private:
  static constexpr std::uint64_t absent = std::uint64_t{1} << 48;  // above the number of any inserted key
  key_list<Key> keys_;
  std::uint64_t n_;
  std::size_t count_;
  unsigned percent_;
  std::uint64_t drawn_ = 0;
  std::uint64_t present_ = 0;
};

}  // namespace bench
