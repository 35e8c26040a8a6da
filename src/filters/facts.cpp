// filter_facts of local filters: fill, consistency, window, log and layers.
#include "filters/facts.hpp"

#include <bloomery/detail/fuse.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/rebuilding_filter.hpp>
#include <bloomery/scheme.hpp>
#include <bloomery/sizing.hpp>

#include "filters/removal.hpp"
#include "filters/uncertainty.hpp"
#include "registry/tables.hpp"
#include "registry/windows.hpp"

#include <algorithm>
#include <cmath>

namespace bloomery {
namespace {

std::uint64_t whole(double keys) {
  return static_cast<std::uint64_t>(std::llround(std::min(keys, static_cast<double>(beyond_counting))));
}

// The number of cells that measure_fill() counts.
std::uint64_t counted_cells_of(const params& p) {
  const removal_calls* const removals = removals_of(p);
  return removals != nullptr ? removals->cells(p.geometry) : p.geometry.bits / cell_bits_of(p);
}

// Number of cells, counted once per generation.
std::uint64_t cells_of_window(const params& p) {
  const occupancy lane = find_layout(p.layout)->window->lane(p.geometry);
  return lane.blocks * lane.block_bits * window_generations;
}

void add_static(filter_facts& facts, const any_filter& filter, info_depth depth) {
  const params& p = facts.parameters;
  const std::uint64_t keys = sealed::keys_in(filter.bytes().data());
  const unsigned width = sealed::width_in(filter.bytes().data());
  facts.static_keys = static_facts{keys, sealed::partitions_in(filter.bytes().data()), width,
                                   find_layout(p.layout)->sealed->has_absent_list};
  facts.insert_count = facts.distinct_keys = keys;
  facts.count_is_estimate = false;
  facts.expected_fpr = find_layout(p.layout)->expected_fpr(p.geometry, keys);
  facts.keys_left = 0;
  if (depth == info_depth::counts) return;
  const fill_statistics bits = measure_fill(p, filter.bytes());
  facts.fill = fill_facts{.cells_set = bits.ones, .current_fpr = bits.current_fpr};
  facts.consistency = consistency_facts{check_fill(p, keys, bits.ones), keys, false};
}

void add_window(filter_facts& facts, const any_filter& filter, info_depth depth) {
  const params& p = facts.parameters;
  facts.window = filter.window();
  facts.distinct_keys = facts.window->keys_held();
  facts.expected_fpr = facts.window->rate;
  if (depth == info_depth::counts) return;
  const fill_statistics bits = measure_fill(p, filter.bytes());
  facts.fill = fill_facts{.cells = cells_of_window(p), .cells_set = bits.ones, .current_fpr = bits.current_fpr};
  facts.consistency = consistency_facts{check_window_fill(p, filter.bytes()), facts.distinct_keys, false};
  if (filter.has_changed()) facts.count_is_estimate = true;
  facts.consistency->alarm = facts.consistency->count.is_inconsistent() && !facts.count_is_estimate;
}

void add_bits(filter_facts& facts, const counted_cells& cells) {
  const params& p = facts.parameters;
  const bool copies = facts.removals.has_value();
  const fill_statistics& bits = cells.fill;
  const estimate keys = estimated_keys(p, bits.ones);
  facts.fill = fill_facts{.cells = counted_cells_of(p),
                          .cells_set = bits.ones,
                          .current_fpr = bits.current_fpr,
                          .uncertainty = uncertainty_of(p, bits.current_fpr),
                          .estimated_keys = keys};
  if (facts.quotient) facts.fill->estimated_keys.reset();  // slots tell the number of copies
  if (facts.counting) facts.counting->full = cells.full;
  if (facts.quotient) facts.quotient->full = cells.full;
  // Saturated counters remain after their keys are removed.
  const std::uint64_t ones_of_keys = bits.ones - facts.counting.value_or(counting_facts{}).full.value_or(0);
  consistency_facts fits{check_fill(p, *facts.insert_count, ones_of_keys), facts.distinct_keys, false};
  // Copies beyond the maximum are counted, but have no slot.
  if (facts.quotient && cells.full > 0) fits.count.conclusive = false;
  fits.alarm = fits.count.is_inconsistent() && !facts.count_is_estimate;
  facts.consistency = fits;

  const std::uint64_t by_bits = whole(keys.value);
  // Far beyond its capacity, a filter counts hardly any key.
  const bool nearly_full = facts.fill->fill_ratio() > 0.75;
  // Copies of one key count once.
  const bool repeated = copies && !fits.count.conclusive;
  if (repeated || facts.count_is_estimate || fits.alarm)
    facts.distinct_keys = by_bits;
  else if (nearly_full)
    facts.distinct_keys = std::max(fits.keys, by_bits);

  const fpr_verdict verdict = judge_fpr(facts).verdict;
  const bool has_room = verdict == fpr_verdict::kept || verdict == fpr_verdict::within_chance;
  std::uint64_t limit = has_room ? keys_within(p, p.target_fpr) : 0;
  if (facts.quotient) limit = std::min(limit, std::max(facts.quotient->keys_for, facts.quotient->grows_to));
  facts.keys_left = limit - std::min(limit, facts.distinct_keys);
}

void add_log(log_facts& facts, const key_log& log, info_depth depth) {
  facts.is_open = true;
  facts.keys = log.keys();
  facts.bytes = log.bytes();
  facts.generation = log.generation();
  if (depth != info_depth::everything || facts.problem != log_problem::none) return;
  const log_reading seen = log.read(0, [](std::span<const std::uint64_t>) {});
  facts.was_read = true;
  facts.has_torn_record = seen.torn_bytes > 0;
  if (seen.whole()) return;
  facts.problem = log_problem::damaged;
  facts.problem_text = seen.damage_in_words();
}

log_facts empty_log_facts(const std::string& path, const params& filter, std::uint64_t file_bytes) {
  log_facts facts;
  facts.path = rebuilding_filter::log_path(path);
  const double bits_per_key =
      static_cast<double>(filter.geometry.bits) / static_cast<double>(std::max<std::uint64_t>(filter.capacity, 1));
  const double grown_bits = bits_per_key * static_cast<double>(rebuilding_filter::grown_capacity(filter.capacity));
  facts.bytes_while_growing = file_bytes + static_cast<std::uint64_t>(grown_bits / 8);
  return facts;
}

// The facts of a filter of any family that the bits do not change.
filter_facts facts_of_header(const params& p, const key_counts& counts, const file_info* file) {
  const bool was_cut_off = file != nullptr && !file->clean;  // also if it is open for reading
  filter_facts facts;
  facts.parameters = p;
  facts.parameters.secret.reset();
  facts.bits = p.geometry.bits;
  facts.bytes = bytes_for(p.geometry.bits);
  facts.insert_count = counts.inserted;
  facts.count_is_estimate = counts.is_estimate || was_cut_off;
  if (file != nullptr)
    facts.file = file_facts{file->file_bytes, file->clean, file->slot_damaged, file->metadata, file->format};
  return facts;
}

}  // namespace

filter_facts facts_of(const params& p, const key_counts& counts, const file_info* file,
                      const std::optional<counted_cells>& cells) {
  filter_facts facts = facts_of_header(p, counts, file);
  const layout_row* const layout = find_layout(p.layout);
  if (family_of(p) == family::counting) facts.counting = counting_facts{.counters = counted_cells_of(p)};
  if (const slot_calls* const slots = slots_of(layout)) {
    facts.quotient = quotient_facts{.slots = counted_cells_of(p),
                                    .keys_for = slots->keys_for(p.geometry),
                                    .grows_to = doublings_left(p) > 0 ? p.capacity : 0,
                                    .fingerprint_bits = layout->fingerprint_bits};
  }
  if (layout != nullptr && layout->removals != nullptr)
    facts.removals = removal_facts{.refused = counts.refused_removals};
  facts.distinct_keys = estimate_distinct(p, *facts.insert_count);
  if (cells) add_bits(facts, *cells);
  facts.expected_fpr = expected_fpr(p, facts.distinct_keys);
  if (facts.removals) {
    // The FPR at the time of those removals is unknown: assume the target FPR, or the current FPR if it is higher.
    const double now = facts.fill ? facts.fill->current_fpr : *facts.expected_fpr;
    facts.removals->unnoticed = unnoticed_removals(facts.removals->refused, std::max(now, p.target_fpr));
  }
  return facts;
}

filter_facts facts_of(const any_filter& filter, info_depth depth) {
  const bool reads_bits = depth != info_depth::counts;
  if (reads_bits) filter.verify();
  const params& p = filter.parameters();
  const family kind = family_of(p);
  if (kind == family::static_set || kind == family::sliding_window) {
    filter_facts facts = facts_of_header(p, filter.counts(), filter.opened_from());
    kind == family::static_set ? add_static(facts, filter, depth) : add_window(facts, filter, depth);
    return facts;
  }
  std::optional<counted_cells> cells;
  if (reads_bits) {
    cells = {measure_fill(p, filter.bytes()), 0};
    if (const removal_calls* const removals = removals_of(p))
      cells->full = removals->cells_full(p.geometry, filter.bytes());
  }
  key_counts counts = filter.counts();
  if (reads_bits && filter.has_changed()) counts.is_estimate = true;  // the bits are newer than the count
  return facts_of(p, counts, filter.opened_from(), cells);
}

filter_facts facts_of(const scalable_layers& layers, const params& p, info_depth depth) {
  filter_facts facts;
  facts.parameters = p;
  facts.parameters.secret.reset();
  facts.parameters.target_fpr = layers.target_fpr();
  facts.bytes = layers.byte_size();
  facts.bits = 8 * facts.bytes;
  facts.insert_count = facts.distinct_keys = layers.insert_count();
  facts.expected_fpr = layers.expected_fpr();
  facts.expected_losses = layers.expected_losses();
  fill_facts all;
  estimate keys;
  const std::vector<scalable_layer> list = layers.layers();
  for (std::size_t i = 0; i < list.size(); ++i) {
    layer_facts layer{list[i].geometry, list[i].capacity, list[i].size, list[i].share};
    if (depth != info_depth::counts) {
      params of_layer = facts.parameters;
      of_layer.geometry = layer.geometry;
      layer.cells_set = measure_fill(of_layer, layers.bytes_of(i)).ones;
      all.cells += layer.geometry.bits / cell_bits_of(of_layer);
      all.cells_set += *layer.cells_set;
      const estimate of_cells = estimated_keys(of_layer, *layer.cells_set);
      keys = {keys.value + of_cells.value, std::hypot(keys.sigma, of_cells.sigma)};
    }
    facts.layers.push_back(layer);
  }
  facts.parameters.geometry = list.empty() ? geometry{} : list.front().geometry;
  facts.parameters.capacity = list.empty() ? 0 : list.front().capacity;
  if (depth == info_depth::counts) return facts;
  all.current_fpr = layers.current_fpr();
  all.estimated_keys = keys;
  facts.fill = all;
  return facts;
}

log_facts facts_of_log(const std::string& path, const file_info& filter, info_depth depth) {
  log_facts facts = empty_log_facts(path, filter.parameters, filter.file_bytes);
  try {
    const key_log log = key_log::open(facts.path);
    if (log.parameters().log_id() != filter.parameters.log_id()) {
      facts.problem = log_problem::of_another_filter;
      facts.problem_text = "it is the log of another filter";
    } else if (depth != info_depth::counts) {
      facts.problem_text = rebuilding_filter::missing_in(filter, log);
      if (!facts.problem_text.empty()) facts.problem = log_problem::incomplete;
    }
    add_log(facts, log, depth);
  } catch (const error& e) {
    facts.problem = e.code() == errc::not_found ? log_problem::missing : log_problem::unreadable;
    facts.problem_text = e.what();
  }
  return facts;
}

log_facts facts_of_log(const std::string& path, const params& filter, const key_log& log, info_depth depth) {
  log_facts facts = empty_log_facts(path, filter, bytes_for(filter.geometry.bits));
  add_log(facts, log, depth);
  return facts;
}

std::uint64_t estimate_distinct(const params& p, std::uint64_t counted) {
  const family kind = family_of(p);
  // Filters with removal count copies, and static filters all keys.
  if (removals_of(p) != nullptr || kind == family::static_set) return counted;
  if (p.geometry.probes > layouts::classic::most_chosen_probes) return counted;
  return estimate_distinct(counted, [&](std::uint64_t keys) { return expected_fpr(p, keys); });
}

std::uint64_t keys_within(const params& p, double rate) {
  if (p.geometry.probes > layouts::classic::most_chosen_probes) return p.capacity;
  std::uint64_t within = 0;
  std::uint64_t beyond = std::max<std::uint64_t>(p.capacity, 1);  // initial guess
  while (beyond < beyond_counting && expected_fpr(p, beyond) <= rate) {
    within = beyond;
    beyond *= 2;
  }
  while (beyond - within > 1) {
    const std::uint64_t middle = within + (beyond - within) / 2;
    (expected_fpr(p, middle) <= rate ? within : beyond) = middle;
  }
  return within;
}

}  // namespace bloomery
