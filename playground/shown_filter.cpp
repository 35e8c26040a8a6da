#include "playground/shown_filter.hpp"

#include "playground/passing_file.hpp"

#include <bloomery/detail/storage.hpp>
#include <bloomery/error.hpp>
#include <bloomery/fill_check.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

namespace bloomery::playground {
namespace {

// Calls work(key) with the key as the filter takes it.
template <class Work>
auto with_key(const any_filter& filter, std::string_view key, Work work) {
  return filter.parameters().keys == key_kind::u64le ? work(number_of_key(key)) : work(key);
}

}  // namespace

std::uint64_t number_of_key(std::string_view key) {
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (problem == std::errc() && end == key.data() + key.size()) return number;
  throw error(errc::invalid_argument,
              {"the keys of this filter are numbers", "keys", "0 to 18446744073709551615",
               "'" + std::string(key.substr(0, 40)) + "'", "give a number, or make a filter of strings"});
}

struct shown_filter::layers {
  layers(const params& p, std::uint64_t first_layer)
      : asked(p),
        hasher(
            complete({.layout = "split_block512", .hash = p.hash, .seed = p.seed, .capacity = 1, .target_fpr = 0.5})),
        first(first_layer),
        grown(p.target_fpr, first_layer) {}

  key_hash hash(std::string_view key) const {
    key_hash h;
    hasher.hash(std::span(&key, 1), std::span(&h, 1));
    return h;
  }

