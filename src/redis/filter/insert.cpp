// Inserts and removals: commands for keys, and the evaluation of replies. Read lookup.cpp first.
#include "filters/removal.hpp"
#include "redis/filter/lookup.hpp"
#include "redis/filter/scripts.hpp"

#include <bloomery/error.hpp>
#include <bloomery/layouts/sliding.hpp>

#include <algorithm>
#include <span>
#include <string>
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

constexpr std::size_t insert_keys = 128;
constexpr std::size_t remove_keys = 128;

}  // namespace

// ---- insert ---------------------------------------------------------------------------------------------------------

void redis_filter::impl::insert(std::span<const std::uint64_t> hash64s, std::uint8_t* is_new) {
  std::fill_n(is_new, hash64s.size(), std::uint8_t{0});
  // Present keys need not be written, so they cause no traffic to replicas and no entry in the append-only file.
  const bool look_first = description.grows() ||
                          (repeats_ > 0.5 && hash64s.size() > 1 && !description.counts() && !description.has_window());
  std::vector<std::uint32_t> todo;
  std::vector<std::uint32_t> doubly;    // keys that must also be inserted into the coming filter
  std::vector<std::uint32_t> doubtful;  // keys that were looked up in a shard under repair
  if (look_first) {
    std::vector<std::uint8_t> found(hash64s.size());
    std::uint64_t epoch = 0;
    for (unsigned round = 0; epoch != description.epoch; ++round) {  // again if the filter was replaced
      if (round == most_rounds) throw_restless(address);
      epoch = description.epoch;
      look_up(hash64s, found.data(), redis::access::write);
    }
    for (std::uint32_t i = 0; i < hash64s.size(); ++i) {
      if (found[i] == 0) {
        todo.push_back(i);
        if (!view(shard_of(hash64s[i])).repairing.empty()) doubtful.push_back(i);
      } else if (!view(shard_of(hash64s[i])).next.empty()) {
        doubly.push_back(i);
      }
    }
  } else {
    todo = numbers_up_to(hash64s.size());
  }
  if (description.grows()) {
    insert_growing(hash64s, std::move(todo), std::move(doubly), is_new);
  } else {
    insert_fixed(hash64s, std::move(todo), std::move(doubly), is_new);
  }
  for (const std::uint32_t i : doubtful) doubt_new(is_new[i]);
  const auto all_new = static_cast<double>(std::count(is_new, is_new + hash64s.size(), std::uint8_t{1}));
  repeats_ = (repeats_ + 1 - all_new / static_cast<double>(hash64s.size())) / 2;
}

// Number of older layers that a write looks up for is_new. In a filter that grows, they were looked up before.
std::size_t redis_filter::impl::older_layers(const shard_view& v) const {
  return description.has_window() ? v.layers.size() - 1 : 0;
}

// Adds the commands that write keys of a shard to its newest layer.
void redis_filter::impl::add_write(key_group& g, const order& keys, std::int64_t now) {
  const shard_view& v = view(g.shard);
  const std::string newest = redis::layer_key(description, g.shard, v.newest());
  commands.begin(redis::slot_of(newest), mode::write);
  add_look(g, keys, older_layers(v), now, redis::access::write);
  std::vector<std::uint64_t> all;
  all.reserve(g.count * v.layers.back().probes);
  for (std::size_t i = g.first; i < g.first + g.count; ++i) {
    const auto cells = cells_to_write(v.layers.back(), g.shard, keys[i].first);
    all.insert(all.end(), cells.begin(), cells.end());
  }
  const bool counts = description.counts();
  commands.start(2 + (counts ? 2 : 0) + 4 * all.size());
  commands.word("BITFIELD");
  commands.word(newest);
  if (counts) {
    commands.word("OVERFLOW");
    commands.word("SAT");
    std::string index;
    for (const std::uint64_t cell : all) {
      commands.word("INCRBY");
      commands.word("u4");
      index.assign("#").append(std::to_string(cell ^ 1));
      commands.word(index);
      commands.word("1");
    }
  } else {
    for (const std::uint64_t cell : all) {
      commands.word("SET");
      commands.word("u1");
      commands.word(cell ^ 7);
      commands.word("1");
    }
  }
  add_stamp(g, redis::access::write);
}

