// Handles of layered filters: lookups and facts.
#include <bloomery/any_filter.hpp>
#include <bloomery/detail/bits.hpp>
#include <bloomery/detail/checks.hpp>
#include <bloomery/detail/generations.hpp>
#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/layered_filter.hpp>
#include <bloomery/measure.hpp>

#include "filters/hash_keys.hpp"
#include "filters/slices.hpp"
#include "platform/machine.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace bloomery {
namespace {

filter_facts facts_of(const layered_filter& filter, std::uint64_t now, info_depth depth) {
  const layered_params& p = filter.parameters();
  filter_facts facts;
  facts.parameters = p.filter;
  facts.parameters.secret.reset();
  facts.bytes = filter.byte_size();
  facts.bits = 8 * facts.bytes;
  facts.file = file_facts{.bytes = filter.file_bytes(), .metadata = p.metadata};
  if (p.filter.has_window()) {
    add_slices(facts, filter, now, depth);
    return facts;
  }
  facts.insert_count = facts.distinct_keys = filter.keys();
  facts.count_is_at_most = p.is_shared;
  if (p.maximum != 0) facts.keys_left = p.maximum - std::min(p.maximum, filter.keys());

  // Most shards have equal layers with the same numbers of keys.
  std::map<std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>, double> known;
  const auto expected = [&](const filter_layer& layer) {
    const auto [found, is_new] = known.try_emplace({layer.geometry.bits, layer.geometry.probes, layer.keys}, 0);
    const params plain = plain_layer(facts.parameters, layer);
    if (is_new) found->second = expected_fpr(plain, estimate_distinct(plain, layer.keys));
    return found->second;
  };
  fill_facts fill;
  double expected_rate = 0;
  double rate_now = 0;
  for (std::uint64_t s = 0; s < p.shards; ++s) {
    combined_fpr by_keys, by_bits;
    for (std::size_t i = filter.first_of(s); i < filter.first_of(s + 1); ++i) {
      const filter_layer& layer = filter.layers()[i];
      const std::size_t number = i - filter.first_of(s);
      if (facts.layers.size() == number) {
        const double at_capacity = expected_fpr(plain_layer(facts.parameters, layer), layer.capacity);
        facts.layers.push_back({.geometry = {0, layer.geometry.probes}, .target_fpr = at_capacity});
      }
      layer_facts& all = facts.layers[number];
      all.geometry.bits += layer.geometry.bits;
      all.capacity += layer.capacity;
      all.insert_count += layer.keys;
      by_keys.add(expected(layer));
      if (depth == info_depth::counts) continue;
      const fill_statistics bits = measure_fill(plain_layer(facts.parameters, layer), filter.bytes_of(i));
      all.cells_set = all.cells_set.value_or(0) + bits.ones;
      fill.cells += layer.geometry.bits;
      fill.cells_set += bits.ones;
      by_bits.add(bits.current_fpr);
    }
    // A key belongs to each shard with equal probability.
    expected_rate += by_keys.value() / static_cast<double>(p.shards);
    rate_now += by_bits.value() / static_cast<double>(p.shards);
  }
  facts.expected_fpr = expected_rate;
  if (depth == info_depth::counts) return facts;
  fill.current_fpr = rate_now;
  facts.fill = fill;
  return facts;
}

class layered_handle final : public filter_handle {
 public:
  explicit layered_handle(layered_filter filter) : filter_(std::move(filter)) {
    params p = filter_.parameters().filter;
    if (p.key_check != 0 && !p.secret) return;
    p.geometry = {};
    p.capacity = 1;
    p.target_fpr = 0.5;
    p.extra = {};
    hasher_.emplace(std::move(p));
  }

  const layered_filter& filter() const noexcept { return filter_; }

  bloomery::capabilities capabilities() const override {
    bloomery::capabilities result;
    result.can_insert = false;
    result.can_look_up = hasher_.has_value();
    result.has_window = filter_.parameters().filter.has_window();
    return result;
  }

  const params& parameters() const noexcept override { return filter_.parameters().filter; }

  void save(const std::string& path, const create_options& options) override { filter_.save(path, options); }

  filter_summary summary() override {
    filter_summary result;
    const filter_facts facts = facts_of(filter_, now(), info_depth::counts);
    result.insert_count = facts.insert_count;
    result.capacity = filter_.parameters().maximum;
    result.fpr = facts.expected_fpr;
    return result;
  }

