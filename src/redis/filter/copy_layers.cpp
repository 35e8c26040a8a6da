// Copies of shared filters that grow or have a window: reads all layers of all shards (pull), and creates a filter from
// such a copy (push). copy_slices.cpp pushes slices.
#include "redis/filter/copy_slices.hpp"
#include "redis/filter/lifecycle.hpp"
#include "redis/filter/lookup.hpp"

#include <bloomery/detail/storage.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layered_filter.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>

namespace bloomery {

using redis::mode;
using redis::reply;
using redis::shard_view;

namespace {

constexpr std::uint64_t piece = 256 << 10;  // bytes of a string that are read by one command
constexpr std::size_t pieces = 64;          // in flight
constexpr std::size_t stamp_bytes = std::tuple_size_v<redis::stamp>;

// A part of the copy: the shard's layer that it is read from, and its bytes.
struct part {
  std::uint64_t shard;
  std::int64_t number;  // number of the layer in its shard, or of the generation
  std::size_t layer;    // index in the copy
  std::uint64_t from;   // byte offset
  std::uint64_t bytes;
};

// Distributes the key count of a shard over its layers: a layer was closed when it had its capacity of keys.
void count_keys(std::span<filter_layer> layers, std::uint64_t keys) {
  for (filter_layer& layer : layers) {
    layer.keys = &layer == &layers.back() ? keys : std::min(keys, layer.capacity);
    keys -= layer.keys;
  }
}

std::uint64_t number_in(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The parameters that determine the sizes of all layers of a filter that grows.
redis_params params_like(const layered_filter& from) {
  const layered_params& p = from.parameters();
  redis_params result;
  result.filter = p.filter;
  result.filter.geometry = {};
  result.growth = p.filter.has_window() ? redis_growth::none
                  : p.maximum == 0      ? redis_growth::unlimited
                                        : redis_growth::to_maximum;
  result.maximum = p.maximum;
  result.shards = p.shards;
  return result;
}

void check_layers(const layered_filter& from, const redis_plan& plan, const std::string& where) {
  std::vector<redis_layer> made = {plan.first};
  for (std::uint64_t s = 0; s < plan.shards; ++s) {
    for (std::size_t i = from.first_of(s); i < from.first_of(s + 1); ++i) {
      const std::size_t l = i - from.first_of(s);
      if (l == made.size())
        made.push_back(from.parameters().filter.has_window() ? plan.first : next_layer(plan.parameters, made));
      const filter_layer& layer = from.layers()[i];
      if (redis_layer{layer.geometry.bits / 512, layer.geometry.probes, layer.capacity} == made[l]) continue;
      throw error(errc::incompatible,
                  {"the size of a layer is not one that this version makes", where,
                   std::to_string(512 * made[l].lines) + " bits for " + std::to_string(made[l].capacity) + " keys",
                   std::to_string(layer.geometry.bits) + " bits for " + std::to_string(layer.capacity) + " keys",
                   hint::use_its_version});
    }
  }
}

}  // namespace

layered_filter redis_filter::impl::pull_layers(const std::string& metadata) {
  be_current();
  load_all_views();
  if (!description.grows() && !description.has_window()) {
    throw error(errc::incompatible, {"this filter has no layers to copy", where(), "a growing or sliding-window filter",
                                     "a filter of fixed size", "use pull() for a filter of fixed size"});
  }
  const redis::meta m = description;
  const auto copied_at = static_cast<std::uint64_t>(time_for_generations());
  std::vector<filter_layer> layers;
  std::vector<part> parts;
  std::vector<std::string> repaired;
  std::vector<std::vector<std::int64_t>> numbers;  // numbers of the present layers of each shard
  for (std::uint64_t s = 0; s < m.shards(); ++s) {
    const shard_view& v = view(s);
    repaired.push_back(v.repaired);
    numbers.push_back(v.numbers);
    for (std::size_t l = 0; l < v.layers.size(); ++l) {
      const std::uint64_t start = m.has_window() ? static_cast<std::uint64_t>(v.numbers[l]) * m.slice() : 0;
      layers.push_back({s, {512 * v.layers[l].lines, v.layers[l].probes}, v.layers[l].capacity, 0, start});
    }
  }
  if (m.has_window()) layers = redis::unexpired(layers, m.parameters.filter.window(), copied_at);

  // The counts are read before the bits. A layer that is closed in between has more keys than these counts show, which
  // were inserted during the call.
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(m.shards()));
  redis::each_part(m.grows() ? m.shards() : 0, [&](std::span<const std::uint64_t> shards) {
    commands.clear();
    for (const std::uint64_t s : shards) {
      const std::string header = redis::header_key(m, s);
      commands.begin(redis::slot_of(header), mode::write);
      commands.command({"HGET", header, "count"});
    }
    run(
        [&](std::size_t group, reply r) {
          if (r.is_nil()) return;
          const std::uint64_t counted = number_in(r.text());
          counts[static_cast<std::size_t>(shards[group])] = counted - std::min(counted, view(shards[group]).reserved);
        },
        "copy the filter");
  });
  layered_params p{.filter = m.parameters.filter,
                   .shards = m.shards(),
                   .is_shared = true,
                   .metadata = metadata,
                   .copied_at = copied_at};
  p.filter.secret = options.secret;
  if (m.parameters.growth == redis_growth::to_maximum) p.maximum = m.parameters.maximum;
  for (std::size_t i = 0; m.grows() && i < layers.size();) {
    std::size_t end = i;
    while (end < layers.size() && layers[end].shard == layers[i].shard) ++end;
    count_keys(std::span(layers).subspan(i, end - i), counts[static_cast<std::size_t>(layers[i].shard)]);
    i = end;
  }
  layered_filter copy(std::move(p), std::move(layers));
  const auto names_of = [&](const part& one) {
    std::vector<std::string> names = {redis::layer_key(m, one.shard, one.number)};
    if (m.renames_closed_layers()) names.push_back(redis::closed_layer_key(m, one.shard, one.number));
    return names;
  };
  const auto has_layer = [&](std::uint64_t shard, std::int64_t number) {
    const std::vector<std::int64_t>& of_shard = numbers[static_cast<std::size_t>(shard)];
    return std::find(of_shard.begin(), of_shard.end(), number) != of_shard.end();
  };

