// Lookups in a shared filter: commands for keys, and the evaluation of replies. insert.cpp has inserts and removals.
//
// Keys are sorted by shard. A group contains keys of one shard, and its last command reads the shard version. If it is
// the expected one, the shard has not changed in the meantime, and its newest layer was not evicted. Otherwise the
// header is read and the group is repeated. Older layers have no version: the bytes after their lines, which no client
// writes, show that they were not evicted. Layers with many lookups are copied (closed_layers.hpp).
#include "redis/filter/lookup.hpp"
#include "platform/machine.hpp"

#include <bloomery/error.hpp>
#include <bloomery/layouts/sliding.hpp>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bloomery {

using redis::make_distinct;
using redis::mode;
using redis::most_rounds;
using redis::numbers_up_to;
using redis::reply;
using redis::shard_view;
using redis::throw_restless;

namespace {

constexpr std::size_t look_up_keys = 256;         // keys per group
constexpr std::size_t look_up_bytes = 512 << 10;  // bytes of a group's replies, for filters with many layers
constexpr unsigned replica_rounds = 2;  // after these the master is used, because a replica may lag far behind
constexpr std::size_t end_bytes = 16;   // bytes after the lines of a layer

}  // namespace

[[noreturn]] void redis::throw_restless(const redis_address& address) {
  throw error(errc::unavailable, {"the filter kept changing during the call", address.text(), "",
                                  std::to_string(most_rounds) + " attempts", hint::try_again});
}

std::vector<std::uint32_t> redis::numbers_up_to(std::size_t count) {
  std::vector<std::uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::uint32_t{0});
  return numbers;
}

// Keys of a shard are adjacent and in their original order. So answers are the same as for keys processed one by one,
// and the assignment of keys to layers does not depend on their lines. If keys were sorted by hash, the first keys of a
// batch would fill the first lines of a layer.
redis_filter::impl::order redis_filter::impl::order_of(std::span<const std::uint64_t> hash64s,
                                                       std::span<const std::uint32_t> which) const {
  std::vector<std::uint64_t> sorted;
  sorted.reserve(which.size());
  for (const std::uint32_t i : which) sorted.push_back(shard_of(hash64s[i]) << 32 | i);
  std::sort(sorted.begin(), sorted.end());
  order keys;
  keys.reserve(which.size());
  for (const std::uint64_t both : sorted) {
    const auto i = static_cast<std::uint32_t>(both);
    keys.emplace_back(hash64s[i], i);
  }
  return keys;
}

// The keys of each shard, at most `most` per group.
std::vector<redis_filter::impl::key_group> redis_filter::impl::groups_of(const order& keys, std::size_t most) const {
  std::vector<key_group> groups;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint64_t shard = shard_of(keys[i].first);
    if (groups.empty() || groups.back().shard != shard || groups.back().count == most)
      groups.push_back({shard, i, 0, {}, {}});
    ++groups.back().count;
  }
  return groups;
}

std::uint64_t redis_filter::impl::line_of(const redis_layer& layer, std::uint64_t shard, std::uint64_t hash64) const {
  return multiply_high(hash64, description.shards() * layer.lines) - shard * layer.lines;
}

// The cells of a key, counted from the start of the layer in its shard. Valid until the next call.
std::span<const std::uint64_t> redis_filter::impl::cells_of(const redis_layer& layer, std::uint64_t shard,
                                                            std::uint64_t hash64) {
  cells_.resize(layer.probes);
  layout->cells(layer.whole(description.shards()), {hash64, 0}, cells_.data());
  const std::uint64_t before = shard * layer.lines * (512 / layout->cell_bits);
  for (std::uint64_t& cell : cells_) cell -= before;
  return cells_;
}

// The cells to be written: a counting filter increments each counter of a key once.
std::span<const std::uint64_t> redis_filter::impl::cells_to_write(const redis_layer& layer, std::uint64_t shard,
                                                                  std::uint64_t hash64) {
  cells_of(layer, shard, hash64);
  if (description.counts()) make_distinct(cells_);
  return cells_;
}

