// Benchmark settings: a central setting, and variations of it along one axis at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

struct setting {
  bool strings = false;
  std::uint64_t n = 1'000'000;
  unsigned bits = 12;     ///< per key
  unsigned hits = 50;     ///< percentage of lookup keys that are present
  unsigned threads = 1;   ///< above 1: each measurement runs with 1 to `threads` threads
  bool inserting = true;  ///< whether inserts are measured, too
  const char* only = "";  ///< regular expression for the names of contestants; empty: all
};

/// keys/n/bits/hits/threads
inline std::string name_of(const setting& s) {
  return std::string(s.strings ? "string" : "u64") + "/" + std::to_string(s.n) + "/" + std::to_string(s.bits) + "/" +
         std::to_string(s.hits) + "/" + std::to_string(s.threads);
}

struct plan {
  std::string_view name;
  unsigned rounds;
  double least_seconds;       ///< per measurement
  double patience;            ///< seconds; slower entries are measured once
  std::uint64_t absent_keys;  ///< looked up to measure the FPR
  std::vector<setting> settings;
};

inline constexpr const char* of_threads = "^bloomery split_block(512)?$|^boost fmb.* native";
inline constexpr const char* of_goals =
    "^bloomery (split_block(512)?|classic)$|^any_filter|^static|^boost|^rocksdb|^binary_fuse|^textbook|^leveldb|^limit";
inline constexpr const char* of_ten_millions = "^bloomery split_block(512)?$|^boost fmb.* native";
inline constexpr const char* of_huge_ones = "^bloomery split_block(512)?$|^boost fmb.* native huge|^limit";

inline std::vector<plan> plans() {
  constexpr std::uint64_t k = 1'000, M = 1'000'000, G = 1'000'000'000;
  std::vector<setting> axes = {
      {.n = 10 * k},
      {.n = 1 * M},
      {.n = 100 * M},
      {.bits = 8},
      {.bits = 16},
      {.hits = 0, .inserting = false},
      {.hits = 100, .inserting = false},
      {.strings = true, .n = 10 * k},
      {.strings = true, .n = 1 * M},
      {.strings = true, .n = 10 * M},
      {.n = 1 * M, .threads = 2, .only = of_threads},
      {.n = 100 * M, .threads = 2, .only = of_threads},
  };
  std::vector<setting> everything = axes;
  everything.push_back({.n = 10 * M});
  everything.push_back({.n = 400 * M, .only = of_huge_ones});
  everything.push_back({.n = 1 * G, .only = of_huge_ones});
  return {
      {"quick",
       5,
       0.01,
       0.2,
       1 << 20,
       {{.n = 10 * k}, {.n = 1 * M}, {.n = 20 * M, .inserting = false}, {.strings = true, .n = 1 * M}}},
      {"axes", 9, 0.02, 2, 1 << 22, axes},
      {"all", 11, 0.04, 2, 1 << 24, everything},
      {"goals",
       9,
       0.02,
       4,
       1 << 20,
       {{.n = 10 * k, .only = of_goals},
        {.n = 1 * M, .only = of_goals},
        {.n = 10 * M, .only = of_ten_millions},
        {.n = 100 * M, .only = of_goals},
        {.strings = true, .n = 10 * k, .only = of_goals},
        {.strings = true, .n = 1 * M, .only = of_goals},
        {.n = 100 * M, .threads = 2, .only = "^bloomery split_block(512)?$"}}},
  };
}

}  // namespace bench
