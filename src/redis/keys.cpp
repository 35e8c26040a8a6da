// Look up, insert and remove: from keys to commands, and from replies to answers.
//
// Keys are sorted by their shard. A group is some keys of one shard; its last command reads the stamp. Is that the one
// expected, then the shard did not change meanwhile, and nothing was evicted. Else the header is read, and the group comes
// again.
#include "redis/body.hpp"
#include "redis/scripts.hpp"

#include <bloomery/error.hpp>
#include <bloomery/layouts/window.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <numeric>
#include <utility>

namespace bloomery {

using redis::mode;
using redis::reply;
using redis::shard_view;

namespace {

constexpr std::size_t part_keys = 16'384;  // that go through together
constexpr std::size_t look_up_keys = 256;  // of a group
constexpr std::size_t insert_keys = 128;
constexpr std::size_t remove_keys = 128;
constexpr std::size_t look_up_bytes = 512 << 10;  // of a group's replies, for filters of many layers
constexpr unsigned most_rounds = 64;              // a shard changes once in thousands of keys
constexpr unsigned replica_rounds = 2;            // then the master is asked: a replica may be far behind
constexpr std::size_t line_bytes = 64;

// Some keys of a shard, as they stand in the order.
struct group {
  std::uint64_t shard;
  std::size_t first;
  std::size_t count;
};

// Calls work(shard, first, count) for the keys of each shard, at most `most` at a time.
template <class Order, class ShardOf, class Work>
void each_group(const Order& keys, std::size_t most, ShardOf shard_of, Work work) {
  for (std::size_t first = 0; first < keys.size();) {
    const std::uint64_t shard = shard_of(keys[first].first);
    std::size_t end = first + 1;
    while (end < keys.size() && end - first < most && shard_of(keys[end].first) == shard) ++end;
    work(shard, first, end - first);
    first = end;
  }
}

void add_once(std::vector<std::uint64_t>& shards, std::uint64_t shard) {
  if (shards.empty() || shards.back() != shard) shards.push_back(shard);
}

void make_distinct(std::vector<std::uint64_t>& shards) {
  std::sort(shards.begin(), shards.end());
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
}

[[noreturn]] void throw_restless(const redis_address& address) {
  throw error(errc::unavailable, {"the filter changed all the time while it was used", address.text(), "",
                                  std::to_string(most_rounds) + " attempts", "try again"});
}

std::vector<std::uint32_t> numbers_up_to(std::size_t count) {
  std::vector<std::uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::uint32_t{0});
  return numbers;
}

}  // namespace

// Those of a shard together, in the order in which they came: answers are as if keys came one by one, and what goes to
// which layer has nothing to do with the lines that keys choose. Sorted by their hashes, the first keys of a batch would
// fill the first lines of a layer.
redis_filter::body::order redis_filter::body::order_of(std::span<const std::uint64_t> los,
                                                       std::span<const std::uint32_t> which) const {
  std::vector<std::uint64_t> sorted;
  sorted.reserve(which.size());
  for (const std::uint32_t i : which) sorted.push_back(shard_of(los[i]) << 32 | i);
  std::sort(sorted.begin(), sorted.end());
  order keys;
  keys.reserve(which.size());
  for (const std::uint64_t both : sorted) {
    const auto i = static_cast<std::uint32_t>(both);
    keys.emplace_back(los[i], i);
  }
  return keys;
}

// Cells of the shard's own layer.
void redis_filter::body::cells_of(const redis_layer& layer, std::uint64_t shard, std::uint64_t lo,
                                  std::uint64_t* out) const {
  const std::uint64_t cells_of_line = 512 / layout->cell_bits;
  layout->cells(layer.whole(description.shards()), {lo, 0}, out);
  const std::uint64_t before = shard * layer.lines * cells_of_line;
  for (std::uint32_t i = 0; i < layer.probes; ++i) out[i] -= before;
}

namespace {

// All cells of a key in its line.
bool line_has(std::string_view line, std::span<const std::uint64_t> cells, std::uint32_t cell_bits) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(line.data());
  for (const std::uint64_t cell : cells) {
    const std::uint64_t bit = cell * cell_bits % 512;
    const std::uint32_t mask = ((1u << cell_bits) - 1) << (bit & 7);
    if ((bytes[bit >> 3] & mask) == 0) return false;
  }
  return true;
}

}  // namespace

