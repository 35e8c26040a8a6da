// Pushing the slices of a copy to a new filter with a window, each under its own number, so that it expires when the
// original slice does. Before, only the present slice exists there, and only another client's insert may begin a
// further slice.
#include "redis/filter/copy_slices.hpp"

#include "redis/filter/lifecycle.hpp"
#include "redis/filter/lookup.hpp"
#include "redis/filter/scripts.hpp"

#include <bloomery/error.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace bloomery {

using redis::mode;
using redis::reply;
using redis::shard_view;

namespace {

constexpr std::uint64_t bytes_at_once = 16 << 20;  // size of the slices in one exchange, which has at least one slice

std::vector<std::int64_t> with(std::vector<std::int64_t> numbers, std::int64_t number) {
  const auto at = std::lower_bound(numbers.begin(), numbers.end(), number);
  if (at == numbers.end() || *at != number) numbers.insert(at, number);
  return numbers;
}

}  // namespace

std::vector<filter_layer> redis::unexpired(std::span<const filter_layer> slices, const window_length& window,
                                           std::uint64_t now) {
  std::vector<filter_layer> result;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const filter_layer& slice = slices[i];
    const bool is_last = i + 1 == slices.size() || slices[i + 1].shard != slice.shard;
    if (expiry_of_slice(window, slice.start) > now) {
      result.push_back(slice);
    } else if (is_last) {  // it is the newest: all others of its shard have expired, too
      result.push_back(slice);
      result.back().start = now - now % window.slice_length();
    }
  }
  return result;
}

layered_filter redis::as_of(const layered_filter& copy, std::uint64_t now) {
  layered_params p = copy.parameters();
  p.copied_at = std::max(p.copied_at, now);
  layered_filter result(p, unexpired(copy.layers(), p.filter.window(), p.copied_at));
  std::size_t to = 0;
  for (std::size_t i = 0; i < copy.layers().size(); ++i) {
    while (to < result.layers().size() && result.layers()[to].shard < copy.layers()[i].shard) ++to;
    if (to == result.layers().size() || result.layers()[to] != copy.layers()[i]) continue;
    std::ranges::copy(copy.bytes_of(i), result.bytes_of(to++).begin());
  }
  return result;
}

std::vector<std::uint64_t> redis_filter::impl::push_slices(const layered_filter& from) {
  router.forget_answers();
  load_all_views();
  const std::uint64_t epoch = description.epoch;
  const auto now = static_cast<std::uint64_t>(server_now());
  std::vector<std::uint64_t> expired;
  std::vector<std::size_t> todo;
  // One slice of each shard per exchange, because a script on a shard needs the version written by the script before.
  bool is_over = false;
  for (std::size_t l = 0; !std::exchange(is_over, true); ++l) {
    std::uint64_t bytes = 0;
    const auto put = [&] {
      if (!todo.empty()) add_slices(from, todo);
      todo.clear();
      bytes = 0;
    };
    for (std::uint64_t s = 0; s < from.parameters().shards; ++s) {
      const std::size_t i = from.first_of(s) + l;
      if (i >= from.first_of(s + 1)) continue;
      is_over = false;
      if (from.layers()[i].start > now + 8 * description.slice()) {  // its keys would never expire
        throw error(errc::incompatible,
                    {"by the server's clock, a slice of the copy begins more than a window in the future", where(),
                     "at most " + std::to_string(now + 8 * description.slice()) + " ms since 1970",
                     std::to_string(from.layers()[i].start), "compare the clocks of the servers"});
      }
      if (from.expiry_of(i) <= now) {
        expired.push_back(from.layers()[i].start);
        continue;
      }
      if (bytes + from.bytes_of(i).size() > bytes_at_once) put();
      todo.push_back(i);
      bytes += from.bytes_of(i).size();
    }
    put();
  }
  if (description.epoch != epoch) throw_changed_in_push();
  redis::make_distinct(expired);
  return expired;
}

// The slices must belong to different shards.
void redis_filter::impl::add_slices(const layered_filter& from, std::span<const std::size_t> layers) {
  struct step {
    std::size_t layer;
    std::vector<std::int64_t> before = {}, after = {};  // numbers of the slices in its shard
    redis::stamp stamp = {};                            // shard version after the slice has been added
    bool is_done = false;
  };
  std::vector<step> todo;
  for (const std::size_t layer : layers) todo.push_back({layer});
  for (unsigned round = 0; !todo.empty(); ++round) {
    if (round == redis::most_rounds) redis::throw_restless(address);
    std::vector<std::uint64_t> shards;
    commands.clear();
    for (step& one : todo) {
      const filter_layer& layer = from.layers()[one.layer];
      const auto number = static_cast<std::int64_t>(layer.start / description.slice());
      const shard_view& v = view(layer.shard);
      one.before = v.numbers;
      one.after = with(v.numbers, number);
      one.stamp = redis::new_stamp();
      shards.push_back(layer.shard);
      const std::string header = redis::header_key(description, layer.shard);
      const std::string name = redis::layer_key(description, layer.shard, number);
      const std::span<const std::uint8_t> bits = from.bytes_of(one.layer);
      commands.begin(redis::slot_of(header), mode::write);
      commands.start_script(redis::scripts::add_slice, 4, 6);
      commands.word(header);
      commands.word(redis::layer_key(description, layer.shard, v.newest()));
      commands.word(name);
      commands.word(name + ":merge");
      commands.word(redis::text_of(v.stamp));
      commands.word(redis::text_of(one.stamp));
      commands.word(std::string_view(reinterpret_cast<const char*>(bits.data()), bits.size()));
      commands.word(from.expiry_of(one.layer));
      commands.word(redis::text_of(one.after));
      commands.word(number > v.newest() ? "1" : "0");
    }
    run([&](std::size_t i, reply r) { todo[i].is_done = r.integer() == 1; }, "write slices to the filter");
    const std::uint64_t epoch = description.epoch;
    if (refresh(shards) || description.epoch != epoch) throw_changed_in_push();
    std::erase_if(todo, [&](const step& one) {
      const shard_view& v = view(from.layers()[one.layer].shard);
      if (!v.next.empty() || !v.repairing.empty()) throw_changed_in_push();
      // The script has run before, and its reply was lost. Another client may have begun the same slice.
      const bool is_there = one.is_done || (one.before != one.after && v.stamp == one.stamp);
      if (v.numbers == one.after && is_there) return true;
      if (v.numbers != one.before) throw_changed_in_push();
      return false;
    });
  }
}

}  // namespace bloomery
