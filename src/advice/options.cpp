// The options under given requirements: each structure with its exact size and FPR.
#include "advice/options.hpp"

#include <bloomery/cascade_builder.hpp>
#include <bloomery/detail/cascade.hpp>
#include <bloomery/detail/fuse.hpp>
#include <bloomery/detail/ribbon.hpp>
#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layouts/split_block512.hpp>
#include <bloomery/rebuilding_filter.hpp>
#include <bloomery/sizing.hpp>

#include "platform/machine.hpp"
#include "registry/tables.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace bloomery {
namespace {

// Cache lines that a lookup may touch. A block is aligned to its size. For sliding, includes the line of the stamp.
std::uint32_t lines_of(const params& p) {
  const layout_facts* const facts = find_layout_facts(p.layout);
  if (facts != nullptr && facts->most_lines != 0) return facts->most_lines;
  const std::uint32_t most = p.geometry.probes + (family_of(p) == family::sliding_window ? 1 : 0);
  const std::uint64_t block = block_bits_of(p);
  return block == 0 ? most : std::min(most, std::max(1u, static_cast<std::uint32_t>(block / cache_line_bits)));
}

params params_of(const demand& d, std::string_view layout, std::uint64_t keys) {
  params p;
  p.layout = layout;
  p.keys = d.w.kind;
  p.capacity = keys;
  p.target_fpr = d.w.rate;
  return p;
}

// A filter of fixed size, for the maximum number of keys.
option of_params(const demand& d, structure take, params p) {
  option o;
  o.take = take;
  o.for_keys = d.most;
  o.bits_per_key = static_cast<double>(p.geometry.bits) / static_cast<double>(d.most);
  o.worst_bits_per_key = static_cast<double>(p.geometry.bits) / static_cast<double>(d.fewest != 0 ? d.fewest : d.most);
  o.bytes = bytes_for(p.geometry.bits);
  o.rate = expected_fpr(p, d.most);
  o.lines = lines_of(p);
  o.parameters = std::move(p);
  return o;
}

// Chooses among layouts, the fastest first, by the rule of advice.hpp. With a memory limit, takes the fastest that fits
// if the layout of the rule does not.
option best_of(const demand& d, structure take, const std::vector<params>& all) {
  std::vector<candidate> candidates;
  for (const params& p : all) {
    candidate c{p.layout};
    c.geometry = p.geometry;
    c.bits_per_key = static_cast<double>(p.geometry.bits) / static_cast<double>(d.most);
    candidates.push_back(std::move(c));
  }
  judge(candidates, d.w.prefer);
  const auto fits = [&](const candidate& c) {
    return d.w.memory_bytes == 0 || bytes_for(c.geometry.bits) <= d.w.memory_bytes;
  };
  auto chosen = std::find_if(candidates.begin(), candidates.end(), [](const candidate& c) { return c.chosen; });
  layout_judgement why = chosen->why;
  if (!fits(*chosen)) {
    chosen = std::find_if(candidates.begin(), candidates.end(), fits);
    if (chosen == candidates.end()) {
      chosen = std::min_element(candidates.begin(), candidates.end(), [](const candidate& a, const candidate& b) {
        return a.geometry.bits < b.geometry.bits;
      });
    }
    why = chosen->why;
    why.ground = layout_ground::quickest_that_fits;
  }
  option o = of_params(d, take, all[static_cast<std::size_t>(chosen - candidates.begin())]);
  o.layout_why = std::move(why);
  return o;
}

option plain_option(const demand& d) {
  std::vector<params> all;
  std::optional<error> problem;
  for (const candidate& c : layout_candidates(d.most, d.w.rate, d.w.prefer)) {
    if (!c.possible()) {
      problem = c.problem;
      continue;
    }
    params p = params_of(d, c.layout, d.most);
    p.geometry = c.geometry;
    all.push_back(complete(std::move(p)));
  }
  if (all.empty()) throw error(*problem);
  return best_of(d, structure::plain, all);
}

option counting_option(const demand& d) {
  return of_params(d, structure::counting, complete(params_of(d, "counting", d.most)));
}

// The sizes of a quotient filter that grows, from the smallest one with room for the minimum number of keys on. While
// it doubles, the old and the new filter exist at the same time.
option growing_quotient_option(const demand& d) {
  option o = of_params(d, structure::quotient, complete(params_of(d, "quotient_growing", d.most)));
  o.doubles = true;
  o.worst_bits_per_key = 0;
  geometry now = o.parameters.geometry;
  std::uint64_t old = 0, fewest = d.fewest;
  for (const layout_row* row = find_layout(o.parameters.layout);; row = find_layout(row->slots->doubled_layout)) {
    const std::uint64_t room = row->slots->keys_for(now);
    const bool is_last = room >= d.most;
    if (is_last || room >= d.fewest) {
      const auto bits = static_cast<double>(old + now.bits);
      o.worst_bits_per_key = std::max(o.worst_bits_per_key, bits / static_cast<double>(fewest));
      o.bytes = bytes_for(old + now.bits);
      old = now.bits;
      fewest = room;
    }
    if (is_last) break;
    now.bits *= 2;
  }
  o.bits_per_key = static_cast<double>(now.bits) / static_cast<double>(d.most);
  return o;
}

option quotient_option(const demand& d) {
  option fixed = of_params(d, structure::quotient, complete(params_of(d, name_of(family::quotient), d.most)));
  if (!d.range()) return fixed;
  option growing = growing_quotient_option(d);
  const auto fits = [&](const option& o) { return d.w.memory_bytes == 0 || o.bytes <= d.w.memory_bytes; };
  if (fits(growing) && growing.worst_bits_per_key < fixed.worst_bits_per_key) return growing;
  return fixed;
}

params window_params(const demand& d, std::string_view layout) {
  params p = params_of(d, layout, d.most);
  p.extra = d.w.window;
  return complete(std::move(p));
}

option sliding_window_option(const demand& d) {
  return best_of(d, structure::sliding_window, {window_params(d, "sliding64"), window_params(d, "sliding")});
}

// The bits of the plain filter that would be taken instead.
std::uint64_t plain_bits(const demand& d) {
  try {
    return plain_option(d).parameters.geometry.bits;
  } catch (const error&) {  // no plain filter is possible
    return std::numeric_limits<std::uint64_t>::max();
  }
}

// A static filter of two lists: the smallest one that keeps the rate for other keys, which is that of fingerprints one
// bit longer. The second level has a bit for each key and for each expected false positive.
option two_lists_option(const demand& d, unsigned shortest) {
  constexpr double most_pairs = 0x1p60;  // of which one in 2^63 has equal hashes
  constexpr std::uint64_t most_keys = std::uint64_t{1} << 40;
  if (d.most > most_keys || static_cast<double>(d.most) * static_cast<double>(d.w.never_for) > most_pairs) {
    throw error(
        errc::too_large,
        {"the lists are so long that a key of one would have the same hash as a key of the other", "never_for",
         "at most 2^60 pairs of keys", keys_text(d.most) + " and " + keys_text(d.w.never_for), hint::use_fewer_keys});
  }
  const unsigned width = std::max(
      {1u, shortest - 1, cascade_builder::width_for(static_cast<double>(d.most), static_cast<double>(d.w.never_for))});
  const double reported = std::ldexp(static_cast<double>(d.w.never_for), -static_cast<int>(width));
  params p = params_of(d, cascade_layout_name(width), d.most);
  p.geometry = cascade_geometry(width, d.most);
  p.geometry.bits += ribbon_geometry(1, d.most + static_cast<std::uint64_t>(std::llround(reported))).bits -
                     ribbon_geometry(1, d.most).bits;
  p.target_fpr = 0;  // follows from the width
  return of_params(d, structure::static_set, complete(std::move(p)));
}

// The fastest first: fingerprints whose cells are whole integers, the shortest fingerprints, and these with the least
// memory.
option static_option(const demand& d) {
  const std::optional<unsigned> shortest = static_width_for(d.w.rate, d.most);
  if (!shortest) {
    throw error(errc::too_large, {"no fingerprint is long enough for this false-positive rate", "rate", "",
                                  rate_text(d.w.rate), hint::use_higher_rate});
  }
  if (d.w.never_for != 0) return two_lists_option(d, *shortest);
  std::vector<params> all;
  const auto add = [&](static_structure structure, unsigned width) {
    params p = params_of(d, static_layout_name(structure, width), d.most);
    p.geometry = static_geometry(structure, width, d.most);
    p.target_fpr = 0;  // follows from the width
    all.push_back(complete(std::move(p)));
  };
  if (!fuse::is_whole(*shortest)) add(static_structure::fuse, fuse::whole_width(*shortest));
  add(static_structure::fuse, *shortest);
  add(static_structure::ribbon, *shortest);
  // If one of them is smaller than a plain filter, those that are not are no choice.
  const auto is_larger = [plain = plain_bits(d)](const params& p) { return p.geometry.bits >= plain; };
  if (!std::all_of(all.begin(), all.end(), is_larger)) std::erase_if(all, is_larger);
  return best_of(d, structure::static_set, all);
}

// The layers of a scalable filter, computed on demand.
class layers {
 public:
  explicit layers(double rate) : rate_(rate) {}