namespace {

// Whether all cells of a key are set in its line.
bool line_has(const std::uint8_t* bytes, std::span<const std::uint64_t> cells, std::uint32_t cell_bits) {
  for (const std::uint64_t cell : cells) {
    const std::uint64_t bit = cell * cell_bits % 512;
    const std::uint32_t mask = ((1u << cell_bits) - 1) << (bit & 7);
    if ((bytes[bit >> 3] & mask) == 0) return false;
  }
  return true;
}

const std::uint8_t* bytes_of(std::string_view text) { return reinterpret_cast<const std::uint8_t*>(text.data()); }

}  // namespace

// ---- look up --------------------------------------------------------------------------------------------------------

// Finds the copies among the first `upto` layers, and the keys of the group that they contain.
void redis_filter::impl::use_copies(key_group& g, const order& keys, std::size_t upto, std::int64_t now) {
  const shard_view& v = view(g.shard);
  g.sources.assign(upto, layer_source::none);
  g.known.assign(g.count, 0);
  for (std::size_t l = 0; l < upto; ++l) {
    if (!is_alive(v.numbers[l], now)) continue;
    g.sources[l] = layer_source::lines;
    const redis_layer& layer = v.layers[l];
    const auto copy = closed_layers_.find(g.shard, v.numbers[l]);
    if (copy.size() != layer.lines * cache_line_bytes) continue;
    g.sources[l] = layer_source::copy;
    for (std::size_t n = 0; n < g.count; ++n) {
      if (g.known[n] != 0) continue;
      const std::uint64_t hash64 = keys[g.first + n].first;
      const std::uint8_t* line = copy.data() + line_of(layer, g.shard, hash64) * cache_line_bytes;
      g.known[n] = line_has(line, cells_of(layer, g.shard, hash64), layout->cell_bits) ? 1 : 0;
    }
  }
}

// Adds commands that read the line of each key in the first `upto` layers, unless copies have the answer, and after
// them the end of each closed layer. If the end exists, the layer was complete, whatever clients that do not know of
// its eviction have written there since. For copied layers, only writers need to check that the layer exists.
void redis_filter::impl::add_look(key_group& g, const order& keys, std::size_t upto, std::int64_t now,
                                  redis::access how) {
  use_copies(g, keys, upto, now);
  const shard_view& v = view(g.shard);
  const auto wanted = static_cast<std::uint64_t>(std::count(g.known.begin(), g.known.end(), std::uint8_t{0}));
  std::string name;
  const auto add = [&](std::uint64_t from, std::uint64_t bytes) {
    commands.start(4);
    commands.word("GETRANGE");
    commands.word(name);
    commands.word(from);
    commands.word(from + bytes - 1);
  };
  for (std::size_t l = 0; l < upto; ++l) {
    if (g.sources[l] == layer_source::none) continue;
    name = redis::layer_key(description, g.shard, v, l);
    const std::uint64_t all = v.layers[l].lines * cache_line_bytes;
    const bool is_closed = l + 1 < v.layers.size();
    if (is_closed && g.sources[l] == layer_source::lines && how != redis::access::look_up_on_replica &&
        closed_layers_.is_worth_a_copy(g.shard, v.numbers[l], v.layers[l].lines, wanted)) {
      g.sources[l] = layer_source::whole;
      add(0, all + end_bytes);
    } else if (g.sources[l] == layer_source::lines) {
      for (std::size_t n = 0; n < g.count; ++n) {
        if (g.known[n] == 0)
          add(line_of(v.layers[l], g.shard, keys[g.first + n].first) * cache_line_bytes, cache_line_bytes);
      }
      if (is_closed) add(all, end_bytes);
    } else if (how == redis::access::write) {
      add(all, end_bytes);
    }
  }
}

