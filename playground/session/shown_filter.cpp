#include "playground/session/shown_filter.hpp"

#include <bloomery/detail/storage.hpp>
#include <bloomery/error.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/scheme.hpp>

#include <algorithm>
#include <charconv>
#include <span>
#include <system_error>
#include <utility>

namespace bloomery::playground {
namespace {

// Calls call(keys) with the key in the type of the filter.
template <class Call>
auto with_key(const filter_handle& filter, std::string_view key, Call call) {
  if (filter.parameters().keys != key_kind::u64le) return call(key_span(std::span(&key, 1)));
  const std::uint64_t number = number_of_key(key);
  return call(key_span(std::span(&number, 1)));
}

std::unique_ptr<filter_handle> scalable(params p) {
  p.geometry = {};
  return make_scalable_handle(std::move(p));
}

}  // namespace

std::uint64_t number_of_key(std::string_view key) {
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (problem == std::errc() && end == key.data() + key.size()) return number;
  throw error(errc::invalid_argument,
              {"the keys of this filter are numbers", "keys", "0 to 18446744073709551615",
               "'" + std::string(key.substr(0, 40)) + "'", "give a number, or create a filter of strings"});
}

bool contains(filter_handle& filter, std::string_view key) {
  std::uint64_t answer = 0;
  with_key(filter, key, [&](key_span one) { filter.contains(one, std::span(&answer, 1)); });
  return answer != 0;
}

key_explanation explain(filter_handle& filter, std::string_view key) {
  return with_key(filter, key, [&](key_span one) { return filter.explain(one); });
}

std::vector<place> places_of(const key_explanation& why, const cell_view& cells) {
  std::vector<place> places;
  for (std::size_t layer = 0; layer < why.layers.size(); ++layer) {
    const auto number = static_cast<std::uint32_t>(layer);
    for (const explained_cell& cell : why.layers[why.layers.size() - 1 - layer].cells)
      places.push_back({cells.number_of(cell.cell, number), number});
  }
  return places;
}

fill_facts fill_of_window(const filter_handle& filter) {
  const any_filter& bits = *filter.local();
  const cell_view cells = filter.cells();
  return {.cells = cells.size(),
          .cells_set = cells.count_set(0, cells.size()),
          .current_fpr = measure_window_fill(bits.parameters(), bits.bytes(), bits.epoch()).current_fpr};
}

std::uint64_t range_for(std::uint64_t cells, std::uint64_t most, std::uint64_t block) {
  const std::uint64_t least = (cells + most - 1) / most;
  if (block == 0) return least;
  if (least >= block) return (least + block - 1) / block * block;
  std::uint64_t part = least;
  while (block % part != 0) ++part;
  return part;
}

shown_filter::shown_filter(const wanted_filter& wanted) : params_(params_of(wanted)) {
  filter_ = wanted.grows ? scalable(params_) : make_handle(any_filter(params_));
}

shown_filter::shown_filter(any_filter filter)
    : filter_(make_handle(std::move(filter))), params_(filter_->parameters()) {}

void shown_filter::stop_clock_at(std::uint64_t milliseconds) {
  if (!params_.window().by_time()) return;
  // At the newest generation rather than at the present time, when all keys of an old file have expired.
  const window_facts facts = facts_of_window(params_, filter().bytes());
  now_ = (facts.epoch != 0 ? facts.epoch : milliseconds / facts.slice) * facts.slice;
  filter_->tick(*now_);
}

bool shown_filter::insert(std::string_view key) const {
  return with_key(*filter_, key, [&](key_span one) { return filter_->insert(one).changed != 0; });
}

removal shown_filter::remove(std::string_view key) const {
  if (!capabilities().can_remove) {
    throw error(errc::incompatible, {"keys cannot be removed from this filter: others may share their bits", "", "", "",
                                     "use the layout counting, or remove the key by force"});
  }
  removal result{};
  with_key(*filter_, key, [&](key_span one) { filter_->remove(one, std::span(&result, 1)); });
  return result;
}

bool shown_filter::remove_by_force(std::string_view key) {
  if (has_layers() || family_of(params_) != family::plain) {
    throw error(errc::incompatible, {"only the bits of a plain filter can be cleared by force", "by_force", "", "",
                                     "omit by_force, or use another layout"});
  }
  if (!may_contain(key)) return false;
  const std::span<const std::uint8_t> before = filter().bytes();
  heap_storage bytes(before.size());
  std::copy(before.begin(), before.end(), bytes.data());
  const key_explanation why = explained(key);
  for (const explained_cell& bit : why.layers.front().cells) {
    bytes.data()[bit.cell >> 3] &= static_cast<std::uint8_t>(~(1u << (bit.cell & 7)));
  }
  filter_ = make_handle(any_filter(params(params_), std::move(bytes)));
  return true;
}

void shown_filter::tick(std::uint64_t milliseconds) {
  if (!now_)
    throw error(errc::incompatible, {"this filter has no clock", "milliseconds", "a window by time", "",
                                     "create a filter with window_milliseconds"});
  *now_ += std::min(milliseconds, (std::uint64_t{1} << 62) - std::min(*now_, std::uint64_t{1} << 62));
  filter_->tick(*now_);
}

void shown_filter::check_key(std::string_view key) const {
  if (params_.keys == key_kind::u64le) number_of_key(key);
}

void shown_filter::check_takes_keys() const {
  if (capabilities().can_insert) return;
  throw error(errc::incompatible, {"a static filter accepts no keys", "", "", params_.layout, "create another filter"});
}

std::vector<std::uint64_t> shown_filter::numbers_of(std::string_view key) const {
  const scheme* const rule = find_scheme(params_.scheme);
  if (rule == nullptr) return {};
  // Numbers of up to 63 bits are below 2^53 if they are the same modulo 2^53 and 2^62 - 1: in others, the multiple of
  // 2^62 - 1 that was subtracted changes the lower bits.
  const std::uint32_t probes = params_.geometry.probes;
  const hash_choice choice{params_.seed, params_.salts()};
  std::vector<std::uint64_t> numbers(probes), again(probes);
  rule->positions(key, {std::uint64_t{1} << 53, probes}, choice, numbers.data());
  rule->positions(key, {(std::uint64_t{1} << 62) - 1, probes}, choice, again.data());
  if (numbers != again) return {};
  if (rule->from_top) {
    for (std::uint64_t& number : numbers) number ^= 7;
  }
  return numbers;
}

std::uint64_t shown_filter::epoch() const { return has_layers() ? 0 : filter().epoch(); }

std::vector<std::uint8_t> shown_filter::values(std::uint64_t from, std::uint64_t count) const {
  const cell_view cells = view();
  std::vector<std::uint8_t> all(count);
  const bool wide = cell_bits_of(params_) > 8;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t value = cells.value(from + i);
    all[i] = static_cast<std::uint8_t>(wide ? value != 0 : value);
  }
  return all;
}

