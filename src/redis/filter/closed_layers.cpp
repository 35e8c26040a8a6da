// closed_layers: the choice of layers to copy, and their memory.
#include "redis/filter/closed_layers.hpp"

#include <algorithm>
#include <limits>

namespace bloomery::redis {
namespace {

constexpr std::uint64_t most_layer_bytes = std::uint64_t{1} << 20;  // a longer reply would delay other clients
constexpr std::uint64_t wanted_share = 4;

}  // namespace

std::span<const std::uint8_t> closed_layers::find(std::uint64_t shard, std::int64_t layer) const {
  if (empty()) return {};
  const auto found = copies_.find({shard, layer});
  return found == copies_.end() ? std::span<const std::uint8_t>{} : found->second.lines;
}

bool closed_layers::is_worth_a_copy(std::uint64_t shard, std::int64_t layer, std::uint64_t lines,
                                    std::uint64_t wanted) {
  if (lines > most_layer_bytes / line_bytes || used_bytes_ + lines * line_bytes > most_bytes_) return false;
  layer_copy& copy = copies_[{shard, layer}];
  if (copy.bytes != 0) return false;  // under way
  copy.wanted += wanted;
  if (copy.wanted < lines / wanted_share) return false;
  copy.bytes = lines * line_bytes;
  used_bytes_ += copy.bytes;
  ++under_way_;
  return true;
}

void closed_layers::keep(std::uint64_t shard, std::int64_t layer, std::string_view lines) {
  const auto found = copies_.find({shard, layer});
  if (found == copies_.end() || !found->second.is_under_way() || found->second.bytes != lines.size()) return;
  found->second.lines.assign(lines.begin(), lines.end());
  --under_way_;
}

void closed_layers::give_up_unread() {
  if (under_way_ == 0) return;
  for (auto& [place, copy] : copies_) {
    if (!copy.is_under_way()) continue;
    used_bytes_ -= copy.bytes;
    copy.bytes = 0;
  }
  under_way_ = 0;
}

void closed_layers::retain(std::uint64_t shard, std::span<const std::int64_t> layers) {
  const auto end = copies_.upper_bound({shard, std::numeric_limits<std::int64_t>::max()});
  for (auto at = copies_.lower_bound({shard, std::numeric_limits<std::int64_t>::min()}); at != end;) {
    if (std::find(layers.begin(), layers.end(), at->first.second) != layers.end()) {
      ++at;
      continue;
    }
    used_bytes_ -= at->second.bytes;
    if (at->second.is_under_way()) --under_way_;
    at = copies_.erase(at);
  }
}

void closed_layers::clear() noexcept {
  copies_.clear();
  used_bytes_ = 0;
  under_way_ = 0;
}

}  // namespace bloomery::redis