// Evaluates the replies to add_look(): has[n] becomes 1 if one of the layers has key n of the group. `r` is advanced
// past these replies. @returns an incomplete layer, if there is one
std::optional<std::int64_t> redis_filter::impl::take_look(const key_group& g, const order& keys, std::size_t upto,
                                                          reply& r, std::uint8_t* has, redis::access how) {
  const shard_view& v = view(g.shard);
  std::optional<std::int64_t> hole;
  std::copy(g.known.begin(), g.known.end(), has);
  const auto look = [&](std::size_t l, std::size_t n, const std::uint8_t* line) {
    const std::uint64_t hash64 = keys[g.first + n].first;
    has[n] = line_has(line, cells_of(v.layers[l], g.shard, hash64), layout->cell_bits) ? 1 : 0;
  };
  for (std::size_t l = 0; l < upto; ++l) {
    const redis_layer& layer = v.layers[l];
    const bool is_closed = l + 1 < v.layers.size();
    const auto line_number = [&](std::size_t n) { return line_of(layer, g.shard, keys[g.first + n].first); };
    if (g.sources[l] == layer_source::lines) {
      for (std::size_t n = 0; n < g.count; ++n) {
        if (g.known[n] != 0) continue;
        const std::string_view line = r.text();
        r = r.next();
        if (line.size() != cache_line_bytes) {
          hole = v.numbers[l];
        } else if (has[n] == 0) {
          look(l, n, bytes_of(line));
          if (options.local_copy) keep_copy(g.shard, v.numbers[l], layer, line_number(n), line);
        }
      }
      if (!is_closed) continue;
    } else if (g.sources[l] == layer_source::whole) {
      const std::string_view all = r.text();
      r = r.next();
      if (all.size() != layer.lines * cache_line_bytes + end_bytes) {
        hole = v.numbers[l];
        continue;
      }
      for (std::size_t n = 0; n < g.count; ++n) {
        if (has[n] == 0) look(l, n, bytes_of(all) + line_number(n) * cache_line_bytes);
      }
      closed_layers_.keep(g.shard, v.numbers[l], all.substr(0, all.size() - end_bytes));
      continue;
    } else if (g.sources[l] == layer_source::none || how != redis::access::write) {
      continue;
    }
    if (r.text().size() != end_bytes) hole = v.numbers[l];
    r = r.next();
  }
  return hole;
}

// Whether copies were discarded, because a server behind a new connection may have lost keys that they contain. An
// insert must not report such a key as present.
bool redis_filter::impl::copies_are_old() {
  closed_layers_.give_up_unread();
  if (std::exchange(links_of_copies_, router.links()) == router.links()) return false;
  const bool had_some = !closed_layers_.empty();
  closed_layers_.clear();
  return had_some;
}

// During a repair, writers use the version in the shard's header, and the end of the newest layer only shows that it is
// the layer being refilled. For lookups the shard is lost: the two versions differ.
void redis_filter::impl::add_stamp(const key_group& g, redis::access how) {
  const shard_view& v = view(g.shard);
  commands.command({"GETRANGE", redis::layer_key(description, g.shard, v.newest()), "-16", "-1"});
  if (how == redis::access::write && !v.repairing.empty()) {
    commands.command({"HGET", redis::header_key(description, g.shard), "stamp"});
  }
}

std::string_view redis_filter::impl::take_stamp(const key_group& g, const reply& r, redis::access how) {
  const shard_view& v = view(g.shard);
  const bool is_refilled = how == redis::access::write && !v.repairing.empty() && r.text() == v.repairing;
  return is_refilled ? r.next().text() : r.text();
}

void redis_filter::impl::look_up(std::span<const std::uint64_t> hash64s, std::uint8_t* found) {
  if (options.local_copy) check_copy();
  look_up(hash64s, found, redis::access::look_up);
}

// An insert depends on the present state of this filter on the master. A copy does not show a replacement, a replica
// may lag behind, and a replacement may be given up.
void redis_filter::impl::look_up(std::span<const std::uint64_t> hash64s, std::uint8_t* found, redis::access how) {
  std::fill_n(found, hash64s.size(), std::uint8_t{0});
  std::vector<std::uint32_t> todo;
  for (std::uint32_t i = 0; i < hash64s.size(); ++i) {
    const std::uint64_t shard = shard_of(hash64s[i]);
    if (options.local_copy && how == redis::access::look_up && copy_has(shard, view(shard), hash64s[i])) {
      found[i] = 1;
    } else {
      todo.push_back(i);
    }
  }
  for (unsigned round = 0; !todo.empty(); ++round) {
    if (round == most_rounds) throw_restless(address);
    const bool of_replica =
        how == redis::access::look_up && options.connection.read_from_replicas && round < replica_rounds;
    const std::uint64_t epoch = description.epoch;
    todo = look_once(hash64s, todo, found, of_replica ? redis::access::look_up_on_replica : how);
    if (description.epoch == epoch) continue;
    // Keys absent from the filter before may be in the filter that replaced it.
    std::fill_n(found, hash64s.size(), std::uint8_t{0});
    todo = numbers_up_to(hash64s.size());
  }
  if (how == redis::access::look_up) look_into_next(hash64s, found);
}

