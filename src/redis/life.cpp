// How a shared filter comes to be, grows, turns to its next generation, is replaced, and goes.
#include "redis/body.hpp"
#include "redis/scripts.hpp"

#include <bloomery/error.hpp>
#include <bloomery/layouts/window.hpp>

#include <algorithm>
#include <random>
#include <utility>

namespace bloomery {

using redis::mode;
using redis::reply;
using redis::shard_view;

namespace {

constexpr std::size_t together = 4096;    // shards whose commands are one batch
constexpr std::int64_t most_layers = 16;  // of a shard that grows

std::uint64_t new_epoch() {
  std::random_device random;
  for (;;) {
    const std::uint64_t epoch = std::uint64_t{random()} << 32 | random();
    if (epoch != 0) return epoch;
  }
}

std::string hexadecimal(std::uint64_t value) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += digits[value >> shift & 15];
  return text;
}

template <class Work>
void each_part(std::uint64_t shards, Work work) {
  std::vector<std::uint64_t> part;
  for (std::uint64_t first = 0; first < shards; first += together) {
    part.clear();
    for (std::uint64_t s = first; s < std::min<std::uint64_t>(shards, first + together); ++s) part.push_back(s);
    work(part);
  }
}

// One command on one key.
void put(redis::batch& commands, const std::string& key, std::initializer_list<std::string_view> words) {
  commands.begin(redis::slot_of(key), mode::write);
  commands.command(words);
}

}  // namespace

// ---- the parts of its life ------------------------------------------------------------------------------------------

void redis_filter::body::make_shards() {
  const redis::meta& m = description;
  const std::string epoch = std::to_string(m.epoch);
  const std::string layer = redis::text_of(m.first);
  const std::string number = std::to_string(m.first_generation);
  const std::string expiry = std::to_string(m.expires_at);
  const std::string end = std::to_string(m.windowed() ? m.end_of_generation(m.first_generation) : 0);
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
    run([](std::size_t, reply) {}, "make the filter");
  });
}

// Shards of one filter grow alike, one after another: what took milliseconds to find is kept.
const redis_layer& redis_filter::body::next_layer_of(const shard_view& v) {
  std::vector<std::uint64_t> capacities;
  for (const redis_layer& layer : v.layers) capacities.push_back(layer.capacity);
  const auto found = next_layers_.find(capacities);
  if (found != next_layers_.end()) return found->second;
  return next_layers_[capacities] = next_layer(description.parameters, v.layers);
}

bool redis_filter::body::grow(std::span<const std::uint64_t> shards) {
  commands.clear();
  for (const std::uint64_t s : shards) {
    const shard_view& v = view(s);
    const auto number = static_cast<std::int64_t>(v.layers.size());
    const redis_layer& layer = next_layer_of(v);
    const std::string header = redis::header_key(description, s);
    const redis::stamp fresh = redis::new_stamp();
    commands.begin(redis::slot_of(header), mode::write);
    commands.start_script(redis::scripts::grow, 3, 5);
    commands.word(header);
    commands.word(redis::layer_key(description, s, v.newest()));
    commands.word(redis::layer_key(description, s, number));
    commands.word(redis::text_of(v.stamp));
    commands.word(redis::text_of(fresh));
    commands.word(64 * layer.lines);
    commands.word(redis::text_of(layer));
    commands.word(static_cast<std::uint64_t>(number));
  }
  run([](std::size_t, reply) {}, "let the filter grow");
  return refresh(shards);
}

bool redis_filter::body::begin_generation(std::span<const std::uint64_t> shards) {
  const std::int64_t generation = generation_now();
  commands.clear();
  for (const std::uint64_t s : shards) {
    const shard_view& v = view(s);
    const std::string header = redis::header_key(description, s);
    commands.begin(redis::slot_of(header), mode::write);
    commands.start_script(redis::scripts::rotate, 3, 7);
    commands.word(header);
    commands.word(redis::layer_key(description, s, v.newest()));
    commands.word(redis::layer_key(description, s, generation));
    commands.word(redis::text_of(v.stamp));
    commands.word(redis::text_of(redis::new_stamp()));
    commands.word(64 * description.first.lines);
    commands.word(static_cast<std::uint64_t>(generation));
    commands.word(description.part());
    commands.word(std::uint64_t{window_lanes});
    commands.word(static_cast<std::uint64_t>(description.end_of_generation(generation)));
  }
  run([](std::size_t, reply) {}, "begin a generation");
  return refresh(shards);
}