  filter_facts info(info_depth depth) override { return facts_of(filter_, now(), depth); }

  void tick(std::uint64_t time) override { ticked_ = time; }

  key_span prepare(key_span keys, std::vector<key_hash>& room) const override {
    if (!hasher_) {
      throw error(errc::incompatible,
                  {"the filter is keyed with a secret", "",
                   "the key with check value " + key_check_text(parameters().key_check), "", hint::give_the_secret});
    }
    return hashed(*hasher_, keys, room);
  }

  key_explanation explain(key_span one_key) override {
    if (one_key.empty()) throw error(errc::invalid_argument, {"no key to explain", "keys", "1", "0", hint::none});
    std::vector<key_hash> room;
    key_explanation result;
    const key_hash hash = prepare(one_key.part(0, 1), room).hashes()[0];
    result.hash = hash;
    const std::uint64_t time = now();
    result.maybe_present = filter_.may_contain(hash, time);
    const std::uint64_t shard = filter_.shard_of(hash);
    result.shard = shard;
    result.shards = filter_.parameters().shards;
    const params& p = parameters();
    for (std::size_t i = filter_.first_of(shard + 1); i-- > filter_.first_of(shard);) {
      if (filter_.expiry_of(i) <= time) break;
      explained_layer& shown = result.layers.emplace_back();
      const std::uint64_t number =
          p.has_window() ? filter_.layers()[i].start / p.window().slice_length() : i - filter_.first_of(shard);
      shown.number = static_cast<std::int64_t>(number);
      for (const std::uint64_t cell : filter_.cells(i, hash))
        shown.cells.push_back({cell, test_bit(filter_.bytes_of(i).data(), cell) ? 1u : 0u});
      shown.block = shown.cells.front().cell / cache_line_bits;
      shown.blocks = filter_.layers()[i].geometry.bits / cache_line_bits;
      shown.bytes = cache_line_bits / 8;
      shown.first_byte = shown.block * shown.bytes;
    }
    return result;
  }

 protected:
  std::uint64_t insert_some(key_span, std::uint8_t*) override { detail::refuse_writing(); }

  void look_up_some(key_span keys, std::uint64_t* bitmap) override {
    std::vector<key_hash> room;
    const std::span<const key_hash> hashes = prepare(keys, room).hashes();
    std::fill_n(bitmap, detail::bitmap_words(keys.size()), std::uint64_t{0});
    const std::uint64_t time = now();
    for (std::size_t i = 0; i < hashes.size(); ++i)
      bitmap[i / 64] |= std::uint64_t{filter_.may_contain(hashes[i], time)} << i % 64;
  }

 private:
  // The time of lookups in a window: that of the clock, but not before the copy.
  std::uint64_t now() const {
    const layered_params& p = filter_.parameters();
    if (!p.filter.has_window()) return 0;
    return std::max(p.copied_at, ticked_.value_or(milliseconds_since_1970()));
  }

  layered_filter filter_;
  std::optional<any_filter> hasher_;     // a small filter with the same hash; empty without the secret
  std::optional<std::uint64_t> ticked_;  // empty: the system's clock
};

std::vector<filter_layer> list_of(const scalable_layers& from) {
  std::vector<filter_layer> list;
  for (const scalable_layer& layer : from.layers()) list.push_back({0, layer.geometry, layer.capacity, layer.size});
  return list;
}

layered_params params_of(const scalable_layers& from, params p, std::string metadata) {
  p.layout = scalable_layers::layout_name();
  p.capacity = from.layers().front().capacity;
  p.target_fpr = from.target_fpr();
  return {.filter = std::move(p), .metadata = std::move(metadata)};
}

}  // namespace

layered_filter::layered_filter(const scalable_layers& from, params p, std::string metadata)
    : layered_filter(params_of(from, std::move(p), std::move(metadata)), list_of(from)) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto bytes = from.bytes_of(i);
    std::copy(bytes.begin(), bytes.end(), bytes_of(i).begin());
  }
}

std::unique_ptr<filter_handle> make_handle(layered_filter filter) {
  return std::make_unique<layered_handle>(std::move(filter));
}

const layered_filter* layered_filter_of(const filter_handle& filter) noexcept {
  const auto* const layered = dynamic_cast<const layered_handle*>(&filter);
  return layered == nullptr ? nullptr : &layered->filter();
}

}  // namespace bloomery