// @returns the keys that must be looked up again
std::vector<std::uint32_t> redis_filter::impl::look_once(std::span<const std::uint64_t> hash64s,
                                                         std::span<const std::uint32_t> which, std::uint8_t* found,
                                                         redis::access how) {
  const bool of_replica = how == redis::access::look_up_on_replica;
  const bool of_master = how == redis::access::write || (!of_replica && options.connection.read_from_replicas);
  copies_are_old();
  const std::int64_t now = time_for_generations();
  const order keys = order_of(hash64s, which);
  std::size_t most_layers = 1;
  for (const auto& [hash64, i] : keys) most_layers = std::max(most_layers, view(shard_of(hash64)).layers.size());
  std::vector<key_group> groups =
      groups_of(keys, std::clamp<std::size_t>(look_up_bytes / (cache_line_bytes * most_layers), 1, look_up_keys));
  commands.clear();
  for (key_group& g : groups) {
    commands.begin(redis::slot_of(redis::header_key(description, g.shard)), of_master ? mode::write : mode::read);
    add_look(g, keys, view(g.shard).layers.size(), now, how);
    add_stamp(g, how);
  }
  std::vector<std::uint8_t> answers(hash64s.size()), has;
  std::vector<std::uint64_t> stale, lost_shards;
  hole_list holes;
  run(
      [&](std::size_t number, reply r) {
        const key_group& g = groups[number];
        const shard_view& v = view(g.shard);
        has.assign(g.count, 0);
        const auto hole = take_look(g, keys, v.layers.size(), r, has.data(), how);
        for (std::size_t n = 0; n < g.count; ++n) answers[keys[g.first + n].second] = has[n];
        // On a replica, a layer may have been added between the line and the version.
        if (take_stamp(g, r, how) != redis::text_of(v.stamp) || (hole && of_replica)) {
          stale.push_back(g.shard);
          return;
        }
        if (hole) holes.emplace_back(g.shard, *hole);
        for (std::size_t i = g.first; i < g.first + g.count; ++i) found[keys[i].second] = answers[keys[i].second];
      },
      "look up keys");
  if (copies_are_old()) return {which.begin(), which.end()};
  // Lost shards, for callers that accept "maybe" as an answer.
  std::vector<std::uint64_t>* const lost =
      how != redis::access::write && options.on_damage == redis_damage::maybe ? &lost_shards : nullptr;
  throw_holes(holes, lost);
  if (stale.empty() && lost_shards.empty()) return {};
  make_distinct(stale);
  std::vector<std::uint64_t> confirmed;
  const redis::access of = of_replica ? how : redis::access::look_up;
  if (!stale.empty() && explain_each(stale, of, confirmed, lost)) return {which.begin(), which.end()};
  make_distinct(lost_shards);
  std::vector<std::uint32_t> again;
  for (const std::uint32_t i : which) {
    const std::uint64_t shard = shard_of(hash64s[i]);
    if (std::binary_search(lost_shards.begin(), lost_shards.end(), shard)) {
      found[i] = 1;
    } else if (std::binary_search(confirmed.begin(), confirmed.end(), shard)) {
      // A sliding-window filter without recent inserts, whose newest generation has ended. The header was read after
      // the lines, and confirms this.
      found[i] = answers[i];
    } else if (std::binary_search(stale.begin(), stale.end(), shard)) {
      again.push_back(i);
    }
  }
  return again;
}

