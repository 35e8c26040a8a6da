// The shard cache: a client's copies of shard headers, and their refresh when a shard version shows that they are
// outdated.
#include "redis/filter/elapsed.hpp"
#include "redis/filter/impl.hpp"
#include "redis/filter/scripts.hpp"

#include <bloomery/error.hpp>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace bloomery {

using redis::milliseconds_since_start;
using redis::mode;
using redis::reply;
using redis::shard_view;

namespace {

constexpr std::chrono::milliseconds last_time{200};  // time limit for messages of the destructor
constexpr std::int64_t clock_trusted = 60'000;       // milliseconds until the server's clock is read again

// The filter was dropped, and another client is creating a filter with the same name. Bits written before a shard is
// created would make its creation fail.
void refuse_unready(const redis::meta& m, const std::string& where) {
  if (m.ready) return;
  throw error(errc::not_found, {"the filter was dropped or has expired, and a filter with its name is being created",
                                where, "", "", hint::build_again});
}

}  // namespace

redis_filter::impl::impl(const redis_address& a, redis_options o)
    : address(a),
      options(std::move(o)),
      connections(std::make_shared<redis::router>(a, options.connection)),
      router(*connections) {
  router.watch_restarts();
  begin_reading_meta();
  checked_at_ = read_at_;
}

redis_filter::impl::impl(const impl& live, redis::meta coming)
    : address(live.address), options(live.options), connections(live.connections), router(*connections), to_come(true) {
  adopt(std::move(coming));
}

redis_filter::impl::~impl() {
  try {
    give_back();
  } catch (...) {
    // The count stays slightly too high, and the filter grows slightly early.
  }
}

void redis_filter::impl::give_back() {
  commands.clear();
  for (std::uint64_t s = 0; s < views.size(); ++s) {
    const auto& v = views[static_cast<std::size_t>(s)];
    if (!v || v->reserved == 0) continue;
    const std::string header = redis::header_key(description, s);
    commands.begin(redis::slot_of(header), mode::once);
    commands.start_script(redis::scripts::give_back, 1, 2);
    commands.word(header);
    commands.word(redis::text_of(v->stamp));
    commands.word(v->reserved);
    v->reserved = 0;
  }
  if (!commands.empty())
    router.run(
        commands, [](std::size_t, reply) {}, last_time);
}

error_hint redis_filter::impl::after_loss() const {
  if (description.counts()) return hint::remove_and_build_again;
  return error_hint(hint::remove_and_build_again, "repair the filter, or remove it and build it again");
}

// Translates errors raised by our own scripts.
void redis_filter::impl::throw_own(std::string_view text) const {
  const std::size_t space = text.find(' ');
  const std::string names(text.substr(std::min(space, text.size() - 1) + 1));
  if (text.starts_with("BLOOMERYEXISTS")) {
    throw error(errc::already_exists, {"a key of the filter has the name of an existing key", where(), "no such key",
                                       names, hint::remove_key_or_choose_name});
  }
  if (text.starts_with("BLOOMERYGONE")) {
    error_text gone = {"a part of the filter is missing", where(), "", names, after_loss()};
    if (to_come) throw redis::replacement_lost(errc::damaged, std::move(gone));
    throw error(errc::damaged, std::move(gone));
  }
}

void redis_filter::impl::run(const std::function<void(std::size_t, reply)>& take, const char* doing) {
  const std::optional<std::size_t> check = add_check();
  const auto groups = commands.groups();
  router.run(commands, [&](std::size_t number, reply first) {
    if (check && number > *check) return;  // a header that is read only to keep it from eviction
    reply one = first;
    for (std::uint32_t i = 0; i < groups[number].commands; ++i, one = one.next()) {
      if (one.is_error()) throw_own(one.text());
      redis::throw_if_error(one, address, doing);
    }
    if (number == check) return take_check(first);
    take(number, first);
  });
}

std::optional<redis::meta> redis_filter::impl::read_meta() {
  begin_reading_meta();
  return redis::read_meta(router);
}

std::optional<redis::meta> redis_filter::impl::read_coming() {
  const std::string key = redis::replacement_key(address.name);
  commands.clear();
  commands.begin(redis::slot_of(key), mode::write);
  commands.command({"GET", key});
  std::optional<redis::meta> found;
  run(
      [&](std::size_t, reply r) {
        if (!r.is_nil()) found = redis::meta::parse(r.text(), address);
      },
      "open the filter");
  return found;
}

