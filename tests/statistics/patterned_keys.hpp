// Keys in random and regular patterns, and a bound for measured counts.
#pragma once

#include <bloomery/hash.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace bloomery_tests {

inline constexpr double sigmas = 4.5;

enum class pattern { random, sequential, texts };
inline constexpr pattern all_patterns[] = {pattern::random, pattern::sequential, pattern::texts};
inline constexpr const char* pattern_names[] = {"random", "sequential", "texts"};

// Key number i, different for every i. As integers, "texts" are multiples of 2^32, which differ in their upper half
// only.
inline std::uint64_t integer_key(pattern kind, std::uint64_t i) {
  if (kind == pattern::random) return bloomery::mix64(i + 0x243F6A8885A308D3);  // a bijection, far from any key order
  return kind == pattern::sequential ? i : i << 32;
}

inline std::string text_key(pattern kind, std::uint64_t i) {
  char text[32];
  if (kind == pattern::random) {
    const std::uint64_t random[2] = {integer_key(kind, i), integer_key(kind, ~i)};
    return {reinterpret_cast<const char*>(random), sizeof random};
  }
  std::snprintf(text, sizeof text, kind == pattern::sequential ? "%llu" : "user-%06llu",
                static_cast<unsigned long long>(i));
  return text;
}

// Owns the keys; views() is what filters take.
class text_keys {
 public:
  text_keys(pattern kind, std::uint64_t first, std::uint64_t count) {
    texts_.reserve(count);
    for (std::uint64_t i = first; i < first + count; ++i) texts_.push_back(text_key(kind, i));
    views_.assign(texts_.begin(), texts_.end());
  }
  std::span<const std::string_view> views() const { return views_; }

 private:
  std::vector<std::string> texts_;
  std::vector<std::string_view> views_;
};

class integer_keys {
 public:
  integer_keys(pattern kind, std::uint64_t first, std::uint64_t count) {
    keys_.reserve(count);
    for (std::uint64_t i = first; i < first + count; ++i) keys_.push_back(integer_key(kind, i));
  }
  std::span<const std::uint64_t> views() const { return keys_; }

 private:
  std::vector<std::uint64_t> keys_;
};

template <class Key>
using keys_of = std::conditional_t<std::is_same_v<Key, std::uint64_t>, integer_keys, text_keys>;

inline void expect_within(double measured, double queries, double rate, double relative_variance,
                          const std::string& what) {
  const double expected = queries * rate;
  const double variance = expected * (1 - rate) + expected * expected * relative_variance;
  EXPECT_NEAR(measured, expected, sigmas * std::sqrt(variance)) << what;
}

}  // namespace bloomery_tests