  const scalable_layer& at(std::size_t i) {
    while (known_.size() <= i) {
      known_.push_back(scalable_layer_at(rate_, known_.size(), scalable_layers::usual_first_layer));
    }
    return known_[i];
  }

  std::uint64_t keys(std::size_t count) {
    return sum(count, [](const scalable_layer& l) { return l.capacity; });
  }
  std::uint64_t bits(std::size_t count) {
    return sum(count, [](const scalable_layer& l) { return l.geometry.bits; });
  }

  /// Number of layers for this number of keys.
  std::size_t count_for(std::uint64_t keys_in) {
    std::size_t count = 1;
    while (keys(count) < keys_in) ++count;
    return count;
  }

  /// Maximum over all numbers of keys from `fewest` to `most`; it occurs just after a growth or at `fewest`.
  double worst_bits_per_key(std::uint64_t fewest, std::uint64_t most) {
    double worst = 0;
    for (std::size_t count = count_for(fewest); count <= count_for(most); ++count) {
      const std::uint64_t in = std::max(fewest, count == 1 ? 1 : keys(count - 1) + 1);
      worst = std::max(worst, static_cast<double>(bits(count)) / static_cast<double>(in));
    }
    return worst;
  }

  /// Capacity of the layers that fit into this number of bytes.
  std::uint64_t keys_within(std::uint64_t bytes) {
    std::size_t count = 0;
    try {
      while (bytes_for(bits(count + 1)) <= bytes) ++count;
    } catch (const error& e) {
      if (e.code() != errc::too_large) throw;
    }
    return keys(count);
  }

