#include "filters/foreign_layers.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/bits.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/scheme.hpp>

#include "file/mapping.hpp"
#include "filters/container_handle.hpp"
#include "filters/foreign_file.hpp"
#include "filters/slices.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

// A key is present if one of the layers reports it. All layers have the same scheme.
class foreign_layers final : public container_handle {
 public:
  // The parameters are those of the first layer, with the target FPR of all layers together.
  foreign_layers(std::vector<formats::stored_layer> layers, file_facts file)
      : container_handle(layers.front().parameters),
        layers_(std::move(layers)),
        file_(std::move(file)),
        scheme_(*find_scheme(parameters().scheme)) {}

  bloomery::capabilities capabilities() const override {
    bloomery::capabilities result;
    result.can_insert = false;
    return result;
  }

  filter_summary summary() override {
    const filter_facts facts = info(info_depth::counts);
    filter_summary result;
    result.insert_count = facts.insert_count;
    result.fpr = facts.expected_fpr;
    return result;
  }

  filter_facts info(info_depth depth) override {
    filter_facts facts;
    facts.parameters = parameters();
    facts.file = file_;
    facts.insert_count = 0;
    fill_facts fill{.is_exact = false};  // all layers hash a key alike, so their false positives are correlated
    estimate keys;
    combined_fpr by_keys, by_bits;
    for (const formats::stored_layer& layer : layers_) {
      const params& p = layer.parameters;
      layer_facts shown{p.geometry, p.capacity, layer.keys, expected_fpr(p, p.capacity)};
      facts.bytes += layer.words.size();
      *facts.insert_count += layer.keys;
      by_keys.add(expected_fpr(p, estimate_distinct(p, layer.keys)));
      if (depth != info_depth::counts) {
        const fill_statistics bits = measure_fill(p, bytes_of(layer));
        const estimate of_layer = estimated_keys(p, bits.ones);
        shown.cells_set = bits.ones;
        fill.cells += p.geometry.bits;
        fill.cells_set += bits.ones;
        by_bits.add(bits.current_fpr);
        keys = {keys.value + of_layer.value, std::hypot(keys.sigma, of_layer.sigma)};
      }
      facts.layers.push_back(shown);
    }
    facts.bits = 8 * facts.bytes;
    facts.distinct_keys = *facts.insert_count;
    facts.expected_fpr = by_keys.value();
    if (depth == info_depth::counts) return facts;
    fill.current_fpr = by_bits.value();
    fill.estimated_keys = keys;
    facts.fill = fill;
    return facts;
  }

  key_explanation explain(key_span one_key) override {
    if (one_key.empty()) throw error(errc::invalid_argument, {"no key to explain", "keys", "1", "0", hint::none});
    require_text(one_key);
    key_explanation result;
    for (std::size_t i = layers_.size(); i-- > 0;) {
      explained_layer& shown = result.layers.emplace_back();
      shown.number = static_cast<std::int64_t>(i);
      bool all = true;
      std::array<std::uint64_t, max_probes> room;
      for (const std::uint64_t cell : cells_of(layers_[i], one_key.text(0), room)) {
        const bool is_set = test_bit(layers_[i].words.data(), cell);
        shown.cells.push_back({cell, is_set ? 1u : 0u});
        all = all && is_set;
      }
      result.maybe_present = result.maybe_present || all;
    }
    return result;
  }

 protected:
  bool may_contain(std::string_view key) const override {
    std::array<std::uint64_t, max_probes> room;
    return std::any_of(layers_.begin(), layers_.end(), [&](const formats::stored_layer& layer) {
      const auto cells = cells_of(layer, key, room);
      return std::all_of(cells.begin(), cells.end(),
                         [&](std::uint64_t cell) { return test_bit(layer.words.data(), cell); });
    });
  }

 private:
  static std::span<const std::uint8_t> bytes_of(const formats::stored_layer& layer) {
    return {layer.words.data(), static_cast<std::size_t>(layer.words.size())};
  }

  std::span<const std::uint64_t> cells_of(const formats::stored_layer& layer, std::string_view key,
                                          std::span<std::uint64_t, max_probes> room) const {
    const params& p = layer.parameters;
    scheme_.positions(key, p.geometry, {p.seed, p.salts()}, room.data());
    return room.first(p.geometry.probes);
  }

  std::vector<formats::stored_layer> layers_;
  file_facts file_;
  const scheme& scheme_;
};

}  // namespace

std::unique_ptr<filter_handle> open_foreign_layers(const std::string& path, std::string_view format) {
  const foreign_file file(path, format);
  if (file.found.layers == 1) return nullptr;
  std::vector<formats::stored_layer> layers = file.read_layers();
  for (const formats::stored_layer& layer : layers) check_known(layer.parameters, path);
  return std::make_unique<foreign_layers>(std::move(layers),
                                          file_facts{.bytes = file.bytes(), .format = std::string(file.row->name)});
}

}  // namespace bloomery