void redis_filter::body::load_all_views() {
  const std::uint64_t epoch = description.epoch;
  each_part(description.shards(), [&](std::span<const std::uint64_t> shards) {
    if (description.epoch == epoch) refresh(shards);
  });
  if (description.epoch != epoch) load_all_views();
}

void redis_filter::body::mark_all(const std::string& next_instance) {
  const auto check = [&](bool other) {
    if (!other) return;
    throw error(errc::locked, {"somebody else replaced the filter at the same time", where(), "", "", "try again"});
  };
  each_part(description.shards(), [&](std::span<const std::uint64_t> part) {
    std::vector<std::uint64_t> todo(part.begin(), part.end());
    std::vector<std::uint64_t> there(part.begin(), part.end());
    while (!todo.empty()) {
      commands.clear();
      for (const std::uint64_t s : todo) {
        const shard_view& v = view(s);
        const std::string header = redis::header_key(description, s);
        commands.begin(redis::slot_of(header), mode::write);
        commands.start_script(redis::scripts::mark, 2, 3);
        commands.word(header);
        commands.word(redis::layer_key(description, s, v.newest()));
        commands.word(redis::text_of(v.stamp));
        commands.word(redis::text_of(redis::new_stamp()));
        commands.word(next_instance);
      }
      std::vector<std::uint64_t> again;
      run(
          [&](std::size_t group, reply r) {
            if (r.integer() == 0) again.push_back(todo[group]);
            // A shard that is lost is no reason not to make the filter anew: who uses it hears of it.
            if (r.integer() < 0) std::erase(there, todo[group]);
          },
          "mark the filter");
      std::sort(again.begin(), again.end());
      if (!again.empty()) check(refresh(again));
      todo = std::move(again);
    }
    if (!there.empty()) check(refresh(there));
  });
}

