// Creation and opening of a shared filter.
#include "redis/filter/lifecycle.hpp"

#include <bloomery/error.hpp>

#include <memory>
#include <random>
#include <string>
#include <utility>

namespace bloomery {

using redis::check_expiry;
using redis::description_of;
using redis::mode;
using redis::reply;

namespace {

std::uint64_t new_epoch() {
  std::random_device random;
  for (;;) {
    const std::uint64_t epoch = std::uint64_t{random()} << 32 | random();
    if (epoch != 0) return epoch;
  }
}

std::string growth_text(const redis_params& p) {
  switch (p.growth) {
    case redis_growth::none: return "none";
    case redis_growth::to_maximum: return "to " + std::to_string(p.maximum) + " keys";
    case redis_growth::unlimited: break;
  }
  return "unlimited";
}

// The first field in which the existing filter differs from the wanted one; empty if there is none. With `any_hash`,
// the caller named no hash and accepts that of the existing filter, which an earlier version may have created.
error_text difference_of(const redis_params& there, const redis_params& wanted, bool any_hash) {
  const auto differ = [](const char* what, std::string expected, std::string found) {
    return error_text{what, "", std::move(expected), std::move(found), ""};
  };
  const params& a = there.filter;
  const params& b = wanted.filter;
  if (a.layout != b.layout) return differ("layout", b.layout, a.layout);
  if (!any_hash && a.hash != b.hash) return differ("hash", b.hash, a.hash);
  if (a.keys != b.keys) return differ("keys", name_of(b.keys), name_of(a.keys));
  if (a.seed != b.seed) return differ("seed", std::to_string(b.seed), std::to_string(a.seed));
  if (a.key_check != b.key_check) return differ("secret", key_check_text(b.key_check), key_check_text(a.key_check));
  if (a.capacity != b.capacity) return differ("capacity", std::to_string(b.capacity), std::to_string(a.capacity));
  if (a.target_fpr != b.target_fpr) {
    return differ("target FPR", std::to_string(b.target_fpr), std::to_string(a.target_fpr));
  }
  if (a.window() != b.window()) return differ("window", b.window().text(), a.window().text());
  if (growth_text(there) != growth_text(wanted)) return differ("growth", growth_text(wanted), growth_text(there));
  if (a.geometry != b.geometry || there.shards != wanted.shards) {
    return differ("size", std::to_string(b.geometry.bits) + " bits in " + std::to_string(wanted.shards) + " shards",
                  std::to_string(a.geometry.bits) + " bits in " + std::to_string(there.shards) + " shards");
  }
  return {};
}

}  // namespace

void redis::check_expiry(std::chrono::milliseconds time, hint to_do) {
  constexpr std::int64_t longest = std::int64_t{1} << 53;  // the range in which servers and scripts count exactly
  if (time.count() > 0 && time.count() <= longest) return;
  throw error(errc::invalid_argument,
              {"expiry out of range", "expiry", "1 ms to 2^53 ms", std::to_string(time.count()) + " ms", to_do});
}

redis::meta redis::description_of(const redis_plan& plan, std::string_view name) {
  redis::meta m;
  m.parameters = plan.parameters;
  m.parameters.filter.secret.reset();
  m.parameters.expires_in.reset();
  m.epoch = new_epoch();
  m.instance = redis::instance_of(name, m.epoch);
  m.first = plan.first;
  return m;
}

redis_filter redis_filter::create(const redis_address& address, const redis_params& wanted, redis_options options) {
  redis_params complete_params = wanted;
  if (options.secret) complete_params.filter.secret = options.secret;
  if (complete_params.filter.secret) options.secret = complete_params.filter.secret;
  const redis_plan plan = plan_redis(complete_params);
  if (wanted.expires_in) check_expiry(*wanted.expires_in);
  auto b = std::make_unique<impl>(address, std::move(options));
  const std::string key = redis::meta_key(address.name);
  for (bool is_first = true;; is_first = false) {
    if (std::optional<redis::meta> there = b->read_meta()) {
      error_text differs = difference_of(there->parameters, plan.parameters, wanted.filter.hash.empty());
      if (!differs.what.empty()) {
        differs.what = "another filter of this name exists: its " + differs.what + " differs";
        differs.where = address.text();
        differs.hint = hint::open_or_remove;
        throw error(errc::incompatible, std::move(differs));
      }
      return open(address, b->options);
    }
    if (is_first && b->restore_orphan()) continue;
    redis::meta m = description_of(plan, address.name);
    if (wanted.expires_in) m.expires_at = b->server_now() + wanted.expires_in->count();
    b->adopt(m);
    if (m.has_window()) {
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
    b->run([&](std::size_t, reply r) { made = !r.is_nil(); }, "create the filter");
    if (!made) continue;  // another client was faster
    try {
      return open(address, b->options);
    } catch (const error& e) {
      if (e.code() == errc::unavailable) throw;
      try {
        if (b->withdraw(key, text)) b->unlink(m);
      } catch (const error&) {
        // The next client that opens it continues from here.
      }
      throw;
    }
  }
}

redis_filter redis_filter::open(const redis_address& address, redis_options options) {
  auto b = std::make_unique<impl>(address, std::move(options));
  std::optional<redis::meta> found = b->read_meta();
  if (!found) {
    throw error(errc::not_found, {"there is no filter of this name", address.text(), "", "", hint::make_shared_filter});
  }
  const bool ready = found->ready;
  b->adopt(*std::move(found));
  if (!ready) {
    // Its creator is still active or was killed; creating shards twice does no harm.
    b->make_shards();
    const std::string before = b->description.text();
    b->description.ready = true;
    if (!b->exchange(before, b->description.text(), "")) {
      // Another client was faster, or the filter was dropped in between: leave no part of it behind.
      const std::optional<redis::meta> now = b->read_meta();
      if (!now || now->epoch != b->description.epoch) {
        b->unlink(b->description);
        throw error(errc::not_found,
                    {"the filter was removed during its creation", address.text(), "", "", hint::try_again});
      }
      b->description.expires_at = now->expires_at;
    }
    b->keep_copies();
  }
  return redis_filter(std::move(b));
}

}  // namespace bloomery
