// Keys for tests of rebuilding filters, and checks of many keys at once.
#pragma once

#include <bloomery/rebuilding_filter.hpp>

#include "support/test.hpp"

namespace bloomery_tests {

inline const bloomery::params of_integers = {.keys = bloomery::key_kind::u64le, .target_fpr = 0.01};

inline std::vector<std::uint64_t> numbers(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> keys(count);
  for (std::uint64_t i = 0; i < count; ++i) keys[i] = first + i;
  return keys;
}

inline std::uint64_t count_found(const bloomery::any_filter& filter, std::span<const std::uint64_t> keys) {
  std::vector<std::uint64_t> maybe((keys.size() + 63) / 64);
  filter.may_contain(keys, maybe);
  std::uint64_t found = 0;
  for (const std::uint64_t word : maybe) found += static_cast<std::uint64_t>(__builtin_popcountll(word));
  return found;
}

inline void add(bloomery::rebuilding_filter& filter, std::uint64_t first, std::uint64_t count,
                std::uint64_t together = 10'000) {
  for (std::uint64_t at = 0; at < count; at += together) {
    filter.insert(std::span<const std::uint64_t>(numbers(first + at, std::min(together, count - at))));
  }
}

/// Makes a filter of integers and its log, with the keys 0 to count - 1, and closes them.
inline void make_rebuilding(const std::string& path, std::uint64_t count, std::uint64_t together = 10'000) {
  bloomery::rebuilding_filter filter = bloomery::rebuilding_filter::create(path, of_integers);
  add(filter, 0, count, together);
  filter.close();
}

/// Opens both files for writing; open_verified() also reads all pages.
inline bloomery::rebuilding_filter open_to_write(const std::string& path) {
  return bloomery::rebuilding_filter::open(path, {.mode = bloomery::access::read_write});
}

inline bloomery::rebuilding_filter open_verified(const std::string& path) {
  return bloomery::rebuilding_filter::open(
      path, {.mode = bloomery::access::read_write, .check = bloomery::file_check::payload});
}

inline constexpr std::uint64_t absent = std::uint64_t{1} << 60;  // numbers from here on are never inserted

// Expects at most the false positives of this rate, plus six standard deviations.
inline void expect_rate_kept(const bloomery::any_filter& filter, double rate, std::uint64_t queries = 200'000) {
  const auto hits = static_cast<double>(count_found(filter, numbers(absent, queries)));
  const double expected = rate * static_cast<double>(queries);
  EXPECT_LE(hits, expected + 6 * std::sqrt(expected * (1 - rate)));
}

inline std::uint64_t file_bytes(const std::string& path) { return std::filesystem::file_size(path); }

}  // namespace bloomery_tests