// ---- look up --------------------------------------------------------------------------------------------------------

void redis_filter::body::look_up(std::span<const std::uint64_t> los, std::uint8_t* found) {
  if (options.local_copy) check_copy();
  for (std::size_t first = 0; first < los.size(); first += part_keys) {
    look_up_part(los.subspan(first, std::min(part_keys, los.size() - first)), found + first, redis::access::look_up);
  }
}

// For an insert what counts is what the master has now: the copy does not hear of a replacement, and a replica may be
// behind.
void redis_filter::body::look_up_part(std::span<const std::uint64_t> los, std::uint8_t* found, redis::access how) {
  std::fill_n(found, los.size(), std::uint8_t{0});
  std::vector<std::uint32_t> todo;
  for (std::uint32_t i = 0; i < los.size(); ++i) {
    const std::uint64_t shard = shard_of(los[i]);
    if (options.local_copy && how == redis::access::look_up && copy_has(shard, view(shard), los[i])) {
      found[i] = 1;
    } else {
      todo.push_back(i);
    }
  }
  std::vector<group> groups;
  std::vector<std::uint8_t> answers(los.size());
  std::vector<std::uint64_t> stale;
  std::vector<std::uint64_t> confirmed;
  std::vector<std::string> names;
  for (unsigned round = 0; !todo.empty(); ++round) {
    if (round == most_rounds) throw_restless(address);
    const bool of_master = how == redis::access::write || round >= replica_rounds;
    const bool of_replica = !of_master && options.connection.read_from_replicas;
    const order keys = order_of(los, todo);
    groups.clear();
    commands.clear();
    stale.clear();
    // Before any command is written: asking for the time runs commands of its own.
    const std::int64_t now = description.windowed() ? server_now() : 0;
    const auto alive = [&](std::int64_t number) {
      return !description.windowed() || description.end_of_generation(number) > now;
    };
    std::size_t most_layers = 1;
    for (const auto& [lo, i] : keys) most_layers = std::max(most_layers, view(shard_of(lo)).layers.size());
    const std::size_t together = std::clamp<std::size_t>(look_up_bytes / (line_bytes * most_layers), 1, look_up_keys);
    const auto by_shard = [this](std::uint64_t lo) { return shard_of(lo); };
    each_group(keys, together, by_shard, [&](std::uint64_t shard, std::size_t first, std::size_t count) {
      const shard_view& v = view(shard);
      groups.push_back({shard, first, count});
      names.clear();
      for (const std::int64_t number : v.numbers) names.push_back(redis::layer_key(description, shard, number));
      commands.begin(redis::slot_of(names.back()), of_master ? mode::write : mode::read);
      for (std::size_t i = first; i < first + count; ++i) {
        for (std::size_t l = 0; l < v.layers.size(); ++l) {
          if (!alive(v.numbers[l])) continue;
          const std::uint64_t line =
              multiply_high(keys[i].first, description.shards() * v.layers[l].lines) - shard * v.layers[l].lines;
          commands.start(4);
          commands.word("GETRANGE");
          commands.word(names[l]);
          commands.word(line * line_bytes);
          commands.word(line * line_bytes + line_bytes - 1);
        }
      }
      commands.command({"GETRANGE", names.back(), "-16", "-1"});
    });
    std::vector<std::pair<std::uint64_t, std::int64_t>> holes;
    run(
        [&](std::size_t number, reply r) {
          const group& g = groups[number];
          const shard_view& v = view(g.shard);
          bool hole = false;
          std::int64_t hole_at = 0;
          for (std::size_t i = g.first; i < g.first + g.count; ++i) {
            bool has = false;
            for (std::size_t l = 0; l < v.layers.size(); ++l) {
              if (!alive(v.numbers[l])) continue;
              const std::string_view line = r.text();
              r = r.next();
              if (line.size() != line_bytes) {
                hole = true;
                hole_at = v.numbers[l];
                continue;
              }
              if (has) continue;
              const redis_layer& layer = v.layers[l];
              cells_.resize(layer.probes);
              cells_of(layer, g.shard, keys[i].first, cells_.data());
              has = line_has(line, cells_, layout->cell_bits);
              if (options.local_copy) {
                keep_copy(g.shard, v.numbers[l], layer, cells_[0] * layout->cell_bits / 512, line);
              }
            }
            answers[keys[i].second] = has ? 1 : 0;
          }
          // A replica may have got a layer between its line and its stamp.
          if (r.text() != redis::text_of(v.stamp) || (hole && of_replica)) {
            add_once(stale, g.shard);
            return;
          }
          if (hole) holes.emplace_back(g.shard, hole_at);
          for (std::size_t i = g.first; i < g.first + g.count; ++i) found[keys[i].second] = answers[keys[i].second];
        },
        "look keys up");
    throw_holes(holes);
    if (stale.empty()) break;
    make_distinct(stale);
    confirmed.clear();
    const bool other =
        explain_stale(stale, of_replica ? redis::access::look_up_on_replica : redis::access::look_up, &confirmed);
    todo.clear();
    for (const auto& [lo, i] : keys) {
      // Of a filter that forgets and was left alone so long that its newest generation is over: the header was read
      // after the lines, and says so.
      const std::uint64_t shard = shard_of(lo);
      if (!other && std::binary_search(confirmed.begin(), confirmed.end(), shard)) {
        found[i] = answers[i];
      } else if (other || std::binary_search(stale.begin(), stale.end(), shard)) {
        todo.push_back(i);
      }
    }
    std::sort(todo.begin(), todo.end());
  }
  // While the filter is being replaced, who knows that inserts into both, and who comes later into the new one alone.
  std::vector<std::uint32_t> doubtful;
  for (std::uint32_t i = 0; i < los.size(); ++i) {
    if (found[i] == 0 && !view(shard_of(los[i])).next.empty()) doubtful.push_back(i);
  }
  if (doubtful.empty()) return;
  const std::uint64_t epoch = description.epoch;
  body* other = replacement();
  if (other == nullptr && description.epoch == epoch) return;
  std::vector<std::uint64_t> some;
  for (const std::uint32_t i : doubtful) some.push_back(los[i]);
  std::vector<std::uint8_t> there(some.size());
  (other != nullptr ? other : this)->look_up_part(some, there.data(), how);
  for (std::size_t i = 0; i < some.size(); ++i) found[doubtful[i]] = there[i];
}