void redis_filter::impl::adopt(redis::meta m) {
  params& p = m.parameters.filter;
  if (p.key_check != 0 && !options.secret) {
    throw error(errc::incompatible,
                {"the filter is keyed with a secret", where(),
                 "the key with check value " + key_check_text(p.key_check), "", hint::give_the_secret});
  }
  if (p.key_check == 0 && options.secret) {
    throw error(errc::incompatible, {"the filter is not keyed", where(), "", "", hint::leave_out_the_secret});
  }
  if (options.secret && key_check(*options.secret) != p.key_check) {
    throw error(errc::incompatible, {"the filter is keyed with another secret", where(),
                                     "the key with check value " + key_check_text(p.key_check),
                                     key_check_text(key_check(*options.secret)), hint::give_the_secret});
  }
  p.secret = options.secret;
  const hash_row* known = find_hash(p.hash);
  if (known == nullptr || (p.keys == key_kind::bytes && !known->takes_bytes)) {
    throw error(errc::incompatible,
                {"this version does not have the filter's hash", where(), hash_names(), p.hash, hint::use_its_version});
  }
  find_layout(p.layout)->check(p.geometry);
  layout = find_layout(p.layout);
  hasher = known;
  seed = {mix(p.seed), p.secret.value_or(secret_key{})};
  if (description.epoch != 0 && description.epoch != m.epoch) ++router.counters().description_changes;
  description = std::move(m);
  checked_at_ = read_at_;
  check_.reset();
  views.clear();
  // Keeps room that was reserved while this filter was still the coming one.
  if (next && next->description.epoch == description.epoch) views.swap(next->views);
  views.resize(static_cast<std::size_t>(description.shards()));
  next.reset();
  copy_.clear();
  closed_layers_.clear();
  next_layers_.clear();
}

void redis_filter::impl::turn_to(redis::meta m) {
  refuse_unready(m, where());
  const bool same = redis::hash_alike(m.parameters.filter, description.parameters.filter);
  adopt(std::move(m));
  if (same) return;
  throw redis::made_anew(errc::locked,
                         {"the filter was replaced by one with another hash", where(), "", "", hint::try_again});
}

void redis_filter::impl::be_current() {
  if (to_come) return;
  redis::meta now = current_meta();
  if (now.epoch != description.epoch) {
    refuse_unready(now, where());
    return adopt(std::move(now));
  }
  description.expires_at = now.expires_at;
  checked_at_ = read_at_;
  check_.reset();
}

const shard_view& redis_filter::impl::view(std::uint64_t shard) {
  auto& v = views[static_cast<std::size_t>(shard)];
  if (!v) v = std::make_unique<shard_view>(redis::first_view(description, shard));
  return *v;
}

void redis_filter::impl::throw_lost() {
  const std::optional<redis::meta> coming = read_coming();
  if (coming && coming->epoch == description.epoch) {
    throw redis::replacement_lost(errc::damaged, {"a part of the new filter is missing", where(), "",
                                                  "evicted, deleted or lost by its server", hint::replace_again});
  }
  throw redis::replacement_lost(errc::locked, {"the replacement of the filter was given up", where(), "",
                                               "another client replaced or dropped the filter", hint::replace_again});
}

void redis_filter::impl::throw_gone(std::uint64_t shard, const std::string& what) {
  if (to_come) throw_lost();
  const std::uint64_t epoch = description.epoch;
  be_current();  // otherwise it was dropped or has expired; another client may have set the expiry
  if (description.epoch != epoch) {
    throw redis::made_anew(errc::locked, {"the filter was replaced during the call", where(), "", "", hint::try_again});
  }
  const bool ended = description.expires_at != 0 && description.expires_at <= server_now() + 1000;
  if (ended) throw error(errc::not_found, {"the filter has expired", where(), "", "", hint::build_again});
  const std::string which = "shard " + std::to_string(shard) + " of " + std::to_string(description.shards());
  if (!view(shard).repairing.empty()) {
    throw error(errc::damaged, {"a part of the filter is being repaired: " + which, where(), "", "",
                                error_hint(hint::try_again,
                                           "try again when the repair is done; if its client was interrupted, repair "
                                           "the filter again")});
  }
  throw error(errc::damaged, {"a part of the filter is missing: " + what, where(), "",
                              which + " was evicted, deleted or lost by its server", after_loss()});
}

bool redis_filter::impl::refresh(std::span<const std::uint64_t> shards) {
  commands.clear();
  for (const std::uint64_t shard : shards) {
    const std::string key = redis::header_key(description, shard);
    commands.begin(redis::slot_of(key), mode::write);
    commands.command({"HGETALL", key});
  }
  std::optional<std::uint64_t> missing;
  run(
      [&](std::size_t group, reply r) {
        auto& held = views[static_cast<std::size_t>(shards[group])];
        auto found = redis::view_of(description, r, where(), held.get());
        if (!found) {
          missing = shards[group];
          return;
        }
        // Reserved room in a layer that was closed is no longer usable.
        const bool is_repaired = held && held->repaired != found->repaired;
        if (held && held->numbers == found->numbers && !is_repaired) found->reserved = held->reserved;
        if (is_repaired) forget_copy(shards[group]);
        // The newest layer may have been closed before, if the server came back with an older state. A repair numbers
        // layers from the start.
        closed_layers_.retain(shards[group],
                              std::span(found->numbers).first(is_repaired ? 0 : found->numbers.size() - 1));
        held = std::make_unique<shard_view>(*std::move(found));
      },
      "read a shard's header");
  if (!missing) return false;
  if (to_come) throw_lost();
  // Either the filter was dropped, has expired or was replaced; or it has lost this shard.
  redis::meta now = current_meta();
  if (now.epoch == description.epoch) throw_gone(*missing, "its header " + redis::header_key(description, *missing));
  turn_to(std::move(now));
  return true;
}