// A shard under repair lacks keys that were inserted before it was lost. The client that repairs it reports the keys
// that it has inserted again.
void redis_filter::impl::doubt_new(std::uint8_t& is_new) const {
  if (is_new == 1 && !is_repairing()) is_new = maybe_new;
}

// Whether a shard was lost and its repair begun since it looked like `before`. For a shard that this client sees for
// the first time: whether it is under repair.
bool redis_filter::impl::was_reset(const shard_view& now, const sight& before) {
  return before.is_known ? now.repaired != before.repaired : !now.repairing.empty();
}

redis_filter::impl::sight redis_filter::impl::sight_of(const shard_view& v) {
  return {v.known, v.repaired, v.newest()};
}

// Several versions of one shard: some bits were written where no layer was any more, others to a layer created since.
void redis_filter::impl::unexpected_stamps::add(std::uint64_t shard, std::string stamp) {
  const auto [held, is_first] = all_.try_emplace(shard, stamp);
  if (!is_first && held->second != stamp) held->second.clear();
}

std::vector<std::uint64_t> redis_filter::impl::unexpected_stamps::shards() const {
  std::vector<std::uint64_t> found;
  found.reserve(all_.size());
  for (const auto& [shard, stamp] : all_) found.push_back(shard);
  return found;
}

// If only the replacement mark of the shard has changed, the bits are in the right place.
bool redis_filter::impl::unexpected_stamps::is_in_place(const shard_view& now, const sight& before,
                                                        std::uint64_t shard) const {
  const auto found = all_.find(shard);
  return found == all_.end() || (found->second == redis::text_of(now.stamp) && before.newest == now.newest());
}

// Evaluates the replies to add_write(). is_new becomes 1 for keys that are certainly new. It becomes maybe_new for keys
// whose bits this group may have set itself when it was sent before, and for new keys in a shard under repair.
redis_filter::impl::written redis_filter::impl::take_write(std::size_t number, const key_group& g, const order& keys,
                                                           reply r, std::uint8_t* is_new) {
  const bool was_repeated = router.may_have_run_twice(number);
  const shard_view& v = view(g.shard);
  const redis_layer& layer = v.layers.back();
  const bool counts = description.counts();
  written result;
  std::vector<std::uint8_t> older(g.count);
  result.hole = take_look(g, keys, older_layers(v), r, older.data(), redis::access::write);
  std::size_t at = 0;
  for (std::size_t n = 0; n < g.count; ++n) {
    const auto& [hash64, i] = keys[g.first + n];
    const std::size_t cells = counts ? cells_to_write(layer, g.shard, hash64).size() : layer.probes;
    bool changed = false;
    for (std::size_t c = 0; c < cells && at < r.size(); ++c, ++at) {
      changed |= r[at].integer() == (counts ? 1 : 0);
    }
    if (older[n] != 0) continue;
    if (!changed) {
      if (was_repeated && is_new[i] == 0) is_new[i] = maybe_new;
      continue;
    }
    is_new[i] = 1;
    if (!v.repairing.empty()) doubt_new(is_new[i]);
    ++result.new_keys;
  }
  if (was_repeated) sent_twice += g.count;
  result.stamp = take_stamp(g, r.next(), redis::access::write);
  return result;
}

// A server behind a new connection may have lost keys that the copies contain.
void redis_filter::impl::doubt_copies(const key_group& g, const order& keys, std::uint8_t* is_new) {
  for (std::size_t n = 0; n < g.count; ++n) {
    std::uint8_t& answer = is_new[keys[g.first + n].second];
    if (g.known[n] != 0 && answer == 0) answer = maybe_new;
  }
}

void redis_filter::impl::note_doubts() {
  const std::uint64_t twice = std::exchange(sent_twice, 0);
  if (!description.counts() || !options.notes) return;
  if (twice > 0) {
    options.notes("a connection was lost: " + std::to_string(twice) +
                  " keys were sent again, and may be counted twice");
  }
  if (router.has_lost_answers()) {
    options.notes(
        "a connection was lost after it had inserted keys: if its server crashed, it may have lost "
        "them; a counting filter does not insert them again");
  }
}