  // The bytes after a layer's lines show whether it is complete: the newest layer ends with the shard version, a closed
  // layer with zeros. The newest layer may be closed during the call. In a filter that grows, a closed layer has
  // another name; under its former name there may be bits of a client that does not know this yet.
  const std::string closed(stamp_bytes, '\0');
  unsigned rounds_in_vain = 0;
  std::uint64_t expired_by = 0;  // the latest expiry of slices that were missing
  const auto fetch = [&] {
    commands.clear();
    for (const part& one : parts) {
      commands.begin(redis::slot_of(redis::header_key(m, one.shard)), mode::write);
      const std::uint64_t of_layer = copy.layers()[one.layer].geometry.bits / 8;
      for (const std::string& name : names_of(one)) {
        commands.command({"GETRANGE", name, std::to_string(one.from), std::to_string(one.from + one.bytes - 1)});
        commands.command({"GETRANGE", name, std::to_string(of_layer), std::to_string(of_layer + stamp_bytes - 1)});
      }
    }
    std::vector<std::pair<part, redis::stamp>> absent;  // with the version of their shard
    run(
        [&](std::size_t i, reply r) {
          const part& one = parts[i];
          const shard_view& v = view(one.shard);
          const std::size_t names = m.renames_closed_layers() ? 2 : 1;
          for (std::size_t name = 0; name < names; ++name, r = r.next()) {
            const std::string_view found = r.text();
            r = r.next();
            const bool is_newest = name == 0 && one.number == v.newest() && r.text() == redis::text_of(v.stamp);
            const bool is_closed = name + 1 == names && r.text() == closed;
            if (found.size() != one.bytes || !(is_newest || is_closed)) continue;
            std::memcpy(copy.bytes_of(one.layer).data() + one.from, found.data(), found.size());
            return;
          }
          absent.emplace_back(one, v.stamp);
        },
        "copy the filter");
    const std::size_t asked = parts.size();
    std::vector<std::uint64_t> stale;
    std::erase_if(absent, [&](const auto& entry) {  // after the loop, because the server's clock may have to be read
      const part& one = entry.first;
      if (may_be_over(one.number)) {
        expired_by = std::max(expired_by, copy.expiry_of(one.layer));
        return true;
      }
      stale.push_back(one.shard);
      return one.number == view(one.shard).newest();
    });
    redis::make_distinct(stale);
    std::erase_if(parts, [&](const part& one) { return !std::binary_search(stale.begin(), stale.end(), one.shard); });
    if (!stale.empty() && explain_stale(stale, redis::access::look_up)) {
      throw error(errc::locked, {"the filter was replaced during the copy", where(), "", "", hint::pull_again});
    }
    rounds_in_vain = parts.size() == asked ? rounds_in_vain + 1 : 0;
    if (rounds_in_vain == redis::most_rounds) redis::throw_restless(address);
    for (const auto& [one, version] : absent) {
      if (view(one.shard).stamp != version) continue;  // the shard has changed since
      throw_gone(one.shard, redis::closed_layer_key(m, one.shard, one.number));
    }
  };
  for (std::size_t i = 0; i < copy.layers().size(); ++i) {
    const filter_layer& layer = copy.layers()[i];
    const std::uint64_t of_layer = layer.geometry.bits / 8;
    const auto number =
        static_cast<std::int64_t>(m.has_window() ? layer.start / m.slice() : i - copy.first_of(layer.shard));
    if (!has_layer(layer.shard, number)) continue;  // the empty slice of a shard whose slices have all expired
    for (std::uint64_t from = 0; from < of_layer; from += piece) {
      parts.push_back({layer.shard, number, i, from, std::min(piece, of_layer - from)});
      while (parts.size() == pieces) fetch();
    }
  }
  while (!parts.empty()) fetch();

