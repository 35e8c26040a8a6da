// A LevelDB database for measurements: counts the data blocks read from its file and the sizes of its filters.
//
// All keys are in one table, and no block is cached, so a lookup uses one filter and reads at most one block.
#pragma once

#include <leveldb/filter_policy.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace leveldb_policy {

struct workload {
  std::uint64_t keys = 1'000'000;  ///< in the database: 16 hexadecimal digits each, evenly spread
  std::size_t value_bytes = 100;
  std::uint64_t absent_lookups = 1'000'000;
  std::uint64_t present_lookups = 100'000;
};

/// The expected FPR of a filter of `bytes` bytes with `keys` keys.
using rate_of_filter = std::function<double(std::uint64_t bytes, std::uint64_t keys)>;

struct filters_made {
  std::uint64_t filters = 0;
  std::uint64_t bytes = 0;
  double rate = 0;  ///< mean expected FPR for absent keys
};

struct lookups_done {
  std::uint64_t blocks_for_absent = 0;   ///< read for lookups of absent keys
  std::uint64_t blocks_for_present = 0;  ///< read for lookups of present keys
  std::uint64_t lost = 0;                ///< present keys that were not found; must be 0
};

/// A new temporary folder, removed with its contents.
class temporary_folder {
 public:
  temporary_folder();
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Creates the database in an empty folder. With a null policy it has no filters. @throws std::runtime_error
filters_made fill(const std::string& folder, const workload& work, const leveldb::FilterPolicy* policy,
                  const rate_of_filter& rate);

/// Opens the database, possibly with another policy than at its creation, and looks keys up.
/// @throws std::runtime_error
lookups_done look_up(const std::string& folder, const workload& work, const leveldb::FilterPolicy* policy);

}  // namespace leveldb_policy