// Of what is described here, with all layers.
void redis_filter::body::unlink_shards() {
  each_part(description.shards(), [&](std::span<const std::uint64_t> shards) {
    // The headers say which layers there are; a shard without one has been swept already, or has lost it.
    std::vector<std::vector<std::string>> names(shards.size());
    std::vector<std::uint64_t> headless;
    commands.clear();
    for (const std::uint64_t s : shards) {
      const std::string header = redis::header_key(description, s);
      put(commands, header, {"HGETALL", header});
    }
    run(
        [&](std::size_t group, reply r) {
          if (r.size() == 0) headless.push_back(shards[group]);
          const auto v = redis::view_of(description, r, where());
          if (!v) return;
          names[group].push_back(redis::header_key(description, shards[group]));
          for (const std::int64_t number : v->numbers) {
            names[group].push_back(redis::layer_key(description, shards[group], number));
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
    if (description.windowed()) headless.clear();  // generations go by themselves
    for (const std::uint64_t s : headless) {
      const std::string header = redis::header_key(description, s);
      commands.begin(redis::slot_of(header), mode::write);
      commands.start_script(redis::scripts::unlink_headless, 1 + most_layers, 0);
      commands.word(header);
      for (std::int64_t number = 0; number < most_layers; ++number) {
        commands.word(redis::layer_key(description, s, number));
      }
    }
    if (!commands.empty()) run([](std::size_t, reply) {}, "remove the filter");
  });
}

// ---- create and open ------------------------------------------------------------------------------------------------

namespace {

std::string growth_text(const redis_params& p) {
  switch (p.growth) {
    case redis_growth::none: return "none";
    case redis_growth::to_maximum: return "to " + std::to_string(p.maximum) + " keys";
    case redis_growth::unlimited: break;
  }
  return "unlimited";
}

// What the filter that there is has otherwise than the one that is wanted; empty: nothing.
error_text difference_of(const redis_params& there, const redis_params& wanted) {
  const auto differ = [](const char* what, std::string expected, std::string found) {
    return error_text{what, "", std::move(expected), std::move(found), ""};
  };
  const params& a = there.filter;
  const params& b = wanted.filter;
  if (a.layout != b.layout) return differ("layout", b.layout, a.layout);
  if (a.hash != b.hash) return differ("hash", b.hash, a.hash);
  if (a.keys != b.keys) return differ("keys", name_of(b.keys), name_of(a.keys));
  if (a.seed != b.seed) return differ("seed", std::to_string(b.seed), std::to_string(a.seed));
  if (a.key_check != b.key_check) return differ("secret", key_check_text(b.key_check), key_check_text(a.key_check));
  if (a.capacity != b.capacity) return differ("capacity", std::to_string(b.capacity), std::to_string(a.capacity));
  if (a.target_rate != b.target_rate) {
    return differ("error rate", std::to_string(b.target_rate), std::to_string(a.target_rate));
  }
  if (a.window_milliseconds != b.window_milliseconds) {
    return differ("window in milliseconds", std::to_string(b.window_milliseconds),
                  std::to_string(a.window_milliseconds));
  }
  if (growth_text(there) != growth_text(wanted)) return differ("growth", growth_text(wanted), growth_text(there));
  if (a.geometry != b.geometry || there.shards != wanted.shards) {
    return differ("size", std::to_string(b.geometry.bits) + " bits in " + std::to_string(wanted.shards) + " shards",
                  std::to_string(a.geometry.bits) + " bits in " + std::to_string(there.shards) + " shards");
  }
  return {};
}

redis::meta description_of(const redis_plan& plan, std::string instance) {
  redis::meta m;
  m.parameters = plan.parameters;
  m.parameters.filter.secret.reset();
  m.parameters.expires_in.reset();
  m.epoch = new_epoch();
  m.instance = std::move(instance);
  m.first = plan.first;
  return m;
}

}  // namespace

redis_filter redis_filter::create(const redis_address& address, const redis_params& wanted, redis_options options) {
  redis_params complete_params = wanted;
  if (options.secret) complete_params.filter.secret = options.secret;
  if (complete_params.filter.secret) options.secret = complete_params.filter.secret;
  const redis_plan plan = plan_redis(complete_params);
  if (wanted.expires_in && wanted.expires_in->count() <= 0) {
    throw error(errc::invalid_argument, {"a filter lives for some time", "expiry", "a positive time",
                                         std::to_string(wanted.expires_in->count()) + " ms", ""});
  }
  auto b = std::make_unique<body>(address, std::move(options));
  const std::string key = redis::meta_key(address.name);
  for (;;) {
    if (std::optional<redis::meta> there = b->read_meta()) {
      error_text differs = difference_of(there->parameters, plan.parameters);
      if (!differs.what.empty()) {
        differs.what = "there is another filter of this name: its " + differs.what + " is another";
        differs.where = address.text();
        differs.way_out = "open it as it is, choose another name, or drop it first";
        throw error(errc::incompatible, std::move(differs));
      }
      return open(address, b->options);
    }
    redis::meta m = description_of(plan, redis::key_name(address.name));
    if (wanted.expires_in) m.expires_at = b->server_now() + wanted.expires_in->count();
    b->adopt(m);
    if (m.windowed()) {
      b->description.first_generation = m.first_generation = b->generation_now();
    }
    const std::string text = m.text();
    const std::string expiry = std::to_string(m.expires_at);
    bool made = false;
    b->commands.clear();
    b->commands.begin(redis::slot_of(key), mode::write);
    if (m.expires_at != 0) {
      b->commands.command({"SET", key, text, "NX", "PXAT", expiry});
    } else {
      b->commands.command({"SET", key, text, "NX"});
    }
    b->run([&](std::size_t, reply r) { made = !r.is_nil(); }, "make the filter");
    if (!made) continue;  // somebody was faster
    return open(address, b->options);
  }
}

redis_filter redis_filter::open(const redis_address& address, redis_options options) {
  auto b = std::make_unique<body>(address, std::move(options));
  const std::string key = redis::meta_key(address.name);
  std::optional<redis::meta> found = b->read_meta();
  if (!found) {
    throw error(errc::not_found, {"there is no filter of this name", address.text(), "", "",
                                  "make one: bloomery build -o " + address.text() + " -n NUMBER"});
  }
  const bool ready = found->ready;
  b->adopt(*std::move(found));
  if (!ready) {
    // Who made it is still at it, or was killed: making shards twice does no harm.
    b->make_shards();
    const std::string before = b->description.text();
    b->description.ready = true;
    const std::string after = b->description.text();
    b->commands.clear();
    b->commands.begin(redis::slot_of(key), mode::write);
    b->commands.start_script(redis::scripts::exchange, 2, 3);
    b->commands.word(key);
    b->commands.word(redis::second_key(address.name));
    b->commands.word(before);
    b->commands.word(after);
    b->commands.word("");
    bool done = false;
    b->run([&](std::size_t, reply r) { done = r.integer() == 1; }, "make the filter");
    if (!done) {
      // Somebody else was faster; or it was dropped meanwhile, and what was made here must not stay behind.
      const std::optional<redis::meta> now = b->read_meta();
      if (!now || now->epoch != b->description.epoch) {
        b->unlink_shards();
        throw error(errc::not_found, {"the filter was removed while it was made", address.text(), "", "", "try again"});
      }
      b->description.expires_at = now->expires_at;
    }
  }
  return redis_filter(std::move(b));
}

// ---- replace, clear, drop, expire -----------------------------------------------------------------------------------

void redis_filter::replace(const redis_params& wanted, const std::function<void(redis_filter& fresh)>& fill) {
  body& old = *body_;
  old.be_current();
  redis_params complete_params = wanted;
  if (old.options.secret && !complete_params.filter.secret) complete_params.filter.secret = old.options.secret;
  const redis_plan plan = plan_redis(complete_params);
  redis::meta m = description_of(plan, "");
  m.instance = redis::key_name(old.address.name) + "~" + hexadecimal(m.epoch);
  if (!redis::hash_alike(m.parameters.filter, old.description.parameters.filter)) {
    // Who inserts into both has one hash of a key.
    throw error(errc::incompatible, {"a filter is replaced by one with the same hash, keys, seed and secret",
                                     old.where(), "", "", "drop it and make another"});
  }
  if (wanted.expires_in) m.expires_at = old.server_now() + wanted.expires_in->count();
  redis_options options = old.options;
  options.secret = complete_params.filter.secret;
  auto fresh = std::make_unique<body>(old.address, options);
  fresh->adopt(m);
  if (m.windowed()) {
    m.first_generation = old.server_now() / static_cast<std::int64_t>(m.part());
    fresh->description.first_generation = m.first_generation;
  }
  m.ready = true;
  fresh->description.ready = true;
  const std::string coming = redis::replacement_key(old.address.name);
  const std::string text = m.text();

  // A replacement that was interrupted is given up for this one.
  if (std::optional<redis::meta> earlier = old.read_coming()) {
    body left(old.address, old.options);
    earlier->parameters.filter.key_check = 0;  // its secret does not matter here
    left.options.secret.reset();
    left.adopt(*std::move(earlier));
    left.unlink_shards();
    if (old.options.notes) old.options.notes("a replacement of the filter that was interrupted is given up");
  }
  fresh->make_shards();
  old.commands.clear();
  put(old.commands, coming, {"SET", coming, text});
  old.run([](std::size_t, reply) {}, "replace the filter");
  const auto give_up = [&] {
    old.commands.clear();
    old.commands.begin(redis::slot_of(coming), mode::write);
    old.commands.start_script(redis::scripts::withdraw, 1, 1);
    old.commands.word(coming);
    old.commands.word(text);
    bool ours = false;
    old.run([&](std::size_t, reply r) { ours = r.integer() == 1; }, "give the replacement up");
    if (ours) old.mark_all("");
    fresh->unlink_shards();
  };
  try {
    old.mark_all(m.instance);
    redis_filter filling(std::move(fresh));
    try {
      fill(filling);
    } catch (...) {
      fresh = std::move(filling.body_);
      throw;
    }
    fresh = std::move(filling.body_);
    const std::string key = redis::meta_key(old.address.name);
    const std::string expiry = std::to_string(m.expires_at);
    bool done = false;
    old.commands.clear();
    old.commands.begin(redis::slot_of(key), mode::write);
    old.commands.start_script(redis::scripts::replace, 3, 3);
    old.commands.word(key);
    old.commands.word(redis::second_key(old.address.name));
    old.commands.word(coming);
    old.commands.word(text);
    old.commands.word(text);
    old.commands.word(expiry);
    old.run([&](std::size_t, reply r) { done = r.integer() == 1; }, "replace the filter");
    if (!done) {
      throw error(errc::locked,
                  {"somebody else began to replace the filter, too", old.where(), "", "", "let one of them finish"});
    }
  } catch (...) {
    try {
      give_up();
    } catch (const error&) {
      // The server is away: the next replacement tidies up.
    }
    throw;
  }
  old.unlink_shards();
  body_ = std::move(fresh);
}

void redis_filter::clear() {
  body_->be_current();
  redis_params same = body_->description.parameters;
  same.filter.secret = body_->options.secret;
  if (same.growth != redis_growth::none) same.filter.geometry = {};
  if (body_->description.expires_at != 0) {
    same.expires_in =
        std::chrono::milliseconds(std::max<std::int64_t>(body_->description.expires_at - body_->server_now(), 1));
  }
  replace(same, [](redis_filter&) {});
}

void redis_filter::drop() {
  body& b = *body_;
  const std::string key = redis::meta_key(b.address.name);
  // It may be another one by now.
  if (std::optional<redis::meta> now = b.read_meta(); now && now->epoch != b.description.epoch) {
    b.adopt(*std::move(now));
  }
  b.commands.clear();
  put(b.commands, key, {"DEL", key, redis::second_key(b.address.name)});
  b.run([](std::size_t, reply) {}, "remove the filter");
  b.unlink_shards();
}

void redis_filter::expire(std::chrono::milliseconds time) {
  if (time.count() <= 0) {
    throw error(errc::invalid_argument, {"a filter lives for some time", "expiry", "a positive time",
                                         std::to_string(time.count()) + " ms", "remove it with drop()"});
  }
  body_->set_expiry(body_->server_now() + time.count());
}

void redis_filter::persist() { body_->set_expiry(0); }

// The description last: so a filter whose description says that it stays has shards that do, and one that goes never
// ends as shards without.
void redis_filter::body::set_expiry(std::int64_t at) {
  const std::string expiry = std::to_string(at);
  be_current();
  each_part(description.shards(), [&](std::span<const std::uint64_t> part) {
    std::vector<std::uint64_t> todo(part.begin(), part.end());
    while (!todo.empty()) {
      if (refresh(todo)) {
        throw error(errc::locked, {"the filter was replaced meanwhile", where(), "", "", "try again"});
      }
      commands.clear();
      for (const std::uint64_t s : todo) {
        const shard_view& v = view(s);
        const std::string header = redis::header_key(description, s);
        commands.begin(redis::slot_of(header), mode::write);
        commands.start_script(redis::scripts::expire, 1 + v.numbers.size(), 2 + v.numbers.size());
        commands.word(header);
        for (const std::int64_t number : v.numbers) commands.word(redis::layer_key(description, s, number));
        commands.word(redis::text_of(v.stamp));
        commands.word(expiry);
        for (const std::int64_t number : v.numbers) {
          commands.word(std::to_string(description.windowed() ? description.end_of_generation(number) : 0));
        }
      }
      std::vector<std::uint64_t> again;
      run(
          [&](std::size_t group, reply r) {
            if (r.integer() == 0) again.push_back(todo[group]);
          },
          "set the expiry");
      std::sort(again.begin(), again.end());
      todo = std::move(again);
    }
  });
  const std::string key = redis::meta_key(address.name);
  const std::string before = description.text();
  redis::meta changed = description;
  changed.expires_at = at;
  const std::string after = changed.text();
  bool done = false;
  commands.clear();
  commands.begin(redis::slot_of(key), mode::write);
  commands.start_script(redis::scripts::exchange, 2, 3);
  commands.word(key);
  commands.word(redis::second_key(address.name));
  commands.word(before);
  commands.word(after);
  commands.word(expiry);
  run(
      [&](std::size_t group, reply r) {
        // A second run finds what the first one wrote.
        done = r.integer() == 1 || (before != after && router.may_have_run_twice(group));
      },
      "set the expiry");
  if (done) description.expires_at = at;
  if (!done) throw error(errc::locked, {"the filter was changed meanwhile", where(), "", "", "try again"});
}

void redis_filter::rotate() {
  body& b = *body_;
  if (!b.description.windowed()) {
    throw error(errc::incompatible, {"the filter has no window", b.where(), "one made with a window", "", ""});
  }
  b.be_current();
  const std::int64_t generation = b.generation_now();
  bool other = false;
  each_part(b.description.shards(), [&](std::span<const std::uint64_t> part) {
    std::vector<std::uint64_t> behind;
    if (other || (other = b.refresh(part))) return;  // the one that was made anew begins with a generation of now
    for (const std::uint64_t s : part) {
      if (b.view(s).newest() < generation) behind.push_back(s);
    }
    if (!behind.empty()) other = b.begin_generation(behind);
  });
}

}  // namespace bloomery
