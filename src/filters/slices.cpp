// Facts about the slices of a copy of a shared filter with a window.
#include "filters/slices.hpp"

#include <bloomery/detail/bits.hpp>
#include <bloomery/measure.hpp>

#include <map>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

// The slices of all shards, by their starts.
std::vector<layer_facts> slices_of(const layered_filter& filter, info_depth depth) {
  const params& p = filter.parameters().filter;
  std::map<std::uint64_t, layer_facts> slices;
  for (std::size_t i = 0; i < filter.layers().size(); ++i) {
    const filter_layer& layer = filter.layers()[i];
    layer_facts& slice = slices[layer.start];
    slice.start = layer.start;
    slice.expires_at = filter.expiry_of(i);
    slice.target_fpr = p.target_fpr;
    slice.geometry.bits += layer.geometry.bits;
    slice.geometry.probes = layer.geometry.probes;
    slice.capacity += layer.capacity;
    if (depth != info_depth::counts) slice.cells_set = slice.cells_set.value_or(0) + count_ones(filter.bytes_of(i));
  }
  std::vector<layer_facts> result;
  for (auto& [start, slice] : slices) result.push_back(std::move(slice));
  return result;
}

// Number of bits set in the union of a shard's slices: a key in several slices counts once.
std::uint64_t ones_of_shard(const layered_filter& filter, std::uint64_t shard, std::uint64_t now) {
  std::vector<std::uint8_t> all;
  for (std::size_t i = filter.first_of(shard); i < filter.first_of(shard + 1); ++i) {
    if (filter.expiry_of(i) <= now) continue;
    const std::span<const std::uint8_t> bits = filter.bytes_of(i);
    all.resize(bits.size());
    for (std::size_t b = 0; b < bits.size(); ++b) all[b] |= bits[b];
  }
  return count_ones(all);
}

std::uint64_t whole(const estimate& keys) {
  return static_cast<std::uint64_t>(std::min(keys.value + 0.5, static_cast<double>(beyond_counting)));
}

}  // namespace

void add_slices(filter_facts& facts, const layered_filter& filter, std::uint64_t now, info_depth depth) {
  const layered_params& p = filter.parameters();
  const window_length window = p.filter.window();
  facts.window_copy = window_copy_facts{window, window.slice_length(), p.copied_at, now};
  facts.layers = slices_of(filter, depth);
  facts.count_is_estimate = true;
  if (depth == info_depth::counts) return;

  fill_facts fill;
  std::uint64_t ones = 0;
  for (std::uint64_t s = 0; s < p.shards; ++s) {
    combined_fpr of_shard;
    for (std::size_t i = filter.first_of(s); i < filter.first_of(s + 1); ++i) {
      if (filter.expiry_of(i) <= now) continue;
      const fill_statistics bits = measure_fill(plain_layer(facts.parameters, filter.layers()[i]), filter.bytes_of(i));
      of_shard.add(bits.current_fpr);
      fill.cells += filter.layers()[i].geometry.bits;
      fill.cells_set += bits.ones;
    }
    // A key belongs to each shard with equal probability.
    fill.current_fpr += of_shard.value() / static_cast<double>(p.shards);
    ones += ones_of_shard(filter, s, now);
  }
  facts.fill = fill;
  params plain = facts.parameters;
  plain.extra = {};
  facts.insert_count = facts.distinct_keys = whole(estimated_keys(plain, std::min(ones, plain.geometry.bits)));

  combined_fpr expected;
  for (const layer_facts& slice : facts.layers) {
    if (slice.expires_at <= now) continue;
    plain.geometry = slice.geometry;
    const std::uint64_t keys = whole(estimated_keys(plain, std::min(*slice.cells_set, plain.geometry.bits)));
    // Some shards may lack the slice.
    const double share = static_cast<double>(slice.geometry.bits) / static_cast<double>(facts.parameters.geometry.bits);
    expected.add(share * expected_fpr(plain, keys));
  }
  facts.expected_fpr = expected.value();
}

}  // namespace bloomery
