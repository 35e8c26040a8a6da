// redis_plan: sizes of shards and layers that use the allocator's sizes completely, and their FPRs.
#include <bloomery/redis/plan.hpp>

#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/error.hpp>
#include <bloomery/sizing.hpp>

#include "platform/machine.hpp"
#include "redis/filter/meta.hpp"
#include "registry/tables.hpp"
#include "registry/windows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

constexpr std::uint64_t stamp_bytes = 16;
constexpr std::uint64_t string_overhead = 10;  // header of a string of more than 64 KiB, and its terminating zero
constexpr std::uint64_t key_overhead = 160;    // entry, name and object of a key, measured
constexpr std::uint64_t header_bytes = 420;    // a shard's hash with its entry, measured
constexpr std::uint64_t first_lines = 15;      // lines in 1 KiB: the smallest first layer of a scalable filter
constexpr std::uint64_t small_lines = 1023;    // lines in 64 KiB, with the shard version
constexpr std::uint64_t small_growth = 8;  // up to this size, a layer multiplies the keys of its shard by this number
constexpr std::uint64_t large_lines = 16'382;  // lines in 1 MiB, one less than fit
constexpr std::uint64_t usual_shards = 16;
constexpr std::uint64_t most_shards = std::uint64_t{1} << 24;
constexpr std::uint64_t most_string_bytes = std::uint64_t{512} << 20;