// A generation may have ended since the commands were written; all else that is not there was evicted.
void redis_filter::body::throw_holes(std::span<const std::pair<std::uint64_t, std::int64_t>> holes) {
  for (const auto& [shard, layer] : holes) {
    if (!may_be_over(layer)) throw_gone(shard, redis::layer_key(description, shard, layer));
  }
}

// ---- the copy here --------------------------------------------------------------------------------------------------

// Bits are only ever set, so what was seen set is set, as long as the filter is the same.
bool redis_filter::body::copy_has(std::uint64_t shard, const shard_view& v, std::uint64_t lo) {
  for (std::size_t l = 0; l < v.layers.size(); ++l) {
    const auto held = copy_.find({shard, v.numbers[l]});
    const redis_layer& layer = v.layers[l];
    if (held == copy_.end() || held->second.size() != layer.lines * line_bytes) continue;
    if (description.windowed() && is_over(v.numbers[l])) continue;
    cells_.resize(layer.probes);
    cells_of(layer, shard, lo, cells_.data());
    const std::uint64_t line = cells_[0] / 512;
    const std::string_view bytes(reinterpret_cast<const char*>(held->second.data()) + line * line_bytes, line_bytes);
    if (line_has(bytes, cells_, 1)) return true;
  }
  return false;
}

void redis_filter::body::keep_copy(std::uint64_t shard, std::int64_t number, const redis_layer& layer,
                                   std::uint64_t line, std::string_view bytes) {
  if (description.counts()) return;  // counters go down, too
  auto& held = copy_[{shard, number}];
  held.resize(static_cast<std::size_t>(layer.lines) * line_bytes);
  for (std::size_t i = 0; i < line_bytes; ++i) {
    held[static_cast<std::size_t>(line) * line_bytes + i] |= static_cast<std::uint8_t>(bytes[i]);
  }
}

// Once a second, whether it still is the same filter.
void redis_filter::body::check_copy() {
  const auto now = std::chrono::steady_clock::now();
  if (copy_checked_ && now - *copy_checked_ < std::chrono::seconds(1)) return;
  std::optional<redis::meta> found = read_meta();
  if (!found) throw error(errc::not_found, {"there is no such filter any more", where(), "", "", "build it again"});
  if (found->epoch != description.epoch) turn_to(*std::move(found));
  copy_checked_ = now;
}