bool redis_filter::impl::explain_stale(std::span<const std::uint64_t> shards, redis::access how,
                                       std::vector<std::uint64_t>* confirmed) {
  std::vector<redis::stamp> before;
  for (const std::uint64_t shard : shards) before.push_back(view(shard).stamp);
  if (how == redis::access::write) {
    // Bits written where no layer is any more would look like a part of a filter.
    const std::string epoch = std::to_string(description.epoch);
    commands.clear();
    for (const std::uint64_t shard : shards) {
      const shard_view& v = view(shard);
      const std::string header = redis::header_key(description, shard);
      commands.begin(redis::slot_of(header), mode::write);
      commands.start_script(redis::scripts::sweep, 2, 2);
      commands.word(header);
      commands.word(redis::layer_key(description, shard, v.newest()));
      commands.word(epoch);
      commands.word(v.layers.back().string_bytes());
    }
    run([](std::size_t, reply) {}, "check a shard");
  }
  if (refresh(shards)) return true;
  std::vector<std::uint64_t> unchanged;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const shard_view& v = view(shards[i]);
    if (v.stamp != before[i]) ++router.counters().description_changes;
    if (v.stamp != before[i] || how == redis::access::look_up_on_replica) continue;
    if (description.has_window() && may_be_over(v.newest())) {
      if (confirmed != nullptr) confirmed->push_back(shards[i]);
      continue;
    }
    unchanged.push_back(shards[i]);
  }
  throw_unless_back(unchanged, how);
  return false;
}

// A crash may have lost the layer after these shards were found to lack it, and its creator may have created it again
// with the same version.
void redis_filter::impl::throw_unless_back(std::span<const std::uint64_t> shards, redis::access how) {
  if (shards.empty()) return;
  commands.clear();
  for (const std::uint64_t shard : shards) {
    const std::string newest = redis::layer_key(description, shard, view(shard).newest());
    commands.begin(redis::slot_of(newest), mode::write);
    commands.command({"GETRANGE", newest, "-16", "-1"});
    commands.command({"STRLEN", newest});
  }
  std::optional<std::uint64_t> gone;
  run(
      [&](std::size_t group, reply r) {
        const shard_view& v = view(shards[group]);
        const bool is_refilled = how == redis::access::write && !v.repairing.empty();
        const bool has_stamp = r.text() == (is_refilled ? v.repairing : redis::text_of(v.stamp));
        const auto bytes = static_cast<std::uint64_t>(r.next().integer());
        if (!has_stamp || bytes != v.layers.back().string_bytes()) gone = shards[group];
      },
      "read the end of a layer");
  if (gone) throw_gone(*gone, redis::layer_key(description, *gone, view(*gone).newest()));
}

bool redis_filter::impl::turn_if_replaced() {
  if (to_come) throw_lost();  // it has taken the old filter's place, and the next replacement has begun
  redis::meta now = current_meta();
  if (now.epoch == description.epoch) return false;
  turn_to(std::move(now));
  return true;
}

redis_filter::impl* redis_filter::impl::replacement() {
  std::optional<redis::meta> coming = read_coming();
  if (turn_if_replaced()) return nullptr;
  if (!coming || coming->epoch == description.epoch) return nullptr;
  if (!next || next->description.epoch != coming->epoch) {
    if (!redis::hash_alike(coming->parameters.filter, description.parameters.filter)) {
      throw error(errc::incompatible, {"the filter is being replaced by one with another hash", where(),
                                       "the same hash", "", hint::wait_for_replacement});
    }
    next = std::make_unique<impl>(*this, *std::move(coming));
  }
  return next.get();
}

namespace {

// A number of a clock, at most some thousand years, so that sums do not overflow.
std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = problem == std::errc{} && end == text.data() + text.size() && value >= 0 && value <= 1LL << 40;
  return good ? std::optional(value) : std::nullopt;
}

}  // namespace

std::int64_t redis_filter::impl::server_now() {
  const std::int64_t now = milliseconds_since_start();
  if (!clock_read_ || now - *clock_read_ > clock_trusted) {
    redis::batch ask;  // not `commands`, which a caller may be filling
    ask.begin(redis::slot_of(redis::meta_key(address.name)), mode::write);
    ask.command({"TIME"});
    std::int64_t server = 0;
    router.run(ask, [&](std::size_t, reply r) {
      redis::throw_if_error(r, address, "read the clock");
      const auto seconds = r.size() == 2 ? number_of(r[0].text()) : std::nullopt;
      const auto microseconds = r.size() == 2 ? number_of(r[1].text()) : std::nullopt;
      if (!seconds || !microseconds) {
        throw error(errc::damaged, {"the server's clock is unreadable", where(), "seconds and microseconds", "", ""});
      }
      server = *seconds * 1000 + *microseconds / 1000;
    });
    clock_offset_ = server - milliseconds_since_start();
    clock_read_ = now;
  }
  return now + clock_offset_;
}

}  // namespace bloomery
