// Every layout, kind of key and hash, for tests that run once for each: TYPED_TEST_SUITE(X, combinations, ...).
#pragma once

#include <bloomery/hash.hpp>
#include <bloomery/layouts/blocked.hpp>
#include <bloomery/layouts/blocked_page.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/layouts/split_block512.hpp>
#include <bloomery/params.hpp>
#include <bloomery/secret.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace bloomery_tests {

namespace layouts = bloomery::layouts;
using bloomery::mix;
using bloomery::murmur3;
using bloomery::siphash;
using bloomery::xxh3;
using bloomery::xxh3_64;

template <class Key, class Layout, class Hash>
struct combination {
  using key = Key;
  using layout = Layout;
  using hash = Hash;
};

// split_block512, blocked and blocked_page meet one hash a kind of key: they read of it what split_block does. The
// keyed hash meets three of all.
using combinations = testing::Types<
    combination<std::string_view, layouts::split_block, xxh3_64>,
    combination<std::string_view, layouts::split_block, xxh3>,
    combination<std::string_view, layouts::split_block, murmur3>,
    combination<std::string_view, layouts::split_block512, xxh3_64>,
    combination<std::string_view, layouts::blocked, xxh3_64>,
    combination<std::string_view, layouts::blocked_page, xxh3_64>,
    combination<std::string_view, layouts::classic, xxh3>, combination<std::string_view, layouts::classic, murmur3>,
    combination<std::uint64_t, layouts::split_block, mix>, combination<std::uint64_t, layouts::split_block, xxh3>,
    combination<std::uint64_t, layouts::split_block, murmur3>, combination<std::uint64_t, layouts::split_block512, mix>,
    combination<std::uint64_t, layouts::blocked, mix>, combination<std::uint64_t, layouts::blocked_page, mix>,
    combination<std::uint64_t, layouts::classic, mix>, combination<std::uint64_t, layouts::classic, xxh3>,
    combination<std::uint64_t, layouts::classic, murmur3>, combination<std::string_view, layouts::split_block, siphash>,
    combination<std::string_view, layouts::classic, siphash>,
    combination<std::uint64_t, layouts::split_block512, siphash>>;

/// A hash of this type: another one for each seed, which for siphash makes the key.
template <class Hash>
Hash seeded(std::uint64_t seed = 0) {
  if constexpr (std::is_same_v<Hash, siphash>)
    return siphash({seed, ~seed});
  else if constexpr (std::is_empty_v<Hash>)
    return Hash{};
  else
    return Hash{seed};
}

/// Params to be completed, with what makes their hash the seeded one.
inline bloomery::params seeded(bloomery::params p, std::uint64_t seed = 0) {
  if (p.hash == siphash::name)
    p.secret = seeded<siphash>(seed).key;
  else
    p.seed = seed;
  return p;
}

struct combination_names {
  template <class C>
  static std::string GetName(int) {  // NOLINT(readability-identifier-naming): GoogleTest's name
    return std::string(std::is_same_v<typename C::key, std::uint64_t> ? "u64_" : "bytes_") +
           std::string(C::layout::name) + "_" + std::string(C::hash::name);
  }
};

}  // namespace bloomery_tests