// Also inserts keys of shards with a replacement mark into the coming filter. If that has replaced this one in the
// meantime, its answers count.
void redis_filter::impl::insert_doubly(std::span<const std::uint64_t> hash64s, std::span<const std::uint32_t> which,
                                       std::uint8_t* is_new) {
  if (which.empty()) return;
  std::vector<std::uint64_t> some;
  for (const std::uint32_t i : which) some.push_back(hash64s[i]);
  const std::uint64_t epoch = description.epoch;
  std::vector<std::uint8_t> answers(some.size());
  for (unsigned round = 0; impl* other = replacement(); ++round) {
    if (round == most_rounds) throw_restless(address);
    try {
      other->insert(some, answers.data());
      return;
    } catch (const redis::replacement_lost&) {
      // A coming filter that has lost a part must not replace this one, which is complete. The error is thrown in
      // fill().
      withdraw(redis::replacement_key(address.name), other->description.text());
    }
  }
  if (description.epoch != epoch) {
    insert(some, answers.data());
    for (std::size_t i = 0; i < some.size(); ++i) {
      std::uint8_t& answer = is_new[which[i]];
      // The insert above may have inserted the key before it failed.
      answer = answers[i] == 0 && answer != 0 ? maybe_new : answers[i];
    }
    return;
  }
  std::vector<std::uint64_t> shards;
  shards.reserve(some.size());
  for (const std::uint64_t hash64 : some) shards.push_back(shard_of(hash64));
  make_distinct(shards);
  unmark(shards);
}

// Begins the present generation in the shards of these keys. Returns as refresh().
bool redis_filter::impl::catch_up(const order& keys) {
  const std::int64_t generation = generation_now();
  // Twice: a new client knows the headers only after the first round.
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<std::uint64_t> behind;
    for (const auto& [hash64, i] : keys) {
      if (view(shard_of(hash64)).newest() < generation) behind.push_back(shard_of(hash64));
    }
    make_distinct(behind);
    if (behind.empty()) break;
    if (begin_generation(behind)) return true;
  }
  return false;
}

void redis_filter::impl::insert_fixed(std::span<const std::uint64_t> hash64s, std::vector<std::uint32_t> todo,
                                      std::vector<std::uint32_t> doubly, std::uint8_t* is_new) {
  for (unsigned round = 0; !todo.empty(); ++round) {
    if (round == most_rounds) throw_restless(address);
    const order keys = order_of(hash64s, todo);
    if (description.has_window() && catch_up(keys)) return insert(hash64s, is_new);
    const std::int64_t now = time_for_generations();
    copies_are_old();
    std::vector<key_group> groups = groups_of(keys, insert_keys);
    commands.clear();
    for (key_group& g : groups) add_write(g, keys, now);
    std::map<std::uint64_t, sight> written_to;
    for (const key_group& g : groups) written_to[g.shard] = sight_of(view(g.shard));
    unexpected_stamps stamps;
    hole_list holes;
    run(
        [&](std::size_t number, reply r) {
          const key_group& g = groups[number];
          const shard_view& v = view(g.shard);
          written w = take_write(number, g, keys, r, is_new);
          if (w.hole) holes.emplace_back(g.shard, *w.hole);
          if (w.stamp != redis::text_of(v.stamp)) stamps.add(g.shard, std::move(w.stamp));
        },
        "insert keys");
    if (copies_are_old()) {
      for (const key_group& g : groups) doubt_copies(g, keys, is_new);
    }
    // Repeats keys that were written already, because they were written to the filter before.
    if (!stamps.empty() && explain_stale(stamps.shards(), redis::access::write)) return insert(hash64s, is_new);
    throw_holes(holes);
    todo.clear();
    for (const auto& [hash64, i] : keys) {
      const std::uint64_t shard = shard_of(hash64);
      const shard_view& v = view(shard);
      const sight& before = written_to[shard];
      if (was_reset(v, before)) doubt_new(is_new[i]);
      if (!stamps.is_in_place(v, before, shard)) {
        todo.push_back(i);
      } else if (!v.next.empty()) {
        doubly.push_back(i);
      }
    }
    std::sort(todo.begin(), todo.end());
  }
  insert_doubly(hash64s, doubly, is_new);
}

// A server that came back with an older state may have lost the room that it granted. True: this client has no room
// left.
bool redis_filter::impl::forget_lost_room() {
  const std::uint64_t before = std::exchange(restarts_known_, router.possible_restarts());
  if (before == restarts_known_) return false;
  for (const auto& v : views) {
    if (v) v->reserved = 0;
  }
  return true;
}

