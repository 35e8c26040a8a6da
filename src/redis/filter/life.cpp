// How a shared filter comes to be, grows, turns to its next generation, is replaced, and goes.
#include "redis/filter/body.hpp"
#include "redis/filter/scripts.hpp"

#include <bloomery/error.hpp>
#include <bloomery/layouts/window.hpp>

#include <algorithm>
#include <exception>
#include <random>
#include <utility>

namespace bloomery {

using redis::mode;
using redis::reply;
using redis::shard_view;

namespace {

constexpr std::size_t together = 4096;  // shards whose commands are one batch

std::uint64_t new_epoch() {
  std::random_device random;
  for (;;) {
    const std::uint64_t epoch = std::uint64_t{random()} << 32 | random();
    if (epoch != 0) return epoch;
  }
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

void check_expiry(std::chrono::milliseconds time, hint to_do = hint::none) {
  constexpr std::int64_t longest = std::int64_t{1} << 53;  // what servers and scripts count exactly
  if (time.count() > 0 && time.count() <= longest) return;
  throw error(errc::invalid_argument,
              {"expiry out of range", "expiry", "1 ms to 2^53 ms", std::to_string(time.count()) + " ms", to_do});
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
  try {
    return next_layers_[capacities] = next_layer(description.parameters, v.layers);
  } catch (const error& e) {
    error_text text = e.text();
    text.where = where();
    throw error(e.code(), text);
  }
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

void redis_filter::body::add_mark(std::uint64_t shard, const std::string& next_instance, const std::string& only) {
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

// With the instance that is to come; or, if that is empty, takes the marks away that name another, `only`.
void redis_filter::body::mark_all(const std::string& next_instance, const std::string& only) {
  const auto check = [&](bool other) {
    if (!other) return;
    throw error(errc::locked,
                {"another client replaced the filter at the same time", where(), "", "", hint::try_again});
  };
  each_part(description.shards(), [&](std::span<const std::uint64_t> part) {
    std::vector<std::uint64_t> todo(part.begin(), part.end());
    std::vector<std::uint64_t> there(part.begin(), part.end());
    std::vector<std::uint64_t> headless;
    while (!todo.empty()) {
      commands.clear();
      for (const std::uint64_t s : todo) add_mark(s, next_instance, only);
      std::vector<std::uint64_t> again;
      run(
          [&](std::size_t group, reply r) {
            if (r.integer() == 0) again.push_back(todo[group]);
            // A shard that is lost is no reason not to make the filter anew: who uses it hears of it.
            if (r.integer() < 0) headless.push_back(todo[group]);
          },
          "mark the filter");
      std::sort(again.begin(), again.end());
      if (!again.empty()) check(refresh(again));
      todo = std::move(again);
    }
    // Where there is no mark, nobody would hear of the filter that is to come: so that nobody takes what is left there
    // for a whole shard.
    unlink_headless(description, headless);
    for (const std::uint64_t s : headless) std::erase(there, s);
    if (!there.empty()) check(refresh(there));
  });
}

// Of shards that are marked though there is no replacement. A mark that was set since then has another stamp, and stays.
void redis_filter::body::unmark(std::span<const std::uint64_t> shards) {
  commands.clear();
  for (const std::uint64_t s : shards) {
    if (!view(s).next.empty()) add_mark(s, "", "");
  }
  if (!commands.empty()) run([](std::size_t, reply) {}, "take marks away");
}

// With all layers.
void redis_filter::body::unlink(const redis::meta& m) {
  each_part(m.shards(), [&](std::span<const std::uint64_t> shards) {
    // The headers say which layers there are; a shard without one has been swept already, or has lost it.
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
          for (const std::int64_t number : v->numbers) {
            names[group].push_back(redis::layer_key(m, shards[group], number));
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
    // A shard that got a layer in between has it still.
    unlink_headless(m, m.grows() ? shards : std::span<const std::uint64_t>(headless));
  });
}

// What is left of shards that have no header: the layers that there may be.
void redis_filter::body::unlink_headless(const redis::meta& m, std::span<const std::uint64_t> shards) {
  if (shards.empty()) return;
  std::int64_t first = 0;
  auto count = static_cast<std::int64_t>(redis::most_layers);
  if (m.windowed()) {
    first = std::max<std::int64_t>(server_now() / static_cast<std::int64_t>(m.part()) - window_lanes, 0);
    count = window_lanes + 2;  // of servers' clocks that are ahead, the next one
  }
  commands.clear();
  for (const std::uint64_t s : shards) {
    const std::string header = redis::header_key(m, s);
    commands.begin(redis::slot_of(header), mode::write);
    commands.start_script(redis::scripts::unlink_headless, 1 + static_cast<std::size_t>(count), 0);
    commands.word(header);
    for (std::int64_t i = 0; i < count; ++i) commands.word(redis::layer_key(m, s, first + i));
  }
  run([](std::size_t, reply) {}, "remove what is left of shards");
}

// ---- descriptions ---------------------------------------------------------------------------------------------------

bool redis_filter::body::withdraw(const std::string& key, const std::string& text) {
  bool done = false;
  commands.clear();
  commands.begin(redis::slot_of(key), mode::write);
  commands.start_script(redis::scripts::withdraw, 1, 1);
  commands.word(key);
  commands.word(text);
  run([&](std::size_t, reply r) { done = r.integer() == 1; }, "take a description away");
  return done;
}

// False: it is not as it was before; or it was, and the answer to that was lost.
bool redis_filter::body::exchange(const std::string& before, const std::string& after, const std::string& expiry) {
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

namespace {

// On m, m2 and n, for who thinks that m has this epoch.
void start_on_all(redis::batch& commands, const redis::script& script, const std::string& name, std::uint64_t epoch,
                  std::size_t more_args) {
  const std::string key = redis::meta_key(name);
  commands.clear();
  commands.begin(redis::slot_of(key), mode::write);
  commands.start_script(script, 3, 1 + more_args);
  commands.word(key);
  commands.word(redis::second_key(name));
  commands.word(redis::replacement_key(name));
  commands.word(epoch);
}

}  // namespace

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

redis::meta description_of(const redis_plan& plan, std::string_view name) {
  redis::meta m;
  m.parameters = plan.parameters;
  m.parameters.filter.secret.reset();
  m.parameters.expires_in.reset();
  m.epoch = new_epoch();
  m.instance = redis::instance_of(name, m.epoch);
  m.first = plan.first;
  return m;
}

}  // namespace

redis_filter redis_filter::create(const redis_address& address, const redis_params& wanted, redis_options options) {
  redis_params complete_params = wanted;
  if (options.secret) complete_params.filter.secret = options.secret;
  if (complete_params.filter.secret) options.secret = complete_params.filter.secret;
  const redis_plan plan = plan_redis(complete_params);
  if (wanted.expires_in) check_expiry(*wanted.expires_in);
  auto b = std::make_unique<body>(address, std::move(options));
  const std::string key = redis::meta_key(address.name);
  for (;;) {
    if (std::optional<redis::meta> there = b->read_meta()) {
      error_text differs = difference_of(there->parameters, plan.parameters);
      if (!differs.what.empty()) {
        differs.what = "there is another filter of this name: its " + differs.what + " is another";
        differs.where = address.text();
        differs.hint = {hint::open_or_remove,
                        "open it as it is, choose another name, or remove it first (drop(), or DEL of " + key +
                            " and " + redis::second_key(address.name) + ")"};
        throw error(errc::incompatible, std::move(differs));
      }
      return open(address, b->options);
    }
    redis::meta m = description_of(plan, address.name);
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
    try {
      return open(address, b->options);
    } catch (const error& e) {
      if (e.code() == errc::unavailable) throw;
      try {
        if (b->withdraw(key, text)) b->unlink(m);
      } catch (const error&) {
        // Who opens it goes on where this ended.
      }
      throw;
    }
  }
}

redis_filter redis_filter::open(const redis_address& address, redis_options options) {
  auto b = std::make_unique<body>(address, std::move(options));
  std::optional<redis::meta> found = b->read_meta();
  if (!found) {
    throw error(errc::not_found, {"there is no filter of this name", address.text(), "", "", hint::make_shared_filter});
  }
  const bool ready = found->ready;
  b->adopt(*std::move(found));
  if (!ready) {
    // Who made it is still at it, or was killed: making shards twice does no harm.
    b->make_shards();
    const std::string before = b->description.text();
    b->description.ready = true;
    if (!b->exchange(before, b->description.text(), "")) {
      // Somebody else was faster; or it was dropped meanwhile, and what was made here must not stay behind.
      const std::optional<redis::meta> now = b->read_meta();
      if (!now || now->epoch != b->description.epoch) {
        b->unlink(b->description);
        throw error(errc::not_found,
                    {"the filter was removed while it was made", address.text(), "", "", hint::try_again});
      }
      b->description.expires_at = now->expires_at;
    }
  }
  return redis_filter(std::move(b));
}

// ---- replace, clear, drop, expire -----------------------------------------------------------------------------------

// While fill() is under way, nobody can say which of the two is meant.
void redis_filter::body::refuse_in_fill() const {
  if (!to_come && !being_replaced) return;
  throw error(errc::locked, {"this client is replacing the filter", where(), "", "", hint::wait_for_replacement});
}

// What is to replace this one. Nothing of it is on the server yet. On connections of its own: who fills it may do so in
// another thread.
std::unique_ptr<redis_filter::body> redis_filter::body::make_coming(const redis_params& wanted) {
  redis_params complete_params = wanted;
  if (options.secret && !complete_params.filter.secret) complete_params.filter.secret = options.secret;
  if (wanted.expires_in) check_expiry(*wanted.expires_in);
  redis::meta m = description_of(plan_redis(complete_params), address.name);
  if (!redis::hash_alike(m.parameters.filter, description.parameters.filter)) {
    // Who inserts into both has one hash of a key.
    throw error(errc::incompatible, {"a filter is replaced by one with the same hash, keys, seed and secret", where(),
                                     "", "", hint::drop_and_make_another});
  }
  if (wanted.expires_in) m.expires_at = server_now() + wanted.expires_in->count();
  if (m.windowed()) m.first_generation = server_now() / static_cast<std::int64_t>(m.part());
  m.ready = true;
  redis_options same = options;
  same.secret = complete_params.filter.secret;
  auto fresh = std::make_unique<body>(address, std::move(same));
  fresh->to_come = true;
  fresh->adopt(std::move(m));
  return fresh;
}

// From now on n names what is to come. What it named before was a replacement that was interrupted: it is given up, and
// only now can its shards go, since it cannot take its place any more.
void redis_filter::body::announce(const redis::meta& live, const redis::meta& coming) {
  const std::string text = coming.text();
  bool done = false;
  std::string before;
  start_on_all(commands, redis::scripts::announce, address.name, live.epoch, 2);
  commands.word(text);
  commands.word(std::to_string(coming.expires_at));
  run(
      [&](std::size_t, reply r) {
        done = r.size() == 1;
        if (done) before = r[0].text();
      },
      "replace the filter");
  if (!done) {
    throw error(errc::locked, {"the filter was replaced or dropped meanwhile", where(), "", "", hint::try_again});
  }
  if (before.empty() || before == text) return;
  unlink_coming(before);
  if (options.notes) options.notes("another replacement of the filter, interrupted or still under way, is given up");
}

// The shards of what n named.
void redis_filter::body::unlink_coming(const std::string& text) {
  if (text.empty()) return;
  try {
    const redis::meta left = redis::meta::parse(text, address);
    if (left.epoch != description.epoch) unlink(left);
  } catch (const error& e) {
    if (options.notes) options.notes(std::string("shards of an interrupted replacement are left: ") + e.what());
  }
}

// At one blow.
void redis_filter::body::put_in_place(const redis::meta& live, const redis::meta& coming) {
  bool done = false;
  std::exception_ptr failure;
  start_on_all(commands, redis::scripts::replace, address.name, live.epoch, 2);
  commands.word(coming.text());
  commands.word(std::to_string(coming.expires_at));
  try {
    run([&](std::size_t, reply r) { done = r.integer() == 1; }, "replace the filter");
  } catch (const error&) {
    failure = std::current_exception();
  }
  if (done) return;
  // The answer may be lost, or that of a second run.
  std::optional<redis::meta> now;
  try {
    now = read_meta();
  } catch (const error&) {
    if (!failure) throw;
  }
  if (now && now->epoch == coming.epoch) return;
  if (failure) std::rethrow_exception(failure);
  if (!now) throw error(errc::not_found, {"the filter was dropped while it was replaced", where(), "", "", ""});
  throw error(errc::locked, {"another client replaced the filter too, or the replacement has lost a part", where(), "",
                             "", hint::try_again});
}

// Leaves nothing of it, unless it has taken its place, or may do so still.
void redis_filter::body::give_up(const redis::meta& coming) {
  try {
    const bool ours = withdraw(redis::replacement_key(address.name), coming.text());
    for (const auto& named : {read_coming(), read_meta()}) {
      if (named && named->epoch == coming.epoch) return;
    }
    unlink(coming);
    if (ours) mark_all("", coming.instance);
  } catch (const error&) {
    // The server is away, or another filter is there: the next replacement tidies up.
  }
}

bool redis_filter::body::on_replicas() {
  const unsigned wanted = options.wait_replicas;
  return wanted == 0 || router.wait_for_replicas(wanted, options.connection.time) >= wanted;
}

void redis_filter::replace(const redis_params& wanted, const std::function<void(redis_filter& fresh)>& fill) {
  body& old = *body_;
  old.refuse_in_fill();
  old.be_current();
  const redis::meta live = old.description;
  std::unique_ptr<body> fresh = old.make_coming(wanted);
  const redis::meta coming = fresh->description;
  try {
    fresh->make_shards();
    old.announce(live, coming);
    old.mark_all(coming.instance);
    redis_filter filling(std::move(fresh));
    old.being_replaced = true;
    fill(filling);
    fresh = std::move(filling.body_);
    if (fresh == nullptr || fresh->description.epoch != coming.epoch) {
      throw error(errc::invalid_argument,
                  {"the function that fills the new filter moved it away", old.where(), "", "", ""});
    }
    old.put_in_place(live, coming);
  } catch (...) {
    old.being_replaced = false;
    old.give_up(coming);
    throw;
  }
  const auto note = [&](const std::string& why) {
    if (old.options.notes) old.options.notes("the shards of the filter that was replaced are left: " + why);
  };
  try {
    // Where a master fails now, its description may be the old one again: that must not name what is gone.
    if (fresh->on_replicas() && old.on_replicas()) {
      old.unlink(live);
    } else {
      note("there are fewer replicas than wanted");
    }
  } catch (const error& e) {
    note(e.what());
  }
  fresh->to_come = false;
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
  b.refuse_in_fill();
  // It may be another one by now.
  if (std::optional<redis::meta> now = b.read_meta(); now && now->epoch != b.description.epoch) {
    b.adopt(*std::move(now));
  }
  bool done = false;
  std::string coming;
  start_on_all(b.commands, redis::scripts::drop, b.address.name, b.description.epoch, 0);
  b.run(
      [&](std::size_t, reply r) {
        done = r.size() == 1;
        if (done) coming = r[0].text();
      },
      "remove the filter");
  if (!done) {
    throw error(errc::locked, {"the filter was rebuilt meanwhile", b.where(), "", "", hint::drop_again});
  }
  b.unlink(b.description);
  b.unlink_coming(coming);
}

void redis_filter::expire(std::chrono::milliseconds time) {
  check_expiry(time, hint::remove_filter);
  body_->set_expiry(body_->server_now() + time.count());
}

void redis_filter::persist() { body_->set_expiry(0); }

// The description last: so a filter whose description says that it stays has shards that do, and one that goes never
// ends as shards without.
void redis_filter::body::set_expiry(std::int64_t at) {
  const std::string expiry = std::to_string(at);
  refuse_in_fill();
  be_current();
  each_part(description.shards(), [&](std::span<const std::uint64_t> part) {
    std::vector<std::uint64_t> todo(part.begin(), part.end());
    while (!todo.empty()) {
      if (refresh(todo)) {
        throw error(errc::locked, {"the filter was replaced meanwhile", where(), "", "", hint::try_again});
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
  redis::meta changed = description;
  changed.expires_at = at;
  const std::string after = changed.text();
  if (!exchange(description.text(), after, expiry)) {
    const std::optional<redis::meta> now = read_meta();
    if (!now || now->text() != after) {
      throw error(errc::locked, {"the filter was changed meanwhile", where(), "", "", hint::try_again});
    }
  }
  description.expires_at = at;
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
