// A disk spool for hashes: sizes a filter by the number of distinct keys when the input can be read only once.
#pragma once

#include "cli/io/temporary_file.hpp"

#include <bloomery/detail/key_hash.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace bloomery::cli {

/// Temporary files, one per partition of the hash space, so that distinct hashes are counted one partition at a time.
class hash_spool {
 public:
  hash_spool();

  void append(std::span<const key_hash> hashes);

  /// The number of distinct hashes. Needs memory for one partition: at most 64 bytes per 256 hashes.
  /// @throws interrupted, error io
  std::uint64_t count_distinct();

  /// Calls visit(hashes) for all hashes, one partition at a time. Keys of a partition are close together in a filter.
  /// @throws interrupted, error io
  void each(const std::function<void(std::span<const key_hash>)>& visit);

 private:
  static void each_of(temporary_file& share, const std::function<void(std::span<const key_hash>)>& visit);

  std::vector<temporary_file> shares_;
};

}  // namespace bloomery::cli