// Reserves room again for keys that were written, because their server has lost the earlier reservation. Otherwise
// their layer would exceed its capacity.
void redis_filter::impl::reserve_again(const order& keys) {
  const std::vector<key_group> groups = groups_of(keys, keys.size());
  std::vector<std::uint64_t> full;
  reserve(groups, full);
  for (const key_group& g : groups) {
    std::uint64_t& reserved = views[static_cast<std::size_t>(g.shard)]->reserved;
    reserved -= std::min<std::uint64_t>(reserved, g.count);
  }
}

// Reserves room in the counts for the keys of each group, and some in advance. @param full  receives shards without
// enough room
// @returns shards that have changed since
std::vector<std::uint64_t> redis_filter::impl::reserve(std::span<const key_group> groups,
                                                       std::vector<std::uint64_t>& full) {
  commands.clear();
  std::vector<key_group> asking;
  for (const key_group& g : groups) {
    const shard_view& v = view(g.shard);
    if (v.reserved >= g.count) continue;
    const std::string header = redis::header_key(description, g.shard);
    const std::uint64_t in_advance = std::min<std::uint64_t>(v.capacity() / 256, 32);
    commands.begin(redis::slot_of(header), mode::write);
    commands.start_script(redis::scripts::reserve, 1, 3);
    commands.word(header);
    commands.word(redis::text_of(v.stamp));
    commands.word(std::max(g.count - v.reserved, in_advance));
    commands.word(v.capacity());
    asking.push_back(g);
  }
  std::vector<std::uint64_t> stale;
  if (commands.empty()) return stale;
  run(
      [&](std::size_t number, reply r) {
        const key_group& g = asking[number];
        if (r.integer() < 0) {
          stale.push_back(g.shard);
          return;
        }
        std::uint64_t& reserved = views[static_cast<std::size_t>(g.shard)]->reserved;
        reserved += static_cast<std::uint64_t>(r.integer());
        if (reserved < g.count) full.push_back(g.shard);
      },
      "insert keys");
  make_distinct(stale);
  return stale;
}

// Writes keys that have reserved room. @returns shards that have changed since
redis_filter::impl::unexpected_stamps redis_filter::impl::write_reserved(std::vector<key_group> groups,
                                                                         const order& keys, std::uint8_t* is_new) {
  const auto reserved = [&](const key_group& g) -> std::uint64_t& {
    return views[static_cast<std::size_t>(g.shard)]->reserved;
  };
  commands.clear();
  for (key_group& g : groups) {
    add_write(g, keys, 0);
    reserved(g) -= g.count;  // counts as used if no reply arrives
  }
  unexpected_stamps stamps;
  if (commands.empty()) return stamps;
  run(
      [&](std::size_t number, reply r) {
        const key_group& g = groups[number];
        written w = take_write(number, g, keys, r, is_new);
        if (w.stamp != redis::text_of(view(g.shard).stamp)) stamps.add(g.shard, std::move(w.stamp));
        // The room of keys that were already present remains for others, unless this group itself wrote them in an
        // earlier run.
        if (!router.may_have_run_twice(number)) reserved(g) += g.count - w.new_keys;
      },
      "insert keys");
  return stamps;
}