// ---- insert ---------------------------------------------------------------------------------------------------------

void redis_filter::body::insert(std::span<const std::uint64_t> los, std::uint8_t* is_new) {
  for (std::size_t first = 0; first < los.size(); first += part_keys) {
    insert_part(los.subspan(first, std::min(part_keys, los.size() - first)), is_new + first);
  }
}

void redis_filter::body::insert_part(std::span<const std::uint64_t> los, std::uint8_t* is_new) {
  std::fill_n(is_new, los.size(), std::uint8_t{0});
  // What is there already need not be written; nor, then, go to replicas and into the server's log.
  const bool look_first =
      description.grows() || (repeats_ > 0.5 && los.size() > 1 && !description.counts() && !description.windowed());
  std::vector<std::uint32_t> todo;
  if (look_first) {
    const std::uint64_t epoch = description.epoch;
    std::vector<std::uint8_t> found(los.size());
    look_up_part(los, found.data(), redis::access::write);
    const bool replaced = description.epoch != epoch;  // what was found may have been found in the one before
    for (std::uint32_t i = 0; i < los.size(); ++i) {
      // Into what is to replace this one it has to go all the same.
      if (replaced || found[i] == 0 || !view(shard_of(los[i])).next.empty()) todo.push_back(i);
    }
  } else {
    todo = numbers_up_to(los.size());
  }
  if (description.grows()) {
    insert_growing(los, std::move(todo), is_new);
  } else {
    insert_fixed(los, std::move(todo), is_new);
  }
  const auto all_new = static_cast<double>(std::count(is_new, is_new + los.size(), std::uint8_t{1}));
  repeats_ = (repeats_ + 1 - all_new / static_cast<double>(los.size())) / 2;
}

// The commands that write some keys of a shard to its newest layer, and look into the older ones if that is wanted.
void redis_filter::body::add_write(std::uint64_t shard, const shard_view& v, const order& keys, std::size_t first,
                                   std::size_t count, bool with_older) {
  const std::string newest = redis::layer_key(description, shard, v.newest());
  commands.begin(redis::slot_of(newest), mode::write);
  if (with_older) {
    for (std::size_t l = 0; l + 1 < v.layers.size(); ++l) {
      const std::string name = redis::layer_key(description, shard, v.numbers[l]);
      for (std::size_t i = first; i < first + count; ++i) {
        cells_.resize(v.layers[l].probes);
        cells_of(v.layers[l], shard, keys[i].first, cells_.data());
        const std::uint64_t line = cells_[0] / 512;
        commands.start(4);
        commands.word("GETRANGE");
        commands.word(name);
        commands.word(line * line_bytes);
        commands.word(line * line_bytes + line_bytes - 1);
      }
    }
  }
  const redis_layer& layer = v.layers.back();
  std::vector<std::uint64_t>& cells = cells_;
  const bool counts = description.counts();
  std::vector<std::uint64_t> all;
  all.reserve(count * layer.probes);
  for (std::size_t i = first; i < first + count; ++i) {
    cells.resize(layer.probes);
    cells_of(layer, shard, keys[i].first, cells.data());
    if (counts) {  // a key's counters are a set
      std::sort(cells.begin(), cells.end());
      cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
    }
    all.insert(all.end(), cells.begin(), cells.end());
  }
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
  commands.command({"GETRANGE", newest, "-16", "-1"});
}

