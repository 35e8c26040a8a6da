// A model of the original Java program in memory: Guava's positions, plain bitmaps, one key at a time.
#pragma once

#include "redis/fixtures.hpp"
#include "support/md5.hpp"

#include <bloomery/redis/chain.hpp>
#include <bloomery/scheme.hpp>

#include <bit>

namespace bloomery_tests {

using texts = std::vector<std::string>;

/// The keys of the published figures: MD5 of a number.
inline texts md5_keys(std::uint32_t count, std::uint32_t from = 0) {
  texts keys;
  for (std::uint32_t i = 0; i < count; ++i) keys.push_back(md5_hex_of_number(from + i));
  return keys;
}

inline std::vector<std::string_view> views(const texts& keys) { return {keys.begin(), keys.end()}; }

class chain_model {
 public:
  explicit chain_model(const bloomery::redis_chain_params& p, const texts& keys = {})
      : g_(rule_.geometry_for(p.capacity, p.target_fpr)) {
    begin();
    for (const std::string& key : keys) insert(key);
  }

  bool may_contain(std::string_view key) const {
    const auto at = positions(key);
    return std::any_of(bitmaps_.begin(), bitmaps_.end(), [&](const std::string& bits) {
      return std::all_of(at.begin(), at.end(), [&](std::uint64_t x) { return (bits[x / 8] & mask(x)) != 0; });
    });
  }

  bool insert(std::string_view key) {
    ++inserted_;
    bool is_new = false;
    if (!may_contain(key)) {
      for (const std::uint64_t x : positions(key)) {
        char& byte = bitmaps_.back()[x / 8];
        if ((byte & mask(x)) != 0) continue;
        byte = static_cast<char>(byte | mask(x));
        is_new = true;
        ++ones_;
      }
    }
    if (2 * ones_ > g_.bits) {
      begin();
      grew_after_.push_back(inserted_);
    }
    return is_new;
  }

  std::vector<std::uint64_t> positions(std::string_view key) const {
    std::vector<std::uint64_t> at(g_.probes);
    rule_.positions(key, g_, {}, at.data());
    return at;
  }

  const bloomery::geometry& geometry() const { return g_; }
  const texts& bitmaps() const { return bitmaps_; }
  const std::vector<std::uint64_t>& grew_after() const { return grew_after_; }

 private:
  static int mask(std::uint64_t x) { return 0x80 >> (x % 8); }  // SETBIT counts from a byte's top

  void begin() {
    bitmaps_.emplace_back(g_.bits / 8, '\0');
    ones_ = 0;
  }

  const bloomery::scheme& rule_ = *bloomery::find_scheme("guava");
  bloomery::geometry g_;
  texts bitmaps_;
  std::uint64_t ones_ = 0;
  std::uint64_t inserted_ = 0;
  std::vector<std::uint64_t> grew_after_;
};

/// How many of these keys are found.
inline std::uint64_t count_found(bloomery::redis_chain& chain, const texts& keys) {
  std::vector<std::uint64_t> bitmap(keys.size() / 64 + 1);
  chain.may_contain(views(keys), bitmap);
  return count_of(bitmap);
}

/// Bits set.
inline std::uint64_t ones_of(const std::string& bytes) {
  std::uint64_t ones = 0;
  for (const char byte : bytes) ones += static_cast<std::uint64_t>(std::popcount(static_cast<unsigned char>(byte)));
  return ones;
}

}  // namespace bloomery_tests