// Room in the count is reserved first, so layers never exceed their capacity, even with concurrent writers. If this
// client dies in between, the count is too high, and the shard grows slightly early.
void redis_filter::impl::insert_growing(std::span<const std::uint64_t> hash64s, std::vector<std::uint32_t> todo,
                                        std::vector<std::uint32_t> doubly, std::uint8_t* is_new) {
  for (unsigned round = 0; !todo.empty(); ++round) {
    if (round == most_rounds) throw_restless(address);
    // If a key occurs twice, the second occurrence is not new, whichever layer the first one goes to.
    std::sort(todo.begin(), todo.end(),
              [&](std::uint32_t a, std::uint32_t b) { return std::pair(hash64s[a], a) < std::pair(hash64s[b], b); });
    todo.erase(std::unique(todo.begin(), todo.end(), [&](auto a, auto b) { return hash64s[a] == hash64s[b]; }),
               todo.end());
    const order keys = order_of(hash64s, todo);
    const std::vector<key_group> groups = groups_of(keys, keys.size());

    forget_lost_room();
    std::vector<std::uint64_t> full;
    const std::vector<std::uint64_t> stale = reserve(groups, full);
    router.counters().description_changes += stale.size();
    if (!stale.empty() && refresh(stale)) return insert(hash64s, is_new);
    if (forget_lost_room()) continue;

    order roomy;  // keys with reserved room
    todo.clear();
    for (const key_group& g : groups) {
      const std::uint64_t room = view(g.shard).reserved;
      for (std::size_t n = 0; n < g.count; ++n) {
        const auto& key = keys[g.first + n];
        if (n < room) {
          roomy.push_back(key);
        } else {
          todo.push_back(key.second);
        }
      }
    }
    std::map<std::uint64_t, sight> written_to;
    for (const auto& [hash64, i] : roomy) written_to[shard_of(hash64)] = sight_of(view(shard_of(hash64)));
    const unexpected_stamps stamps = write_reserved(groups_of(roomy, insert_keys), roomy, is_new);
    if (forget_lost_room()) reserve_again(roomy);
    const std::vector<std::uint64_t> changed = stamps.shards();
    if (!changed.empty() && explain_stale(changed, redis::access::write)) return insert(hash64s, is_new);
    for (const auto& [hash64, i] : roomy) {
      const std::uint64_t shard = shard_of(hash64);
      const shard_view& v = view(shard);
      const sight& before = written_to[shard];
      const bool is_reset = was_reset(v, before);
      if (is_reset) doubt_new(is_new[i]);
      // Bits written to a layer that was closed in between are not in other clients' copies, and a layer that was lost
      // in between is gone: write the key again.
      if (is_reset || !stamps.is_in_place(v, before, shard)) todo.push_back(i);
      // Checked only now: a shard may have been marked while its keys were written.
      if (!v.next.empty()) doubly.push_back(i);
    }
    std::erase_if(full, [&](std::uint64_t s) { return std::binary_search(changed.begin(), changed.end(), s); });
    if (!full.empty() && grow(full)) return insert(hash64s, is_new);
    std::sort(todo.begin(), todo.end());
  }
  insert_doubly(hash64s, doubly, is_new);
}

// ---- remove ---------------------------------------------------------------------------------------------------------

void redis_filter::impl::throw_replaced_in_removal() const {
  throw error(errc::incompatible,
              {"the filter was replaced while keys were being removed", where(), "", "", hint::remove_from_new});
}

void redis_filter::impl::remove(std::span<const std::uint64_t> hash64s, removal* results) {
  if (!description.counts()) refuse_removal(description.parameters.filter, where());
  std::vector<std::uint32_t> todo = numbers_up_to(hash64s.size());
  for (unsigned round = 0; !todo.empty(); ++round) {
    if (round == most_rounds) throw_restless(address);
    const order keys = order_of(hash64s, todo);
    const std::vector<key_group> groups = groups_of(keys, remove_keys);
    commands.clear();
    for (const key_group& g : groups) {
      const shard_view& v = view(g.shard);
      std::vector<std::uint64_t> words;
      for (std::size_t i = g.first; i < g.first + g.count; ++i) {
        const auto cells = cells_to_write(v.layers.back(), g.shard, keys[i].first);
        words.push_back(cells.size());
        for (const std::uint64_t cell : cells) words.push_back(cell ^ 1);
      }
      const std::string header = redis::header_key(description, g.shard);
      commands.begin(redis::slot_of(header), mode::once);
      commands.start_script(redis::scripts::remove, 2, 1 + words.size());
      commands.word(header);
      commands.word(redis::layer_key(description, g.shard, v.newest()));
      commands.word(redis::text_of(v.stamp));
      for (const std::uint64_t w : words) commands.word(w);
    }
    std::vector<std::uint64_t> stale;
    run(
        [&](std::size_t number, reply r) {
          const key_group& g = groups[number];
          if (!r.is(redis::reply_type::array) || r.size() != g.count) {
            stale.push_back(g.shard);
            return;
          }
          for (std::size_t n = 0; n < g.count; ++n) {
            results[keys[g.first + n].second] = r[n].integer() == 1 ? removal::removed : removal::not_found;
          }
        },
        "remove keys");
    todo.clear();
    if (stale.empty()) break;
    make_distinct(stale);
    if (explain_stale(stale, redis::access::look_up)) {
      throw_replaced_in_removal();
    }
    for (const auto& [hash64, i] : keys) {
      if (std::binary_search(stale.begin(), stale.end(), shard_of(hash64))) todo.push_back(i);
    }
  }
}

}  // namespace bloomery
