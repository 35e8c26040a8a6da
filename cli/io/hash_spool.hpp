// Hashes kept on disk until their number is known: for a filter that is to be sized by keys which can be read only
// once.
#pragma once

#include "cli/io/temporary_file.hpp"

#include <bloomery/detail/key_hash.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace bloomery::cli {

/// Temporary files, one for each share of the hash space, so that distinct hashes are counted a share at a time.
class hash_spool {
 public:
  hash_spool();

  void append(std::span<const key_hash> hashes);

  /// The number of distinct hashes. Takes memory for one share: 64 bytes for every 256 hashes, at most.
  /// @throws interrupted, error io
  std::uint64_t count_distinct();

  /// Calls visit(some hashes) until all were there, share after share. Keys of a share lie near each other in a filter.
  /// @throws interrupted, error io
  void each(const std::function<void(std::span<const key_hash>)>& visit);

 private:
  static void each_of(temporary_file& share, const std::function<void(std::span<const key_hash>)>& visit);

  std::vector<temporary_file> shares_;
};

}  // namespace bloomery::cli
