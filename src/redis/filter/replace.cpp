// Replacement of a shared filter by another one, clear, and expiry.
#include "redis/filter/lifecycle.hpp"
#include "redis/filter/scripts.hpp"

#include <bloomery/error.hpp>

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace bloomery {

using redis::check_expiry;
using redis::description_of;
using redis::each_part;
using redis::mode;
using redis::reply;
using redis::shard_view;
using redis::start_on_all;

// During fill(), it would be unclear which of the two filters is meant.
void redis_filter::impl::refuse_in_fill() const {
  if (is_repairing()) {
    throw error(errc::locked, {"this client is repairing the filter", where(), "", "", hint::try_again});
  }
  if (!to_come && !being_replaced) return;
  throw error(errc::locked, {"this client is replacing the filter", where(), "", "", hint::wait_for_replacement});
}

// Creates the coming filter in this process; nothing of it is on the server yet. It has its own connections, because
// fill() may use it in another thread.
std::unique_ptr<redis_filter::impl> redis_filter::impl::make_coming(const redis_params& wanted) {
  redis_params complete_params = wanted;
  if (options.secret && !complete_params.filter.secret) complete_params.filter.secret = options.secret;
  if (wanted.expires_in) check_expiry(*wanted.expires_in);
  redis::meta m = description_of(plan_redis(complete_params), address.name);
  if (!redis::hash_alike(m.parameters.filter, description.parameters.filter)) {
    // Clients that insert into both filters hash a key once.
    throw error(errc::incompatible, {"the new filter must have the same hash, keys, seed and secret", where(), "", "",
                                     hint::drop_and_make_another});
  }
  if (wanted.expires_in) m.expires_at = server_now() + wanted.expires_in->count();
  if (m.has_window()) m.first_generation = server_now() / static_cast<std::int64_t>(m.slice());
  m.ready = true;
  redis_options same = options;
  same.secret = complete_params.filter.secret;
  auto fresh = std::make_unique<impl>(address, std::move(same));
  fresh->to_come = true;
  fresh->adopt(std::move(m));
  return fresh;
}

// Announces the coming filter in n. If n named another filter before, that was an interrupted replacement. It is given
// up, and its shards can only be removed now, when it can no longer take this one's place.
void redis_filter::impl::announce(const redis::meta& live, const redis::meta& coming) {
  const std::string text = coming.text();
  bool done = false;
  std::string before;
  start_on_all(commands, redis::scripts::announce, address.name, live, 2);
  commands.word(text);
  commands.word(std::to_string(coming.expires_at));
  run(
      [&](std::size_t, reply r) {
        done = r.size() == 1;
        if (done) before = r[0].text();
      },
      "replace the filter");
  if (!done) {
    throw error(errc::locked, {"the filter was replaced or dropped during the call", where(), "", "", hint::try_again});
  }
  if (before.empty() || before == text) return;
  unlink_coming(before);
  note("another replacement of the filter, interrupted or in progress, was given up");
}

// Removes the shards of the filter that n named.
void redis_filter::impl::unlink_coming(const std::string& text) {
  if (text.empty()) return;
  try {
    const redis::meta left = redis::meta::parse(text, address);
    if (left.epoch != description.epoch) unlink(left);
  } catch (const error& e) {
    note(std::string("could not remove the shards of an interrupted replacement: ") + e.what());
  }
}

// Puts the coming filter in place of the live one, atomically.
void redis_filter::impl::put_in_place(const redis::meta& live, const redis::meta& coming) {
  for (bool may_restore = true;; may_restore = false) {
    bool done = false;
    std::exception_ptr failure;
    start_on_all(commands, redis::scripts::replace, address.name, live, 2);
    commands.word(coming.text());
    commands.word(std::to_string(coming.expires_at));
    try {
      run([&](std::size_t, reply r) { done = r.integer() == 1; }, "replace the filter");
    } catch (const error&) {
      failure = std::current_exception();
    }
    if (done) return;
    // The reply may be lost, or belong to a second execution.
    std::optional<redis::meta> now;
    try {
      now = read_meta();
    } catch (const error&) {
      if (!failure) throw;
    }
    if (now && now->epoch == coming.epoch) return;
    if (failure) std::rethrow_exception(failure);
    if (now || !may_restore) {
      throw error(errc::locked, {"another client also replaced the filter, or the new filter has lost a part", where(),
                                 "", "", hint::try_again});
    }
    restore(false, true);  // possibly no process used the old filter, and restored its description, during fill()
  }
}

// Removes the coming filter completely, unless it has taken the old one's place or may still do so.
void redis_filter::impl::give_up(const redis::meta& coming) {
  try {
    const bool ours = withdraw(redis::replacement_key(address.name), coming.text());
    for (const auto& named : {read_coming(), read_meta()}) {
      if (named && named->epoch == coming.epoch) return;
    }
    unlink(coming);
    if (ours) mark_all("", coming.instance);
  } catch (const error&) {
    // The server is unavailable, or another filter is in place: the next replacement removes the rest.
  }
}

bool redis_filter::impl::on_replicas() {
  const unsigned wanted = options.wait_replicas;
  return wanted == 0 || router.wait_for_replicas(wanted, options.connection.time) >= wanted;
}

void redis_filter::replace(const redis_params& wanted, const std::function<void(redis_filter& fresh)>& fill) {
  impl& old = *impl_;
  old.refuse_in_fill();
  old.be_current();
  const redis::meta live = old.description;
  std::unique_ptr<impl> fresh = old.make_coming(wanted);
  const redis::meta coming = fresh->description;
  try {
    fresh->make_shards();
    old.announce(live, coming);
    old.mark_all(coming.instance);
    redis_filter filling(std::move(fresh));
    old.being_replaced = true;
    fill(filling);
    fresh = std::move(filling.impl_);
    if (fresh == nullptr || fresh->description.epoch != coming.epoch) {
      throw error(errc::invalid_argument,
                  {"the function that fills the new filter has moved it", old.where(), "", "", ""});
    }
    fresh->begin_reading_meta();
    old.put_in_place(live, coming);
  } catch (...) {
    old.being_replaced = false;
    old.give_up(coming);
    throw;
  }
  const auto note = [&](const std::string& why) {
    old.note("could not remove the shards of the replaced filter: " + why);
  };
  try {
    // After a failover, the description may be the old one again, so the old shards must not be removed before replicas
    // have the new description.
    if (fresh->on_replicas() && old.on_replicas()) {
      old.unlink(live);
      old.remove_mark(live);
    } else {
      note("there are fewer replicas than required");
    }
  } catch (const error& e) {
    note(e.what());
  }
  fresh->begin_checks();
  impl_ = std::move(fresh);
}

void redis_filter::clear() {
  impl_->be_current();
  redis_params same = impl_->description.parameters;
  same.filter.secret = impl_->options.secret;
  if (same.growth != redis_growth::none) same.filter.geometry = {};
  if (impl_->description.expires_at != 0) {
    same.expires_in =
        std::chrono::milliseconds(std::max<std::int64_t>(impl_->description.expires_at - impl_->server_now(), 1));
  }
  replace(same, [](redis_filter&) {});
}

void redis_filter::expire(std::chrono::milliseconds time) {
  check_expiry(time, hint::remove_filter);
  impl_->set_expiry(impl_->server_now() + time.count());
}

void redis_filter::persist() { impl_->set_expiry(0); }

// The description last. So a filter whose description has no expiry has permanent shards, and an expiring filter never
// ends as shards without a description.
void redis_filter::impl::set_expiry(std::int64_t at) {
  const std::string expiry = std::to_string(at);
  refuse_in_fill();
  be_current();
  each_part(description.shards(), [&](std::span<const std::uint64_t> part) {
    std::vector<std::uint64_t> todo(part.begin(), part.end());
    while (!todo.empty()) {
      if (refresh(todo)) {
        throw error(errc::locked, {"the filter was replaced during the call", where(), "", "", hint::try_again});
      }
      commands.clear();
      for (const std::uint64_t s : todo) {
        const shard_view& v = view(s);
        const std::string header = redis::header_key(description, s);
        commands.begin(redis::slot_of(header), mode::write);
        commands.start_script(redis::scripts::expire, 1 + v.numbers.size(), 2 + v.numbers.size());
        commands.word(header);
        for (std::size_t l = 0; l < v.numbers.size(); ++l) commands.word(redis::layer_key(description, s, v, l));
        commands.word(redis::text_of(v.stamp));
        commands.word(expiry);
        for (const std::int64_t number : v.numbers) {
          commands.word(std::to_string(description.has_window() ? description.end_of_generation(number) : 0));
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
      throw error(errc::locked, {"the filter was changed during the call", where(), "", "", hint::try_again});
    }
  }
  description.expires_at = at;
  check_.reset();  // it may have read the former description
  keep_copies();
}

void redis_filter::rotate() {
  impl& b = *impl_;
  if (!b.description.has_window()) {
    throw error(errc::incompatible, {"the filter has no window", b.where(), "a sliding-window filter", "", ""});
  }
  b.be_current();
  const std::int64_t generation = b.generation_now();
  bool other = false;
  each_part(b.description.shards(), [&](std::span<const std::uint64_t> part) {
    std::vector<std::uint64_t> behind;
    if (other || (other = b.refresh(part))) return;  // the replacement starts with the present generation
    for (const std::uint64_t s : part) {
      if (b.view(s).newest() < generation) behind.push_back(s);
    }
    if (!behind.empty()) other = b.begin_generation(behind);
  });
}

}  // namespace bloomery
