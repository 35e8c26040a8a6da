// random_keys: different keys of 16 bytes at each call, for hashes that are not uniform for numbered keys (those of
// LevelDB, RocksDB and dcso). Many shorter keys are equal to filters of JavaScript, which replace bytes but UTF-8.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace bloomery_tests {

class random_keys {
 public:
  std::string operator()() {
    const std::uint64_t numbers[] = {random_(), random_()};
    return {reinterpret_cast<const char*>(numbers), sizeof numbers};
  }

 private:
  std::mt19937_64 random_{1};
};

}  // namespace bloomery_tests
