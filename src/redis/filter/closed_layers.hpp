// Copies of closed layers, kept by the client. Once a shard has a newer layer, no insert is acknowledged for bits in an
// older one, so a copy that was read after that shows every key of the layer. Lookups in a filter that has grown then
// read the newest layer only.
#pragma once

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
  static constexpr std::uint64_t line_bytes = 64;

  /// @param most_bytes  of all copies together; 0: there are no copies
  explicit closed_layers(std::uint64_t most_bytes) noexcept : most_bytes_(most_bytes) {}

  /// The lines of a layer; empty: there is no copy.
  std::span<const std::uint8_t> find(std::uint64_t shard, std::int64_t layer) const;

  /// True: the layer should be read completely instead of `wanted` of its lines. A complete layer costs a server the
  /// time of about a tenth of its lines, and the network that of all its lines, so it is read when a quarter of its
  /// lines was wanted, in this call or before. The memory is set aside until keep(), give_up_unread() or clear().
  bool is_worth_a_copy(std::uint64_t shard, std::int64_t layer, std::uint64_t lines, std::uint64_t wanted);

  /// Keeps the lines of a layer for which is_worth_a_copy() was true.
  void keep(std::uint64_t shard, std::int64_t layer, std::string_view lines);

  /// For calls that failed: the layers that were not kept after is_worth_a_copy() may be read again, and need no memory.
  void give_up_unread();

  /// Forgets the layers of a shard that are not among `layers`.
  void retain(std::uint64_t shard, std::span<const std::int64_t> layers);

  void clear() noexcept;

  bool empty() const noexcept { return used_bytes_ == 0; }

 private:
  struct layer_copy {
    std::uint64_t wanted = 0;         // lines, so far
    std::uint64_t bytes = 0;          // set aside
    std::vector<std::uint8_t> lines;  // empty: not read yet

    bool is_under_way() const noexcept { return bytes != 0 && lines.empty(); }
  };

  std::uint64_t most_bytes_;
  std::uint64_t used_bytes_ = 0;
  std::uint64_t under_way_ = 0;
  std::map<std::pair<std::uint64_t, std::int64_t>, layer_copy> copies_;
};

}  // namespace bloomery::redis