  // A repair may reuse the number of a lost layer, and a window may lose a slice, so the copy could mix old and new
  // layers.
  load_all_views();
  for (std::uint64_t s = 0; s < m.shards(); ++s) {
    if (description.epoch == m.epoch && view(s).repaired == repaired[static_cast<std::size_t>(s)]) continue;
    throw error(errc::locked, {"the filter changed during the copy", where(), "", "", hint::pull_again});
  }
  return expired_by == 0 ? std::move(copy) : redis::as_of(copy, expired_by);
}

// Fills a filter that was just created. The count of a shard increases with its layers, so that other clients find the
// correct room.
void redis_filter::impl::push_layers(const layered_filter& from) {
  router.forget_answers();
  load_all_views();
  const std::uint64_t epoch = description.epoch;
  std::vector<std::uint64_t> todo;  // shards that have layer l
  for (std::size_t l = 0;; ++l) {
    todo.clear();
    for (std::uint64_t s = 0; s < description.shards(); ++s) {
      if (from.first_of(s) + l < from.first_of(s + 1)) todo.push_back(s);
    }
    if (todo.empty()) break;
    for (std::size_t first = 0; first < todo.size(); first += redis::together) {
      const auto some = std::span(todo).subspan(first, std::min(redis::together, todo.size() - first));
      if (l > 0 && grow(some)) throw_changed_in_push();
      for (const std::uint64_t s : some) {
        if (description.epoch != epoch || view(s).layers.size() != l + 1) throw_changed_in_push();
        merge_into_newest(s, from.bytes_of(from.first_of(s) + l));
      }
      commands.clear();
      for (const std::uint64_t s : some) {
        const std::string header = redis::header_key(description, s);
        commands.begin(redis::slot_of(header), mode::once);
        commands.command({"HINCRBY", header, "count", std::to_string(from.layers()[from.first_of(s) + l].keys)});
      }
      run([](std::size_t, reply) {}, "count the keys of the filter");
    }
  }
}

void redis_filter::impl::throw_changed_in_push() const {
  throw error(errc::locked, {"other clients changed the filter during its creation", where(), "", "", hint::try_again});
}

layered_filter redis_filter::pull_layers(const std::string& metadata) {
  return redis::begin_again([&] { return impl_->pull_layers(metadata); });
}

redis_filter redis_filter::create_from(const redis_address& address, const layered_filter& from,
                                       std::optional<std::chrono::milliseconds> expires_in, redis_options options,
                                       std::vector<std::uint64_t>* expired_slices) {
  if (!from.parameters().is_shared) {
    throw error(errc::incompatible, {"these are not layers of a shared filter", address.text(),
                                     "a copy of a growing or sliding-window shared filter", "a scalable filter", ""});
  }
  redis_params like = params_like(from);
  like.expires_in = expires_in;
  check_layers(from, plan_redis(like), address.text());
  if (like.filter.secret) options.secret = like.filter.secret;
  if (impl(address, options).read_meta()) {
    throw error(errc::already_exists, {"a filter of this name exists, and layers can only be copied to a new filter",
                                       address.text(), "", "", hint::choose_another_name});
  }
  redis_filter made = create(address, like, std::move(options));
  try {
    std::vector<std::uint64_t> expired;
    if (from.parameters().filter.has_window()) {
      expired = made.impl_->push_slices(from);
    } else {
      made.impl_->push_layers(from);
    }
    if (made.impl_->router.has_lost_answers()) {
      throw error(errc::unavailable, {"connections were lost during the creation of the filter, so bits may be missing",
                                      address.text(), "", "", hint::try_again});
    }
    if (expired_slices != nullptr) *expired_slices = std::move(expired);
  } catch (const error& e) {
    error_text text = e.text();
    text.hint = error_hint(hint::try_again, "drop the new filter, which may lack keys, and try again");
    throw error(e.code(), std::move(text));
  }
  return made;
}

}  // namespace bloomery