// False: the stamp was another, `seen`. is_new becomes 1 for the keys that were certainly new.
bool redis_filter::body::take_write(const shard_view& v, reply r, const order& keys, std::size_t begin,
                                    std::size_t count, bool with_older, std::uint8_t* is_new, std::uint64_t* new_keys,
                                    std::vector<std::pair<std::uint64_t, std::int64_t>>* holes) {
  std::vector<std::uint8_t> older(count);
  if (with_older) {
    for (std::size_t l = 0; l + 1 < v.layers.size(); ++l) {
      for (std::size_t i = 0; i < count; ++i, r = r.next()) {
        if (r.text().size() != line_bytes) {
          if (i == 0) holes->emplace_back(shard_of(keys[begin].first), v.numbers[l]);
          continue;
        }
        if (older[i] != 0) continue;
        cells_.resize(v.layers[l].probes);
        cells_of(v.layers[l], shard_of(keys[begin + i].first), keys[begin + i].first, cells_.data());
        older[i] = line_has(r.text(), cells_, layout->cell_bits) ? 1 : 0;
      }
    }
  }
  const redis_layer& layer = v.layers.back();
  const bool counts = description.counts();
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t cells = layer.probes;
    if (counts) {
      cells_.resize(layer.probes);
      cells_of(layer, shard_of(keys[begin + i].first), keys[begin + i].first, cells_.data());
      std::sort(cells_.begin(), cells_.end());
      cells = static_cast<std::size_t>(std::unique(cells_.begin(), cells_.end()) - cells_.begin());
    }
    bool changed = false;
    for (std::size_t c = 0; c < cells && at < r.size(); ++c, ++at) {
      changed |= r[at].integer() == (counts ? 1 : 0);
    }
    if (!changed || older[i] != 0) continue;
    is_new[keys[begin + i].second] = 1;
    ++*new_keys;
  }
  return r.next().text() == redis::text_of(v.stamp);
}

// Keys of shards that say that another filter is to take their place: into that one, too. If it has taken it meanwhile, its
// answers are those that count.
void redis_filter::body::insert_doubly(std::span<const std::uint64_t> los, std::span<const std::uint32_t> which,
                                       std::uint8_t* is_new) {
  if (which.empty()) return;
  std::vector<std::uint64_t> some;
  for (const std::uint32_t i : which) some.push_back(los[i]);
  const std::uint64_t epoch = description.epoch;
  std::vector<std::uint8_t> answers(some.size());
  if (body* other = replacement()) {
    other->insert(some, answers.data());
  } else if (description.epoch != epoch) {
    insert(some, answers.data());
    for (std::size_t i = 0; i < some.size(); ++i) is_new[which[i]] = answers[i];
  }
}

void redis_filter::body::insert_fixed(std::span<const std::uint64_t> los, std::vector<std::uint32_t> todo,
                                      std::uint8_t* is_new) {
  std::vector<group> groups;
  std::vector<std::uint64_t> stale;
  std::vector<std::uint32_t> doubly;
  const bool with_older = description.windowed();
  const auto by_shard = [this](std::uint64_t lo) { return shard_of(lo); };
  for (unsigned round = 0; !todo.empty(); ++round) {
    if (round == most_rounds) throw_restless(address);
    const order keys = order_of(los, todo);
    if (description.windowed()) {
      const std::int64_t generation = generation_now();
      // Twice: who has just come knows the headers only then.
      for (int turn = 0; turn < 2; ++turn) {
        std::vector<std::uint64_t> behind;
        for (const auto& [lo, i] : keys) {
          if (view(shard_of(lo)).newest() < generation) add_once(behind, shard_of(lo));
        }
        if (behind.empty()) break;
        if (begin_generation(behind)) {
          insert_part(los, is_new);
          return;
        }
      }
    }
    groups.clear();
    commands.clear();
    stale.clear();
    each_group(keys, insert_keys, by_shard, [&](std::uint64_t shard, std::size_t first, std::size_t count) {
      groups.push_back({shard, first, count});
      add_write(shard, view(shard), keys, first, count, with_older);
    });
    struct sight {
      std::string stamp;
      std::int64_t newest;  // the layer that was written
    };
    std::map<std::uint64_t, sight> seen;  // of stale shards
    std::vector<std::pair<std::uint64_t, std::int64_t>> holes;
    run(
        [&](std::size_t number, reply r) {
          const group& g = groups[number];
          std::uint64_t new_keys = 0;
          if (take_write(view(g.shard), r, keys, g.first, g.count, with_older, is_new, &new_keys, &holes)) return;
          stale.push_back(g.shard);
          reply last = r;
          for (std::uint32_t i = 1; i < commands.groups()[number].commands; ++i) last = last.next();
          seen[g.shard] = {std::string(last.text()), view(g.shard).newest()};
        },
        "insert keys");
    todo.clear();
    if (!stale.empty()) {
      make_distinct(stale);
      if (explain_stale(stale, redis::access::write)) {
        insert_part(los, is_new);  // also what was written already: that was into the one before
        return;
      }
      for (const auto& [lo, i] : keys) {
        const std::uint64_t shard = shard_of(lo);
        const auto found = seen.find(shard);
        if (found == seen.end()) continue;
        // If only the mark of the shard has changed, the bits are where they belong.
        const shard_view& v = view(shard);
        const bool in_place = found->second.stamp == redis::text_of(v.stamp) && found->second.newest == v.newest();
        if (!in_place) todo.push_back(i);
      }
      std::sort(todo.begin(), todo.end());
    }
    throw_holes(holes);
    for (const auto& [lo, i] : keys) {
      if (!view(shard_of(lo)).next.empty() && !std::binary_search(todo.begin(), todo.end(), i)) doubly.push_back(i);
    }
  }
  insert_doubly(los, doubly, is_new);
}