  params asked;
  any_filter hasher;  // hashes, and nothing else
  std::uint64_t first;
  scalable_layers grown;
};

shown_filter::shown_filter(const wanted_filter& wanted) {
  const params p = params_of(wanted);
  if (wanted.grows) {
    layers_ = std::make_unique<layers>(p, p.capacity);
    return;
  }
  filter_.emplace(p);
  if (forgets()) generations_.emplace(parameters());
}

shown_filter::shown_filter(any_filter filter) : filter_(std::move(filter)) {
  if (forgets()) generations_.emplace(parameters());
}

shown_filter::shown_filter(std::unique_ptr<filter_handle> opened) : opened_(std::move(opened)) {
  if (forgets()) generations_.emplace(parameters());
}

void shown_filter::stop_clock_at(std::uint64_t milliseconds) {
  if (!forgets() || parameters().window_milliseconds == 0) return;
  // Not at this day's generation if it has others: long after, there would be nothing to see.
  const window_facts facts = facts_of_window(parameters(), filter_->bytes());
  const std::uint64_t epoch = facts.epoch != 0 ? facts.epoch : milliseconds / facts.part;
  now_ = std::make_unique<std::uint64_t>(epoch * facts.part);
  const auto stopped = [now = now_.get()] { return *now; };
  filter_->set_clock(stopped);
  generations_->set_clock(stopped);
}

shown_filter::shown_filter(shown_filter&&) noexcept = default;
shown_filter& shown_filter::operator=(shown_filter&&) noexcept = default;
shown_filter::~shown_filter() = default;

const params& shown_filter::parameters() const noexcept {
  return layers_ ? layers_->asked : opened_ ? opened_->parameters() : filter_->parameters();
}
bool shown_filter::grows() const noexcept { return layers_ != nullptr; }
std::uint64_t shown_filter::byte_size() const noexcept { return layers_ ? layers_->grown.byte_size() : bytes().size(); }

bool shown_filter::insert(std::string_view key) {
  if (layers_) return layers_->grown.insert(layers_->hash(key));
  return with_key(*filter_, key, [&](auto k) { return filter_->insert(k); });
}

bool shown_filter::may_contain(std::string_view key) const {
  if (layers_) return layers_->grown.may_contain(layers_->hash(key));
  return with_key(*filter_, key, [&](auto k) { return filter_->may_contain(k); });
}

removal shown_filter::remove(std::string_view key) {
  if (layers_ || family_of(parameters()) != family::counting) {
    throw error(errc::incompatible, {"keys cannot be removed from this filter: others may share their bits", "", "", "",
                                     "make one of layout counting, or use force and see what is lost"});
  }
  return with_key(*filter_, key, [&](auto k) { return filter_->remove(k); });
}

bool shown_filter::remove_by_force(std::string_view key) {
  if (layers_ || family_of(parameters()) != family::plain) {
    throw error(errc::incompatible, {"only the bits of a plain filter can be cleared by force", "by_force", "", "",
                                     "leave out by_force, or make a filter of another layout"});
  }
  if (!may_contain(key)) return false;
  heap_storage bytes(filter_->byte_size());
  std::copy(filter_->bytes().begin(), filter_->bytes().end(), bytes.data());
  for (const std::uint64_t bit : with_key(*filter_, key, [&](auto k) { return filter_->cells(k); })) {
    bytes.data()[bit >> 3] &= static_cast<std::uint8_t>(~(1u << (bit & 7)));
  }
  filter_.emplace(any_filter(params(filter_->parameters()), std::move(bytes)));
  return true;
}

void shown_filter::clear() {
  if (layers_) return layers_->grown.clear();
  filter_->clear();
}

void shown_filter::tick(std::uint64_t milliseconds) {
  if (!now_)
    throw error(errc::incompatible, {"time means nothing to this filter", "milliseconds", "a window of time", "",
                                     "make one with window_milliseconds"});
  *now_ += std::min(milliseconds, (std::uint64_t{1} << 62) - std::min(*now_, std::uint64_t{1} << 62));
}

void shown_filter::check_key(std::string_view key) const {
  if (filter_ && parameters().keys == key_kind::u64le) number_of_key(key);
}

void shown_filter::check_takes_keys() const {
  if (layers_ || family_of(parameters()) != family::sealed) return;
  throw error(errc::incompatible, {"a sealed filter takes no keys", "", "", parameters().layout, "make another one"});
}

std::optional<window_facts> shown_filter::window() const {
  if (!forgets()) return std::nullopt;
  return facts_of_window(parameters(), bytes(), epoch());
}
std::uint64_t shown_filter::epoch() const { return generations_->epoch(bytes().data()); }
bool shown_filter::forgets() const noexcept { return !layers_ && family_of(parameters()) == family::windowed; }

std::vector<place> shown_filter::places_of(std::string_view key) const {
  std::vector<place> places;
  if (layers_) {
    const key_hash hash = layers_->hash(key);
    std::uint64_t first_cell = 0;
    std::uint32_t number = 0;
    for (const scalable_layer& layer : layers_->grown.layers()) {
      layouts::split_block512::cells cells(layer.geometry, hash);
      for (std::uint32_t i = 0; i < cells.count(); ++i) places.push_back({first_cell + cells.next(), number});
      first_cell += layer.geometry.bits;
      ++number;
    }
    return places;
  }
  const params& p = parameters();
  const bool from_top = counts_from_top(p);
  for (const std::uint64_t cell : with_key(*filter_, key, [&](auto k) { return filter_->cells(k); })) {
    places.push_back({family_of(p) == family::windowed ? window_shape(p).cell_at(cell / 8)
                      : from_top                       ? cell ^ 7
                                                       : cell});
  }
  return places;
}

std::optional<key_hash> shown_filter::hash_of(std::string_view key) const {
  if (layers_) return layers_->hash(key);
  if (!filter_->uses_hashes()) return std::nullopt;
  key_hash hash;
  with_key(*filter_, key, [&](auto k) { filter_->hash(std::span(&k, 1), std::span(&hash, 1)); });
  return hash;
}

std::uint64_t shown_filter::bits() const { return layers_ ? cells() : parameters().geometry.bits; }

std::uint64_t shown_filter::cells() const {
  if (!layers_) return cells_of(parameters());
  std::uint64_t all = 0;
  for (const scalable_layer& layer : layers_->grown.layers()) all += layer.geometry.bits;
  return all;
}

cell_reader shown_filter::reading() const {
  return layers_ ? cell_reader(layers_->grown) : cell_reader(parameters(), bytes(), forgets() ? epoch() : 0);
}

std::uint32_t shown_filter::layer_of(std::uint64_t cell) const { return reading().layer_of(cell); }

std::uint32_t shown_filter::newest_layer() const {
  return layers_ ? static_cast<std::uint32_t>(layers_->grown.layers().size()) - 1 : 0;
}

std::vector<std::uint8_t> shown_filter::values(std::uint64_t from, std::uint64_t count) const {
  const cell_reader reader = reading();
  std::vector<std::uint8_t> all(count);
  const bool wide = cell_bits_of(parameters()) > 8;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t value = reader.value(from + i);
    all[i] = static_cast<std::uint8_t>(wide ? value != 0 : value);
  }
  return all;
}

std::uint64_t shown_filter::block_cells() const {
  return layers_ ? std::uint64_t{layouts::split_block512::block_bits} : block_cells_of(parameters());
}

fill_ranges shown_filter::fill(std::uint64_t from, std::uint64_t to, std::uint64_t most) const {
  const cell_reader reader = reading();
  fill_ranges ranges;
  ranges.cells_of_range = range_for(to - from, most, block_cells());
  for (; from < to; from += ranges.cells_of_range) {
    ranges.ones.push_back(reader.ones(from, std::min(to, from + ranges.cells_of_range)));
  }
  return ranges;
}