fill_ranges shown_filter::fill(std::uint64_t from, std::uint64_t to, std::uint64_t most) const {
  const cell_view cells = view();
  fill_ranges ranges;
  ranges.cells_of_range = range_for(to - from, most, cells.block_cells());
  for (; from < to; from += ranges.cells_of_range) {
    ranges.ones.push_back(cells.count_set(from, std::min(to, from + ranges.cells_of_range)));
  }
  return ranges;
}

filter_facts shown_filter::facts(std::optional<std::uint64_t> keys) const {
  if (!has_layers() && capabilities().can_insert && !has_window()) return facts_of_bits(keys);
  filter_facts f = filter_->info(info_depth::bits);
  if (f.window) {
    f.fill = fill_of_window(*filter_);
    f.keys_left = params_.capacity - std::min(params_.capacity, f.distinct_keys);
  } else if (!f.layers.empty()) {
    const layer_facts& newest = f.layers.back();
    f.keys_left = newest.capacity - std::min(newest.capacity, newest.insert_count);
  }
  return f;
}

// info() without the search for the number of distinct keys, which takes seconds for some schemes. Here the number is
// known or taken from the counters.
filter_facts shown_filter::facts_of_bits(std::optional<std::uint64_t> keys) const {
  const any_filter& bits = filter();
  const fill_statistics seen = measure_fill(params_, bits.bytes());
  filter_facts f{.parameters = params_, .bits = bits.bit_size(), .bytes = bits.byte_size()};
  f.insert_count = bits.insert_count();
  f.count_is_estimate = bits.count_is_estimate();
  f.distinct_keys = keys.value_or(bits.insert_count());
  f.expected_fpr = expected_fpr(params_, f.distinct_keys);
  f.fill = fill_facts{.cells = cells_of(params_),
                      .cells_set = seen.ones,
                      .current_fpr = seen.current_fpr,
                      .estimated_keys = estimated_keys(params_, seen.ones)};
  f.consistency = consistency_facts{check_fill(params_, bits.insert_count(), seen.ones), f.distinct_keys, false};
  f.consistency->alarm = f.consistency->count.is_inconsistent() && !f.count_is_estimate;
  f.keys_left = 0;
  const fpr_verdict verdict = judge_fpr(f).verdict;
  if (verdict == fpr_verdict::no_target || verdict == fpr_verdict::broken) return f;
  if (!most_) most_ = keys_within(params_, params_.target_fpr);
  f.keys_left = *most_ - std::min(*most_, f.distinct_keys);
  return f;
}

std::string shown_filter::file() const {
  if (has_layers()) {
    throw error(errc::incompatible, {"a scalable filter in memory has no file", "", "", "",
                                     "use a fixed size, or 'bloomery build' with its option to grow"});
  }
  const std::vector<std::uint8_t> bytes = filter().to_bytes();
  return {bytes.begin(), bytes.end()};
}

}  // namespace bloomery::playground