// Room in the count is taken first, so layers are never filled over their capacity, whoever writes at the same time. If
// this client dies in between, the count is too high, and the shard grows a little early.
void redis_filter::body::insert_growing(std::span<const std::uint64_t> los, std::vector<std::uint32_t> todo,
                                        std::uint8_t* is_new) {
  std::vector<group> groups;
  std::vector<std::uint32_t> doubly;
  const auto by_shard = [this](std::uint64_t lo) { return shard_of(lo); };
  for (unsigned round = 0; !todo.empty(); ++round) {
    if (round == most_rounds) throw_restless(address);
    // Of a key that comes twice the second copy is not new, whatever layer the first one goes to.
    std::sort(todo.begin(), todo.end(),
              [&](std::uint32_t a, std::uint32_t b) { return std::pair(los[a], a) < std::pair(los[b], b); });
    todo.erase(std::unique(todo.begin(), todo.end(), [&](auto a, auto b) { return los[a] == los[b]; }), todo.end());
    const order keys = order_of(los, todo);

    // Room.
    groups.clear();
    each_group(keys, keys.size(), by_shard, [&](std::uint64_t shard, std::size_t first, std::size_t count) {
      groups.push_back({shard, first, count});
    });
    commands.clear();
    std::vector<std::size_t> asking;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const shard_view& v = view(groups[g].shard);
      if (v.reserved >= groups[g].count) continue;
      const std::string header = redis::header_key(description, groups[g].shard);
      const std::uint64_t in_advance = std::min<std::uint64_t>(v.capacity() / 256, 32);
      commands.begin(redis::slot_of(header), mode::write);
      commands.start_script(redis::scripts::reserve, 1, 3);
      commands.word(header);
      commands.word(redis::text_of(v.stamp));
      commands.word(std::max(groups[g].count - v.reserved, in_advance));
      commands.word(v.capacity());
      asking.push_back(g);
    }
    std::vector<std::uint64_t> stale;
    std::vector<std::uint64_t> full;
    if (!commands.empty()) {
      run(
          [&](std::size_t number, reply r) {
            const group& g = groups[asking[number]];
            shard_view& v = *views[static_cast<std::size_t>(g.shard)];
            if (r.integer() < 0) {
              stale.push_back(g.shard);
              return;
            }
            v.reserved += static_cast<std::uint64_t>(r.integer());
            if (v.reserved < g.count) full.push_back(g.shard);
          },
          "insert keys");
    }
    if (!stale.empty()) {
      make_distinct(stale);
      if (refresh(stale)) {
        insert_part(los, is_new);
        return;
      }
    }

    // The keys there is room for.
    order written;
    std::vector<group> writes;
    todo.clear();
    for (const group& g : groups) {
      const bool is_stale = std::binary_search(stale.begin(), stale.end(), g.shard);
      const std::size_t room =
          is_stale ? 0 : static_cast<std::size_t>(std::min<std::uint64_t>(g.count, view(g.shard).reserved));
      for (std::size_t first = 0; first < room; first += insert_keys) {
        const std::size_t count = std::min(insert_keys, room - first);
        writes.push_back({g.shard, written.size(), count});
        const auto from = keys.begin() + static_cast<std::ptrdiff_t>(g.first + first);
        written.insert(written.end(), from, from + static_cast<std::ptrdiff_t>(count));
      }
      for (std::size_t i = g.first + room; i < g.first + g.count; ++i) todo.push_back(keys[i].second);
    }
    commands.clear();
    for (const group& w : writes) {
      add_write(w.shard, view(w.shard), written, w.first, w.count, false);
      views[static_cast<std::size_t>(w.shard)]->reserved -= w.count;  // used, if nothing is heard of it
    }
    std::vector<std::uint64_t> changed;
    if (!commands.empty()) {
      run(
          [&](std::size_t number, reply r) {
            const group& w = writes[number];
            shard_view& v = *views[static_cast<std::size_t>(w.shard)];
            std::uint64_t new_keys = 0;
            if (!take_write(v, r, written, w.first, w.count, false, is_new, &new_keys, nullptr)) {
              changed.push_back(w.shard);
            }
            // Of those that were there the room is kept for others; if it was not this very group that wrote them.
            if (!router.may_have_run_twice(number)) v.reserved += w.count - new_keys;
          },
          "insert keys");
    }
    if (!changed.empty()) {
      make_distinct(changed);
      if (explain_stale(changed, redis::access::write)) {
        insert_part(los, is_new);
        return;
      }
      // The layer was closed meanwhile: there its keys are found all the same.
    }
    // Only now: a shard may have been marked while its keys were written.
    for (const auto& [lo, i] : written) {
      if (!view(shard_of(lo)).next.empty()) doubly.push_back(i);
    }
    full.erase(
        std::remove_if(full.begin(), full.end(),
                       [&](std::uint64_t s) { return std::find(changed.begin(), changed.end(), s) != changed.end(); }),
        full.end());
    if (!full.empty() && grow(full)) {
      insert_part(los, is_new);
      return;
    }
    std::sort(todo.begin(), todo.end());
  }
  insert_doubly(los, doubly, is_new);
}