std::uint64_t divided_up(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// The number of lines that fits into the allocation for this many lines.
std::uint64_t rounded_lines(std::uint64_t lines) {
  return (allocated_bytes(cache_line_bytes * lines + stamp_bytes + string_overhead) - stamp_bytes - string_overhead) /
         cache_line_bytes;
}

// The largest number of lines up to this limit that uses an allocation completely.
std::uint64_t fitting_lines(std::uint64_t most) {
  std::uint64_t low = 1;
  while (rounded_lines(low + 1) <= most && rounded_lines(low + 1) > low) low = rounded_lines(low + 1);
  return low;
}

[[noreturn]] void refuse(std::string what, std::string expected, std::string found, error_hint to_do = {}) {
  throw error(errc::invalid_argument,
              {std::move(what), "shared filter", std::move(expected), std::move(found), std::move(to_do)});
}

const layout_row& row_of(const params& p) {
  const layout_row* row = find_layout(p.layout);
  if (row == nullptr || !row->may_be_shared) {
    refuse("this layout cannot be shared",
           "split_block512, blocked or counting, whose cells of a key are in one line of 64 bytes", p.layout);
  }
  return *row;
}

// Expected number of certainly new keys among `distinct` keys, which is what a layer counts.
std::uint64_t counted(const layout_row& row, const geometry& g, std::uint64_t distinct) {
  const auto rate = [&](std::uint64_t keys) { return row.expected_fpr(g, keys); };
  const auto lost = static_cast<std::uint64_t>(std::ceil(expected_losses(distinct, rate)));
  return std::max<std::uint64_t>(distinct - std::min(lost, distinct), 1);
}

// The maximum number of keys at which a layer of this size keeps an FPR.
std::uint64_t most_keys(const layout_row& row, const geometry& g, double rate) {
  std::uint64_t low = 1;
  std::uint64_t high = g.bits;
  while (low < high) {
    const std::uint64_t middle = high - (high - low) / 2;
    if (row.expected_fpr(g, middle) <= rate) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

enum class spare { unused, used };

// A layer of a shard for this number of keys. Spare bytes of the allocation hold more keys or lower the FPR.
redis_layer layer_for(const layout_row& row, std::uint64_t keys, double rate, spare room) {
  geometry least = row.geometry_for(keys, rate);
  if (room == spare::used) {
    while (least.bits < 512 * first_lines) least = row.geometry_for(keys += 1 + keys / 8, rate);
  }
  redis_layer layer{rounded_lines(least.bits / 512), least.probes, 0};
  if (layer.string_bytes() > most_string_bytes) {
    throw error(errc::too_large, {"a layer of the filter exceeds the maximum length of a string", "shared filter",
                                  "512 MiB", std::to_string(layer.string_bytes()) + " bytes", hint::use_more_shards});
  }
  const geometry g{512 * layer.lines, layer.probes};
  layer.capacity = counted(row, g, room == spare::used ? most_keys(row, g, rate) : keys);
  return layer;
}

// The number of keys in the fullest shards, for a filter with `keys` keys: all but one in 30,000 shards have fewer.
std::uint64_t keys_of_shard(std::uint64_t keys, std::uint64_t shards) {
  if (shards == 1) return keys;
  const double mean = static_cast<double>(keys) / static_cast<double>(shards);
  return static_cast<std::uint64_t>(std::ceil(mean + 4 * std::sqrt(mean)));
}

// The number of keys per shard at the maximum. In a filter with a single shard, no other shard compensates if fewer
// keys than expected are false positives.
std::uint64_t most_keys_of_shard(const redis_params& p) {
  const std::uint64_t keys = keys_of_shard(p.maximum, p.shards);
  if (p.shards > 1) return keys;
  return keys + static_cast<std::uint64_t>(std::ceil(4 * std::sqrt(static_cast<double>(keys) * p.filter.target_fpr)));
}

// Each layer counts up to one key less than expected, and later layers double this error.
constexpr std::uint64_t lost_by_rounding = 2;  // keys of the first layer

// Minimum capacity of a layer in a filter with a maximum: a smaller layer needs more memory for its name than for its
// bits.
constexpr std::uint64_t least_first_keys = 400;

// Each additional doubling costs memory: 14.1 bits per key at 1% for eleven layers, 13.5 for six. With this number, the
// first layer has a thirtieth of the maximum.
constexpr std::uint64_t most_doublings = 5;

// Number of doublings of a shard from its first layer to the maximum.
std::uint64_t doublings_of(const redis_params& p) {
  const std::uint64_t first = std::max(divided_up(p.filter.capacity, p.shards), least_first_keys);
  const std::uint64_t all = most_keys_of_shard(p);
  std::uint64_t count = 0;
  while (count < most_doublings && first <= all >> (count + 1)) ++count;
  return count;
}

// The target FPR of the next layer, which holds as many keys as all layers before it. With a maximum, the part of the
// target that earlier layers left is divided in proportion to the keys still to come. So the last layer gets about half
// of the total, plus the part that was saved by rounding up lines.
double share_of(const redis_params& p, const layout_row& row, std::span<const redis_layer> before) {
  const double rate = p.filter.target_fpr;
  if (p.growth == redis_growth::unlimited) return share_of_layer(rate, before.size());
  if (before.empty()) return rate * (1 - 0x1p-40) * std::exp2(-static_cast<double>(doublings_of(p)));
  double spent = 0;
  std::uint64_t keys = 0;
  for (const redis_layer& layer : before) {
    const geometry g{512 * layer.lines, layer.probes};
    const auto rate_at = [&](std::uint64_t n) { return row.expected_fpr(g, n); };
    spent += rate_at(estimate_distinct(layer.capacity, rate_at));
    keys += layer.capacity;
  }
  const std::uint64_t to_come = std::max(most_keys_of_shard(p), 2 * keys) - keys;
  return (rate * (1 - 0x1p-20) - spent) * static_cast<double>(keys) / static_cast<double>(to_come);
}

std::uint64_t memory_of(const redis_layer& layer) {
  return allocated_bytes(layer.string_bytes() + string_overhead) + key_overhead;
}

// Bytes of "SET u1 OFFSET 1" in a BITFIELD command in the wire protocol for each bit of a key, or of "INCRBY u4 #INDEX
// 1" for each counter.
double log_bytes_of(const layout_row& row, const redis_layer& layer) {
  const auto word = [](double characters) { return 6 + characters; };  // "$3\r\nSET\r\n"
  const double cells = 512 * static_cast<double>(layer.lines) / row.cell_bits;
  // Mean number of digits of the numbers 0 to cells - 1: 10^j of them have at most j digits.
  double digits = 1;
  for (double power = 10; power < cells; power *= 10) digits += 1 - power / cells;
  const bool counts = row.cell_bits > 1;
  const double cell = word(counts ? 6 : 3) + word(2) + word(digits + (counts ? 1 : 0)) + word(1);
  return static_cast<double>(layer.probes) * cell;
}

void check_params(const redis_params& p) {
  if (p.filter.capacity == 0) refuse("the capacity of a shared filter is missing", "at least 1", "0");
  if (!(p.filter.target_fpr > 0 && p.filter.target_fpr < 1)) {
    refuse("the target FPR is not a probability", "a number above 0 and below 1", std::to_string(p.filter.target_fpr));
  }
  if (!p.filter.scheme.empty()) refuse("schemes cannot be shared", "a layout", p.filter.scheme);
  const bool has_window = p.filter.has_window();
  if (has_window) check_window_length(p.filter.window());
  if (p.filter.window().keys() != 0) {
    refuse("a shared filter only supports windows of time", "a window of time", "a window of keys",
           hint::use_time_window);
  }
  if (p.shards > most_shards) refuse("too many shards", "at most 2^24", std::to_string(p.shards));
  if (p.growth == redis_growth::to_maximum && p.maximum < p.filter.capacity) {
    refuse("the maximum is below the capacity", "at least " + std::to_string(p.filter.capacity),
           std::to_string(p.maximum));
  }
  const bool counts = family_of(p.filter) == family::counting;
  if (p.growth != redis_growth::none && (counts || has_window)) {
    refuse("this filter cannot grow", "layout split_block512 or blocked, and no window",
           counts ? "layout counting" : "a window", hint::make_for_most_keys);
  }
  if (counts && has_window) {
    refuse("a filter cannot have both a window and removal", "layout split_block512 or blocked, with a window",
           "layout counting");
  }
}

// Number of shards of equal size for an existing filter with this number of lines: about as many as a new filter would
// have, and less than four times the minimum. If there is no such number, the number of lines has no useful divisor.
std::uint64_t shards_that_divide(std::uint64_t lines) {
  const std::uint64_t fewest = divided_up(lines, large_lines + 1);
  const std::uint64_t usual = std::max(fewest, lines > small_lines ? usual_shards : 1);
  for (const std::uint64_t from : {usual, fewest}) {
    for (std::uint64_t shards = from; shards <= std::min(most_shards, 4 * from); ++shards) {
      if (lines % shards == 0) return shards;
    }
  }
  refuse("the filter cannot be divided into shards of equal size",
         std::to_string(512 * divided_up(lines, fewest) * fewest) + " bits, the next number that is possible",
         std::to_string(512 * lines), hint::build_of_equal_shards);
}

}  // namespace

std::uint64_t allocated_bytes(std::uint64_t bytes) noexcept {
  if (bytes <= 16) return 16;
  if (bytes <= 128) return (bytes + 15) / 16 * 16;
  const std::uint64_t step = std::bit_ceil(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

redis_layer next_layer(const redis_params& complete, std::span<const redis_layer> before) {
  std::uint64_t keys = 0;
  for (const redis_layer& layer : before) keys += layer.capacity;
  if (before.size() >= redis::most_layers) {
    throw error(errc::too_large,
                {"the filter has reached its maximum number of layers", "shared filter", "at most 16 layers",
                 std::to_string(keys * complete.shards) + " keys", hint::replace_by_larger});
  }
  const bool limited = complete.growth == redis_growth::to_maximum;
  if (limited && before.size() > doublings_of(complete)) {
    throw error(errc::too_large,
                {"the filter is full", "shared filter", "at most " + std::to_string(complete.maximum) + " keys", "more",
                 hint::replace_by_larger});
  }
  const layout_row& row = row_of(complete.filter);
  const double rate = share_of(complete, row, before);
  if (limited) return layer_for(row, keys, rate, spare::unused);
  // Small layers cost more lookup time than they save memory.
  const redis_layer large = layer_for(row, keys * (small_growth - 1), rate, spare::used);
  return large.lines <= small_lines ? large : layer_for(row, keys, rate, spare::used);
}

redis_plan plan_redis(const redis_params& wanted) {
  redis_plan plan;
  redis_params& p = plan.parameters;
  p = wanted;
  if (p.filter.layout.empty()) p.filter.layout = "blocked";
  check_params(p);
  const layout_row& row = row_of(p.filter);
  const bool has_window = p.filter.has_window();
  const bool grows = p.growth != redis_growth::none;
  const std::uint64_t keys = p.filter.capacity;
  double rate = p.filter.target_fpr;
  // All keys may come in one slice of time, and as many others in the next window: fullest_generations(). The FPRs of
  // two full generations add up.
  if (has_window) rate /= 2;
  if (p.growth == redis_growth::unlimited) rate = share_of_layer(rate, 0);

  if (p.filter.geometry != geometry{} && !grows) {  // an existing filter
    row.check(p.filter.geometry);
    const std::uint64_t all = p.filter.geometry.bits / 512;
    if (p.shards == 0) p.shards = shards_that_divide(all);
    if (p.shards > all || all % p.shards != 0) {
      refuse("the shards do not divide the lines of the filter evenly",
             "a number of lines divisible by the number of shards",
             std::to_string(all) + " lines, " + std::to_string(p.shards) + " shards");
    }
    plan.first = {all / p.shards, p.filter.geometry.probes, 0};
  } else {
    // With a maximum, the last layer, with half the keys and half the target FPR, is most of the filter: it must fit.
    const bool limited = p.growth == redis_growth::to_maximum;
    const std::uint64_t last = limited ? usual_shards * keys_of_shard(p.maximum, usual_shards) / 2 : keys;
    const geometry whole = row.geometry_for(std::max<std::uint64_t>(last, 1), limited ? rate / 2 : rate);
    const std::uint64_t all = whole.bits / 512;
    if (p.shards == 0) {
      const std::uint64_t of_shard = divided_up(all, usual_shards);
      if (all <= small_lines && p.growth != redis_growth::unlimited) {
        p.shards = 1;
      } else if (limited) {
        p.shards = std::max(usual_shards, divided_up(all, std::min(fitting_lines(of_shard), large_lines)));
      } else {
        p.shards = std::max(usual_shards, divided_up(all, std::min(rounded_lines(of_shard), large_lines)));
      }
    }
    if (limited) {
      // Later layers double the capacity, so the first layer gets its fraction of the total.
      const std::uint64_t parts = std::uint64_t{1} << doublings_of(p);
      plan.first = layer_for(row, divided_up(most_keys_of_shard(p), parts) + lost_by_rounding, share_of(p, row, {}),
                             spare::unused);
    } else if (grows) {
      plan.first = layer_for(row, keys_of_shard(keys, p.shards), rate, spare::used);
    } else {
      const std::uint64_t lines = divided_up(all, p.shards);
      plan.first = {p.shards == 1 ? lines : rounded_lines(lines), whole.probes, 0};
    }
  }
  if (p.shards > most_shards || plan.first.string_bytes() > most_string_bytes) {
    throw error(errc::too_large, {"the filter is too large to be shared", "shared filter", "2^24 shards of 1 MiB",
                                  std::to_string(p.shards) + " shards", ""});
  }
  plan.shards = p.shards;
  plan.layers = has_window                             ? window_generations
                : p.growth == redis_growth::to_maximum ? doublings_of(p) + 1
                : grows                                ? redis::most_layers
                                                       : 1;
  p.filter.geometry = plan.first.whole(p.shards);
  params local = p.filter;
  local.extra = {};  // a generation is a plain filter
  local = complete(std::move(local));
  local.extra = p.filter.extra;
  p.filter = std::move(local);

  const std::uint64_t of_shard = memory_of(plan.first) + header_bytes;
  plan.server_keys = 2 * plan.shards + 2;
  plan.memory_bytes = plan.shards * of_shard + header_bytes;
  plan.full_memory_bytes = plan.memory_bytes;
  if (has_window) plan.full_memory_bytes += plan.shards * (window_generations - 1) * memory_of(plan.first);
  plan.log_bytes_per_key = log_bytes_of(row, plan.first);
  if (p.growth == redis_growth::to_maximum) {
    std::vector<redis_layer> layers = {plan.first};
    while (layers.size() < plan.layers) {
      layers.push_back(next_layer(p, layers));
      plan.full_memory_bytes += plan.shards * memory_of(layers.back());
    }
  }
  return plan;
}

}  // namespace bloomery
