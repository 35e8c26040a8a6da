// closed_layers: a client's copies of closed layers. Once a shard has a newer layer, no insert is acknowledged for bits
// in an older one, so a copy that is read after that contains every key of the layer. Lookups in a filter that has
// grown then read the newest layer only.
#pragma once

#include "platform/machine.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace bloomery::redis {

class closed_layers {
 public:
  static constexpr std::uint64_t line_bytes = cache_line_bytes;

  /// @param most_bytes  total size of all copies; 0: no copies
  explicit closed_layers(std::uint64_t most_bytes) noexcept : most_bytes_(most_bytes) {}

  /// The lines of a layer; empty: there is no copy.
  std::span<const std::uint8_t> find(std::uint64_t shard, std::int64_t layer) const;

  /// True: the layer should be read completely instead of `wanted` of its lines. Reading a complete layer costs the
  /// server about as much time as a tenth of its lines, and the network all of its bytes. So it is read once a quarter
  /// of its lines has been requested, in this call or before. Its memory is reserved until keep(), give_up_unread() or
  /// clear().
  bool is_worth_a_copy(std::uint64_t shard, std::int64_t layer, std::uint64_t lines, std::uint64_t wanted);

  /// Stores the lines of a layer for which is_worth_a_copy() returned true.
  void keep(std::uint64_t shard, std::int64_t layer, std::string_view lines);

  /// For failed calls: releases the memory of layers that were not stored after is_worth_a_copy(), which may be read
  /// again.
  void give_up_unread();

  /// Discards the copies of a shard's layers that are not in `layers`.
  void retain(std::uint64_t shard, std::span<const std::int64_t> layers);

  void clear() noexcept;

  bool empty() const noexcept { return used_bytes_ == 0; }

 private:
  struct layer_copy {
    std::uint64_t wanted = 0;         // lines requested so far
    std::uint64_t bytes = 0;          // reserved
    std::vector<std::uint8_t> lines;  // empty: not read yet

    bool is_under_way() const noexcept { return bytes != 0 && lines.empty(); }
  };

  std::uint64_t most_bytes_;
  std::uint64_t used_bytes_ = 0;
  std::uint64_t under_way_ = 0;
  std::map<std::pair<std::uint64_t, std::int64_t>, layer_copy> copies_;
};

}  // namespace bloomery::redis
