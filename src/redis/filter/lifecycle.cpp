// Lifecycle of a shared filter: creating shards, growth, generations, replacement marks, and removal of keys on the
// server.
#include "redis/filter/lifecycle.hpp"
#include "redis/filter/scripts.hpp"

#include <bloomery/error.hpp>
#include <bloomery/layouts/sliding.hpp>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

namespace bloomery {

using redis::each_part;
using redis::mode;
using redis::reply;
using redis::shard_view;

namespace {

// Adds a group of one command on one key.
void put(redis::batch& commands, const std::string& key, std::initializer_list<std::string_view> words) {
  commands.begin(redis::slot_of(key), mode::write);
  commands.command(words);
}

}  // namespace

// ---- shards, layers and generations ---------------------------------------------------------------------------------

void redis_filter::impl::make_shards() {
  const redis::meta& m = description;
  const std::string epoch = std::to_string(m.epoch);
  const std::string layer = redis::text_of(m.first);
  const std::string number = std::to_string(m.first_generation);
  const std::string expiry = std::to_string(m.expires_at);
  const std::string end = std::to_string(m.has_window() ? m.end_of_generation(m.first_generation) : 0);
  each_part(m.shards(), [&](std::span<const std::uint64_t> shards) {
    commands.clear();
    for (const std::uint64_t s : shards) {
      const std::string header = redis::header_key(m, s);
      commands.begin(redis::slot_of(header), mode::write);
      commands.start_script(redis::scripts::create, 2, 7);
      commands.word(header);
      commands.word(redis::layer_key(m, s, m.first_generation));
      commands.word(epoch);
      commands.word(redis::text_of(redis::first_stamp(m.epoch, s)));
      commands.word(64 * m.first.lines);
      commands.word(layer);
      commands.word(number);
      commands.word(expiry);
      commands.word(end);
    }
    run([](std::size_t, reply) {}, "create the filter");
  });
}

// Shards of one filter grow alike, one after another. Planning a layer takes milliseconds, so the plan is cached.
const redis_layer& redis_filter::impl::next_layer_of(const shard_view& v) {
  std::vector<std::uint64_t> capacities;
  for (const redis_layer& layer : v.layers) capacities.push_back(layer.capacity);
  const auto found = next_layers_.find(capacities);
  if (found != next_layers_.end()) return found->second;
  try {
    return next_layers_[capacities] = next_layer(description.parameters, v.layers);
  } catch (const error& e) {
    error_text text = e.text();
    text.where = where();
    throw error(e.code(), text);
  }
}

bool redis_filter::impl::grow(std::span<const std::uint64_t> shards) {
  commands.clear();
  for (const std::uint64_t s : shards) {
    const shard_view& v = view(s);
    const auto number = static_cast<std::int64_t>(v.layers.size());
    const redis_layer& layer = next_layer_of(v);
    const std::string header = redis::header_key(description, s);
    const redis::stamp fresh = redis::new_stamp();
    commands.begin(redis::slot_of(header), mode::write);
    commands.start_script(redis::scripts::grow, 4, 6);
    commands.word(header);
    commands.word(redis::layer_key(description, s, v.newest()));
    commands.word(redis::layer_key(description, s, number));
    commands.word(redis::closed_layer_key(description, s, v.newest()));
    commands.word(redis::text_of(v.stamp));
    commands.word(redis::text_of(fresh));
    commands.word(64 * layer.lines);
    commands.word(redis::text_of(layer));
    commands.word(static_cast<std::uint64_t>(number));
    commands.word(std::uint64_t{router.possible_restarts() > 0});
  }
  run([&](std::size_t, reply r) { router.counters().growths += r.integer() == 1 ? 1 : 0; },
      "add a layer to the filter");
  return refresh(shards);
}

bool redis_filter::impl::begin_generation(std::span<const std::uint64_t> shards) {
  const std::int64_t generation = generation_now();
  commands.clear();
  for (const std::uint64_t s : shards) {
    const shard_view& v = view(s);
    const std::string header = redis::header_key(description, s);
    commands.begin(redis::slot_of(header), mode::write);
    commands.start_script(redis::scripts::rotate, 3, 8);
    commands.word(header);
    commands.word(redis::layer_key(description, s, v.newest()));
    commands.word(redis::layer_key(description, s, generation));
    commands.word(redis::text_of(v.stamp));
    commands.word(redis::text_of(redis::new_stamp()));
    commands.word(64 * description.first.lines);
    commands.word(static_cast<std::uint64_t>(generation));
    commands.word(description.slice());
    commands.word(std::uint64_t{window_generations});
    commands.word(static_cast<std::uint64_t>(description.end_of_generation(generation)));
    commands.word(std::uint64_t{router.possible_restarts() > 0});
  }
  run([](std::size_t, reply) {}, "begin a generation");
  return refresh(shards);
}

// Handles shards without a header whose newest layer ends with the first shard version. Every change of a header draws
// a new version, so the lost header was in its initial state, which follows from the description. @returns the other
// shards
std::vector<std::uint64_t> redis_filter::impl::rebuild_first_views(std::span<const std::uint64_t> shards) {
  std::vector<std::uint64_t> others;
  commands.clear();
  for (const std::uint64_t s : shards) {
    const std::string header = redis::header_key(description, s);
    commands.begin(redis::slot_of(header), mode::write);
    commands.command({"HGETALL", header});
    commands.command({"GETRANGE", redis::layer_key(description, s, description.first_generation), "-16", "-1"});
  }
  run(
      [&](std::size_t group, reply r) {
        const std::uint64_t s = shards[group];
        shard_view first = redis::first_view(description, s);
        if (r.size() != 0 || r.next().text() != redis::text_of(first.stamp)) return others.push_back(s);
        closed_layers_.retain(s, {});
        views[static_cast<std::size_t>(s)] = std::make_unique<shard_view>(std::move(first));
      },
      "read a shard's header");
  return others;
}

void redis_filter::impl::load_all_views() {
  const std::uint64_t epoch = description.epoch;
  each_part(description.shards(), [&](std::span<const std::uint64_t> shards) {
    if (description.epoch != epoch) return;
    try {
      if (refresh(shards)) return;
    } catch (const error& e) {
      // The count of a scalable filter is in the header alone.
      if (e.code() != errc::damaged || to_come || description.grows()) throw;
      const std::vector<std::uint64_t> others = rebuild_first_views(shards);
      if (others.size() == shards.size()) throw;
      if (!others.empty() && refresh(others)) return;
    }
    for (const std::uint64_t s : shards) {
      if (!view(s).repairing.empty()) throw_gone(s, "");
    }
  });
  if (description.epoch != epoch) load_all_views();
}

void redis_filter::impl::add_mark(std::uint64_t shard, const std::string& next_instance, const std::string& only) {
  const shard_view& v = view(shard);
  const std::string header = redis::header_key(description, shard);
  commands.begin(redis::slot_of(header), mode::write);
  commands.start_script(redis::scripts::mark, 2, 4);
  commands.word(header);
  commands.word(redis::layer_key(description, shard, v.newest()));
  commands.word(redis::text_of(v.stamp));
  commands.word(redis::text_of(redis::new_stamp()));
  commands.word(next_instance);
  commands.word(only);
}

// Sets the replacement mark with the instance of the coming filter. If `next_instance` is empty, removes the marks that
// name the instance `only`.
void redis_filter::impl::mark_all(const std::string& next_instance, const std::string& only) {
  const auto check = [&](bool other) {
    if (!other) return;
    throw error(errc::locked,
                {"another client replaced the filter at the same time", where(), "", "", hint::try_again});
  };
  each_part(description.shards(), [&](std::span<const std::uint64_t> part) {
    std::vector<std::uint64_t> todo(part.begin(), part.end());
    std::vector<std::uint64_t> there(part.begin(), part.end());
    while (!todo.empty()) {
      commands.clear();
      for (const std::uint64_t s : todo) add_mark(s, next_instance, only);
      std::vector<std::uint64_t> again, headless;
      run(
          [&](std::size_t group, reply r) {
            if (r.integer() == 0) again.push_back(todo[group]);
            // A lost shard does not prevent the replacement: calls on it report the loss.
            if (r.integer() < 0) headless.push_back(todo[group]);
          },
          "mark the filter");
      // Without a mark, no client would learn of the coming filter, so the rest of such a shard must not be taken for a
      // complete one. If a repair has just written the header, the shard is marked after all.
      const std::vector<std::uint64_t> found_again = unlink_headless(description, headless);
      for (const std::uint64_t s : headless) {
        if (std::find(found_again.begin(), found_again.end(), s) == found_again.end()) std::erase(there, s);
      }
      again.insert(again.end(), found_again.begin(), found_again.end());
      std::sort(again.begin(), again.end());
      if (!again.empty()) check(refresh(again));
      todo = std::move(again);
    }
    if (!there.empty()) check(refresh(there));
  });
}

// Removes replacement marks of shards although there is no replacement. A mark that was set since then has another
// version, and stays.
void redis_filter::impl::unmark(std::span<const std::uint64_t> shards) {
  commands.clear();
  for (const std::uint64_t s : shards) {
    if (!view(s).next.empty()) add_mark(s, "", "");
  }
  if (!commands.empty()) run([](std::size_t, reply) {}, "remove replacement marks");
}

// Removes all shards with all their layers.
void redis_filter::impl::unlink(const redis::meta& m) {
  each_part(m.shards(), [&](std::span<const std::uint64_t> shards) {
    // The headers list the layers. A shard without a header has been removed already, or has lost its header.
    std::vector<std::vector<std::string>> names(shards.size());
    std::vector<std::uint64_t> headless;
    commands.clear();
    for (const std::uint64_t s : shards) {
      const std::string header = redis::header_key(m, s);
      put(commands, header, {"HGETALL", header});
    }
    run(
        [&](std::size_t group, reply r) {
          if (r.size() == 0) headless.push_back(shards[group]);
          const auto v = redis::view_of(m, r, where());
          if (!v) return;
          names[group].push_back(redis::header_key(m, shards[group]));
          for (std::size_t l = 0; l < v->numbers.size(); ++l) {
            names[group].push_back(redis::layer_key(m, shards[group], *v, l));
          }
        },
        "remove the filter");
    commands.clear();
    for (const auto& all : names) {
      if (all.empty()) continue;
      commands.begin(redis::slot_of(all.front()), mode::write);
      commands.start(1 + all.size());
      commands.word("UNLINK");
      for (const std::string& name : all) commands.word(name);
    }
    if (!commands.empty()) run([](std::size_t, reply) {}, "remove the filter");
    // A shard may have got a layer since its header was read.
    unlink_headless(m, m.grows() ? shards : std::span<const std::uint64_t>(headless));
  });
}

// Removes the rest of shards that have no header: all layers that may exist.
std::vector<std::uint64_t> redis_filter::impl::unlink_headless(const redis::meta& m,
                                                               std::span<const std::uint64_t> shards) {
  std::vector<std::uint64_t> with_header;
  if (shards.empty()) return with_header;
  std::int64_t first = 0;
  auto count = static_cast<std::int64_t>(redis::most_layers);
  if (m.has_window()) {
    first = std::max<std::int64_t>(server_now() / static_cast<std::int64_t>(m.slice()) - window_generations, 0);
    count = window_generations + 2;  // and the next one, for servers whose clocks are ahead
  }
  commands.clear();
  for (const std::uint64_t s : shards) {
    const std::string header = redis::header_key(m, s);
    commands.begin(redis::slot_of(header), mode::write);
    commands.start_script(redis::scripts::unlink_headless, 1 + 2 * static_cast<std::size_t>(count), 0);
    commands.word(header);
    for (std::int64_t i = 0; i < count; ++i) {
      commands.word(redis::layer_key(m, s, first + i));
      commands.word(redis::closed_layer_key(m, s, first + i));
    }
  }
  run(
      [&](std::size_t group, reply r) {
        if (r.integer() == 0) with_header.push_back(shards[group]);
      },
      "remove the rest of lost shards");
  return with_header;
}

// ---- descriptions ---------------------------------------------------------------------------------------------------

void redis::start_on_all(batch& commands, const script& script, std::string_view name, const meta& expected,
                         std::size_t more_args) {
  const std::string key = meta_key(name);
  commands.clear();
  commands.begin(slot_of(key), mode::write);
  commands.start_script(script, 4, 1 + more_args);
  commands.word(key);
  commands.word(second_key(name));
  commands.word(replacement_key(name));
  commands.word(mark_key(expected.instance));
  commands.word(expected.epoch);
}

bool redis_filter::impl::withdraw(const std::string& key, const std::string& text) {
  bool done = false;
  commands.clear();
  commands.begin(redis::slot_of(key), mode::write);
  commands.start_script(redis::scripts::withdraw, 1, 1);
  commands.word(key);
  commands.word(text);
  run([&](std::size_t, reply r) { done = r.integer() == 1; }, "delete a description");
  return done;
}

// False: the description has changed; or it had not, and the reply was lost.
bool redis_filter::impl::exchange(const std::string& before, const std::string& after, const std::string& expiry) {
  const std::string key = redis::meta_key(address.name);
  bool done = false;
  commands.clear();
  commands.begin(redis::slot_of(key), mode::write);
  commands.start_script(redis::scripts::exchange, 2, 3);
  commands.word(key);
  commands.word(redis::second_key(address.name));
  commands.word(before);
  commands.word(after);
  commands.word(expiry);
  run([&](std::size_t, reply r) { done = r.integer() == 1; }, "write the description");
  return done;
}

}  // namespace bloomery