 private:
  template <class Value>
  std::uint64_t sum(std::size_t count, Value value) {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < count; ++i) all += value(at(i));
    return all;
  }

  double rate_;
  std::vector<scalable_layer> known_ = {};
};

option scalable_option(const demand& d) {
  layers all(d.w.rate);
  option o;
  o.take = structure::scalable;
  o.for_keys = d.most;
  if (d.unbounded && d.w.keys == 0 && d.w.memory_bytes != 0) {
    o.for_keys = std::clamp<std::uint64_t>(all.keys_within(d.w.memory_bytes), 1, d.most);
  }
  const std::size_t count = all.count_for(o.for_keys);
  // If no number is known, start from a full first layer: for a single key, bits per key would be meaningless.
  const std::uint64_t fewest = d.fewest != 0 ? d.fewest : std::min(o.for_keys, all.keys(1));
  o.bits_per_key = static_cast<double>(all.bits(count)) / static_cast<double>(all.keys(count));
  // A filter that grows without limit will reach the next worst case.
  const bool limited = d.w.keys == 0 && d.w.memory_bytes != 0;
  const std::uint64_t most = d.unbounded && !limited ? std::max(assumed_keys, o.for_keys) : o.for_keys;
  o.worst_bits_per_key = all.worst_bits_per_key(fewest, std::max(fewest, most));
  o.bytes = bytes_for(all.bits(count));
  o.rate = scalable_fpr(d.w.rate, o.for_keys, scalable_layers::usual_first_layer);
  o.lines = static_cast<std::uint32_t>(count);
  params first = params_of(d, layouts::split_block512::name, all.at(0).capacity);
  first.geometry = all.at(0).geometry;
  first.target_fpr = all.at(0).share;
  o.parameters = complete(std::move(first));
  return o;
}

