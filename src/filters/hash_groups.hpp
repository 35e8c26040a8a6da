// Hashes in a temporary file, in groups by their upper 8 bits: the groups divide the hash space into 256 equal ranges.
//
// The file consists of blocks, each with hashes of one group. A group has a buffer of one block, which is appended to
// the file when it is full. So the file is written sequentially, and a group is read in pieces of a block.
#pragma once

#include "platform/posix.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bloomery {

class hash_groups {
 public:
  static constexpr std::uint64_t count = 256;

  /// The group of a hash.
  static constexpr std::uint64_t group_of(std::uint64_t hash64) noexcept { return hash64 >> 56; }

  /// The smallest and the largest hash of a group.
  static constexpr std::uint64_t first_of(std::uint64_t group) noexcept { return group << 56; }
  static constexpr std::uint64_t last_of(std::uint64_t group) noexcept {
    return first_of(group) | ((std::uint64_t{1} << 56) - 1);
  }

  /// @param memory   bytes for all buffers; at least 4 MiB and at most 512 MiB are used
  /// @throws error   not_found, not_permitted, io: no file can be created in the folder
  hash_groups(const std::string& folder, std::uint64_t memory);

  /// @throws error  io (disk full)
  void append(std::span<const std::uint64_t> hash64s);

  /// Writes the buffers and frees their memory. No append() may follow.
  void finish();

  std::uint64_t size_of(std::uint64_t group) const noexcept { return groups_[group].size; }

  /// Reads the hashes of a group from number `first` on. Requires finish(). Threads may read at once.
  /// @param to  at most size_of(group) - first hashes
  void read(std::uint64_t group, std::uint64_t first, std::span<std::uint64_t> to) const;

  /// Replaces the hashes of a group by at most as many. Threads may replace different groups at once.
  void replace(std::uint64_t group, std::span<const std::uint64_t> hash64s);

 private:
  struct one_group {
    std::vector<std::uint64_t> blocks;  // the numbers of its blocks in the file
    std::uint64_t size = 0;
  };

  void write(std::span<const std::uint64_t> hash64s, std::uint64_t block);

  std::string folder_;
  posix::descriptor file_;
  std::uint64_t block_;  // hashes per block
  std::uint64_t blocks_ = 0;
  std::vector<std::uint64_t> buffers_;
  std::array<one_group, count> groups_;
};

}  // namespace bloomery