// During a replacement, clients that know of it insert into both filters, and later clients into the new one only. If
// this filter is still in place now, its bits, which were read before, included all keys.
void redis_filter::impl::look_into_next(std::span<const std::uint64_t> hash64s, std::uint8_t* found) {
  std::vector<std::uint32_t> doubtful;
  std::vector<std::uint64_t> some;
  for (std::uint32_t i = 0; i < hash64s.size(); ++i) {
    if (found[i] != 0 || view(shard_of(hash64s[i])).next.empty()) continue;
    doubtful.push_back(i);
    some.push_back(hash64s[i]);
  }
  if (doubtful.empty() || !turn_if_replaced()) return;
  std::vector<std::uint8_t> there(some.size());
  look_up(some, there.data(), redis::access::look_up);
  for (std::size_t i = 0; i < some.size(); ++i) found[doubtful[i]] = there[i];
}

// A generation may have expired since the commands were written; all other missing layers were evicted.
void redis_filter::impl::throw_holes(const hole_list& holes, std::vector<std::uint64_t>* lost) {
  for (const auto& [shard, layer] : holes) {
    if (may_be_over(layer)) continue;
    try {
      throw_gone(shard, redis::layer_key(description, shard, layer));
    } catch (const error& e) {
      if (lost == nullptr || e.code() != errc::damaged) throw;
      lost->push_back(shard);
    }
  }
}

// Calls explain_stale(). If a shard is lost and `lost` is not null, the shards are checked one after the other.
bool redis_filter::impl::explain_each(std::span<const std::uint64_t> stale, redis::access how,
                                      std::vector<std::uint64_t>& confirmed, std::vector<std::uint64_t>* lost) {
  std::vector<redis::stamp> before;
  for (const std::uint64_t shard : stale) before.push_back(view(shard).stamp);
  const auto explain = [&](std::span<const std::uint64_t> shards) {
    try {
      return std::optional(explain_stale(shards, how, &confirmed));
    } catch (const error& e) {
      if (lost == nullptr || e.code() != errc::damaged) throw;
    }
    return std::optional<bool>();
  };
  if (const auto other = explain(stale)) return *other;
  confirmed.clear();
  for (std::size_t i = 0; i < stale.size(); ++i) {
    if (view(stale[i]).stamp != before[i]) continue;  // it has changed and was read already
    const auto other = explain(stale.subspan(i, 1));
    if (!other) lost->push_back(stale[i]);
    if (other.value_or(false)) return true;
  }
  return false;
}

// ---- copies of lines ------------------------------------------------------------------------------------------------

// Bits are never cleared, so a bit that was seen set is still set while the filter is the same.
bool redis_filter::impl::copy_has(std::uint64_t shard, const shard_view& v, std::uint64_t hash64) {
  for (std::size_t l = 0; l < v.layers.size(); ++l) {
    const auto held = copy_.find({shard, v.numbers[l]});
    const redis_layer& layer = v.layers[l];
    if (held == copy_.end() || held->second.size() != layer.lines * cache_line_bytes) continue;
    if (description.has_window() && is_over(v.numbers[l])) continue;
    const std::uint64_t line = line_of(layer, shard, hash64);
    if (line_has(held->second.data() + line * cache_line_bytes, cells_of(layer, shard, hash64), 1)) return true;
  }
  return false;
}

void redis_filter::impl::keep_copy(std::uint64_t shard, std::int64_t number, const redis_layer& layer,
                                   std::uint64_t line, std::string_view bytes) {
  if (description.counts()) return;  // counters may decrease
  auto& held = copy_[{shard, number}];
  held.resize(static_cast<std::size_t>(layer.lines) * cache_line_bytes);
  for (std::size_t i = 0; i < cache_line_bytes; ++i) {
    held[static_cast<std::size_t>(line) * cache_line_bytes + i] |= static_cast<std::uint8_t>(bytes[i]);
  }
}

void redis_filter::impl::forget_copy(std::uint64_t shard) {
  std::erase_if(copy_, [&](const auto& layer) { return layer.first.first == shard; });
}

// Checks once per second whether the filter is still the same.
void redis_filter::impl::check_copy() {
  if (to_come) return;
  const auto now = std::chrono::steady_clock::now();
  if (copy_checked_ && now - *copy_checked_ < std::chrono::seconds(1)) return;
  redis::meta found = current_meta();
  if (found.epoch != description.epoch) turn_to(std::move(found));
  copy_checked_ = now;
}

}  // namespace bloomery