// ---- remove ---------------------------------------------------------------------------------------------------------

void redis_filter::body::remove(std::span<const std::uint64_t> los, removal* results) {
  if (!description.counts()) {
    throw error(errc::incompatible,
                {"keys cannot be removed from this filter: its bits belong to many keys at once", where(),
                 "layout counting", description.parameters.filter.layout, "make one with layout counting"});
  }
  for (std::size_t begin = 0; begin < los.size(); begin += part_keys) {
    const auto part = los.subspan(begin, std::min(part_keys, los.size() - begin));
    std::vector<std::uint32_t> todo = numbers_up_to(part.size());
    for (unsigned round = 0; !todo.empty(); ++round) {
      if (round == most_rounds) throw_restless(address);
      const order keys = order_of(part, todo);
      std::vector<group> groups;
      std::vector<std::uint64_t> stale;
      commands.clear();
      const auto by_shard = [this](std::uint64_t lo) { return shard_of(lo); };
      each_group(keys, remove_keys, by_shard, [&](std::uint64_t shard, std::size_t first, std::size_t count) {
        groups.push_back({shard, first, count});
        const shard_view& v = view(shard);
        const redis_layer& layer = v.layers.back();
        std::vector<std::uint64_t> words;
        for (std::size_t i = first; i < first + count; ++i) {
          cells_.resize(layer.probes);
          cells_of(layer, shard, keys[i].first, cells_.data());
          std::sort(cells_.begin(), cells_.end());
          cells_.erase(std::unique(cells_.begin(), cells_.end()), cells_.end());
          words.push_back(cells_.size());
          for (const std::uint64_t cell : cells_) words.push_back(cell ^ 1);
        }
        const std::string header = redis::header_key(description, shard);
        commands.begin(redis::slot_of(header), mode::once);
        commands.start_script(redis::scripts::remove, 2, 1 + words.size());
        commands.word(header);
        commands.word(redis::layer_key(description, shard, v.newest()));
        commands.word(redis::text_of(v.stamp));
        for (const std::uint64_t w : words) commands.word(w);
      });
      run(
          [&](std::size_t number, reply r) {
            const group& g = groups[number];
            if (!r.is(redis::reply_type::array) || r.size() != g.count) {
              stale.push_back(g.shard);
              return;
            }
            for (std::size_t i = 0; i < g.count; ++i) {
              results[begin + keys[g.first + i].second] = r[i].integer() == 1 ? removal::removed : removal::not_found;
            }
          },
          "remove keys");
      todo.clear();
      if (stale.empty()) break;
      make_distinct(stale);
      if (explain_stale(stale, redis::access::look_up)) {
        throw error(errc::incompatible, {"the filter was replaced while keys were removed from it", where(), "", "",
                                         "remove them from the new one, if they are in it"});
      }
      for (const auto& [lo, i] : keys) {
        if (std::binary_search(stale.begin(), stale.end(), shard_of(lo))) todo.push_back(i);
      }
    }
  }
}

}  // namespace bloomery