void shown_filter::count_runs(std::uint64_t from, std::uint64_t run, std::span<std::uint64_t> ones) const {
  reading().count_runs(from, run, ones);
}

double shown_filter::rate_at(std::uint64_t keys) const {
  return layers_ ? scalable_fpr(layers_->asked.target_fpr, keys, layers_->first) : expected_fpr(parameters(), keys);
}

// Of a window by time without what has run out since its newest generation: lookups see none of that.
fill_statistics shown_filter::bits_now() const {
  const params& p = parameters();
  if (!forgets() || window_state::of(bytes().data()).newest == epoch()) return measure_fill(p, bytes());
  heap_storage now(bytes().size());
  std::copy(bytes().begin(), bytes().end(), now.data());
  const window_state state = window_state::of(now.data()).at(epoch());
  std::memcpy(now.data(), &state, sizeof state);
  return measure_fill(p, {now.data(), now.size()});
}

filter_facts shown_filter::facts(std::optional<std::uint64_t> keys) const {
  filter_facts f;
  f.cells = cells();
  if (layers_) return facts_of_layers(std::move(f));
  const params& p = parameters();
  const fill_statistics bits = bits_now();
  const key_counts& counts = (opened_ ? *opened_->local() : *filter_).counts();
  f.counted = filter_ ? filter_->insert_count() : counts.inserted;
  f.count_is_estimate = counts.is_estimate;
  f.ones = forgets() ? reading().ones(0, f.cells) : bits.ones;
  f.certified = bits.current_fpr;
  if (family_of(p) == family::sealed) {
    // Its cells tell nothing of its keys, and it takes no more.
    f.ones = f.cells;
    f.predicted = rate_at(f.counted);
    f.estimated.value = f.estimated.sigma = std::numeric_limits<double>::infinity();
    return f;
  }
  f.window = window();
  f.layers.push_back(
      {.cells = f.cells, .capacity = p.capacity, .keys = f.counted, .ones = f.ones, .share = p.target_fpr});
  if (f.window) {
    f.overfull = f.window->has_overfull_generation();
    const double held = static_cast<double>(f.window->keys_held());
    f.estimated = {held, 0};
    f.predicted = f.window->rate;
    const std::uint64_t held_keys = f.window->keys_held();
    f.keys_left = p.capacity > held_keys ? p.capacity - held_keys : 0;
    return f;
  }
  f.estimated = estimated_keys(p, bits.ones);
  const std::uint64_t in = keys.value_or(f.counted);
  f.predicted = rate_at(in);
  f.keys_left = keys_left(p, in, f.certified, most_);
  const fill_check count = check_fill(p, f.counted, bits.ones);
  if (!f.count_is_estimate && count.is_inconsistent()) {
    f.alarm = alarm_of(count);
    f.fuller = count.deviation() > 0;
  }
  return f;
}

filter_facts shown_filter::facts_of_layers(filter_facts f) const {
  const scalable_layers& grown = layers_->grown;
  const cell_reader reader = reading();
  f.counted = grown.insert_count();
  f.certified = grown.current_fpr();
  f.predicted = grown.expected_fpr();
  double variance = 0;
  std::uint64_t first_cell = 0;
  for (const scalable_layer& layer : grown.layers()) {
    const std::uint64_t ones = reader.ones(first_cell, first_cell + layer.geometry.bits);
    const estimate in = estimated_keys({.layout = "split_block512", .geometry = layer.geometry}, ones);
    f.estimated.value += in.value;
    variance += in.sigma * in.sigma;
    f.ones += ones;
    f.layers.push_back({first_cell, layer.geometry.bits, layer.capacity, layer.size, ones, layer.share});
    first_cell += layer.geometry.bits;
  }
  f.estimated.sigma = std::sqrt(variance);
  const layer_facts& newest = f.layers.back();
  f.keys_left = newest.capacity > newest.keys ? newest.capacity - newest.keys : 0;
  return f;
}

std::string shown_filter::file() const {
  if (layers_) {
    throw error(errc::incompatible, {"a growing filter lives in memory, and has no file", "", "", "",
                                     "make one of fixed size; the command keeps growing ones with a log"});
  }
  const passing_file copy;
  try {
    filter_->save(copy.path());
  } catch (const error& e) {
    no_room(e.text().found);
  }
  return copy.read();
}

}  // namespace bloomery::playground