// The worst case is a rebuild, when the old and the new filter exist at the same time.
option rebuilding_option(const demand& d) {
  const auto made_for = [&](std::uint64_t keys) { return rebuilding_filter::completed(params_of(d, "", keys)); };
  const auto at = [&](std::uint64_t keys) {
    option o;
    o.take = structure::rebuilding;
    o.for_keys = keys;
    o.parameters = made_for(rebuilding_filter::grown_capacity(keys));
    const auto outgrown = static_cast<std::uint64_t>(static_cast<double>(keys) / rebuilding_filter::nearly_full);
    const std::uint64_t old = made_for(std::max<std::uint64_t>(outgrown, 1)).geometry.bits;
    const std::uint64_t now = o.parameters.geometry.bits;
    o.bits_per_key = static_cast<double>(now) / static_cast<double>(keys);
    o.worst_bits_per_key = static_cast<double>(now + old) / static_cast<double>(keys);
    o.bytes = bytes_for(now) + bytes_for(old);
    return o;
  };
  option o = at(d.most);
  if (d.unbounded && d.w.keys == 0 && d.w.memory_bytes != 0 && o.bytes > d.w.memory_bytes) {
    const double bits = 8 * static_cast<double>(d.w.memory_bytes);
    auto keys = std::max<std::uint64_t>(static_cast<std::uint64_t>(bits / o.worst_bits_per_key), 1);
    for (o = at(keys); o.bytes > d.w.memory_bytes && keys > 1; o = at(keys)) keys -= keys / 100 + 1;
  }
  if (d.fewest != 0 && d.fewest < o.for_keys)
    o.worst_bits_per_key = std::max(o.worst_bits_per_key, at(d.fewest).worst_bits_per_key);
  o.disk_bytes = 8 * o.for_keys;
  o.rate = expected_fpr(o.parameters, o.parameters.capacity);
  o.lines = lines_of(o.parameters);
  return o;
}

struct maker {
  structure take;
  option (*make)(const demand& d);
};

// In order of simplicity: if two structures take the same memory, the first is taken.
constexpr maker makers[] = {{structure::plain, plain_option},
                            {structure::static_set, static_option},
                            {structure::rebuilding, rebuilding_option},
                            {structure::scalable, scalable_option},
                            {structure::sliding_window, sliding_window_option},
                            {structure::counting, counting_option},
                            {structure::quotient, quotient_option}};

}  // namespace

double least_static_rate(const demand& d) { return static_rate(fuse::most_width, d.most); }

option sliding_window_option_of(const demand& d, std::string_view layout) {
  return of_params(d, structure::sliding_window, window_params(d, layout));
}

std::uint64_t scalable_keys_within(double rate, std::uint64_t bytes) { return layers(rate).keys_within(bytes); }

std::optional<ground> inability(structure take, const demand& d) {
  if (take == structure::sliding_window && !d.has_window()) return ground::forgets_keys;
  if (take != structure::sliding_window && d.has_window()) return ground::keeps_all_keys;
  const bool removes = take == structure::counting || take == structure::quotient;
  if (!removes && d.w.deletes) return ground::cannot_remove;
  if (take == structure::quotient && !d.w.deletes) return ground::refuses_keys;
  if (take == structure::static_set && !d.w.sealed) return ground::keys_come_later;
  if (take != structure::static_set && d.w.never_for != 0) return ground::reports_absent;
  if (take == structure::rebuilding && !d.w.log) return ground::needs_log;
  if (d.unbounded && take != structure::scalable && take != structure::rebuilding) return ground::needs_capacity;
  return std::nullopt;
}

std::vector<option> options_of(const demand& d) {
  std::vector<option> options;
  for (const maker& m : makers) {
    option o;
    o.take = m.take;
    if (const std::optional<ground> cannot = inability(m.take, d)) {
      o.why = *cannot;
    } else {
      try {
        o = m.make(d);
        o.lower_bound_bits_per_key =
            std::max(lower_bound_bits_per_key(o.rate), lower_bound_bits_per_key(d.most, d.w.never_for));
      } catch (const error& e) {
        if (e.code() != errc::too_large) throw;
        o.why = ground::cannot_keep_rate;
        o.problem = e;
      }
    }
    options.push_back(std::move(o));
  }
  return options;
}

}  // namespace bloomery
