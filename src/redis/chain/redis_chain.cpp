// Public API of redis_chain: delegates server data to chain_store, and lookups and inserts to chain_play.
#include "redis/chain/chain_play.hpp"
#include "redis/chain/chain_store.hpp"

#include <bloomery/detail/checks.hpp>
#include <bloomery/detail/generations.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/redis/chain.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace bloomery {

struct redis_chain::impl {
  impl(const redis_address& address, redis_connection_options options) : store(address, std::move(options)) {}

  redis::chain_store store;
  redis::chain_play play{store};
};

redis_chain::redis_chain(std::unique_ptr<impl> b) noexcept : impl_(std::move(b)) {}
redis_chain::redis_chain(redis_chain&&) noexcept = default;
redis_chain& redis_chain::operator=(redis_chain&&) noexcept = default;
redis_chain::~redis_chain() = default;

redis_chain redis_chain::create(const redis_address& address, const redis_chain_params& wanted,
                                redis_connection_options options) {
  auto b = std::make_unique<impl>(address, std::move(options));
  b->play.begin_at(b->store.create(wanted));
  return redis_chain(std::move(b));
}

redis_chain redis_chain::open(const redis_address& address, std::optional<redis_chain_params> known,
                              redis_connection_options options) {
  auto b = std::make_unique<impl>(address, std::move(options));
  b->play.begin_at(b->store.open(known));
  return redis_chain(std::move(b));
}

bool redis_chain::insert(std::string_view key) { return insert(std::span<const std::string_view>(&key, 1)) == 1; }

namespace {

void want_text(key_span keys) {
  if (keys.is_text()) return;
  const bool integers = keys.form() == key_span::form_of_keys::integers;
  throw error(errc::incompatible,
              {"the keys of a Guava chain are text", "", "text", integers ? "integers" : "hashes", ""});
}

}  // namespace

std::uint64_t redis_chain::insert(key_span keys, std::span<std::uint8_t> is_new) {
  detail::check_answers("redis_chain::insert", keys.size(), is_new.size());
  want_text(keys);
  std::array<std::uint8_t, redis::chain_play::most_keys_at_once> fresh;
  std::uint64_t all_new = 0;
  for (std::size_t at = 0; at < keys.size();) {
    const std::size_t n = std::min(redis::chain_play::most_keys_at_once, keys.size() - at);
    impl_->play.take(keys.part(at, n));
    const std::size_t done = impl_->play.insert_some(fresh.data());
    const auto end = fresh.begin() + static_cast<std::ptrdiff_t>(done);
    all_new += static_cast<std::uint64_t>(std::count(fresh.begin(), end, std::uint8_t{1}));
    if (!is_new.empty()) std::copy_n(fresh.begin(), done, is_new.data() + at);
    at += done;
  }
  return all_new;
}

bool redis_chain::may_contain(std::string_view key) {
  std::uint64_t word = 0;
  may_contain(std::span<const std::string_view>(&key, 1), {&word, 1});
  return word != 0;
}

void redis_chain::may_contain(key_span keys, std::span<std::uint64_t> bitmap) {
  detail::check_bitmap("redis_chain::may_contain", keys.size(), bitmap.size());
  want_text(keys);
  std::fill(bitmap.begin(), bitmap.end(), 0);
  for (std::size_t at = 0; at < keys.size();) {
    const std::size_t n = std::min(redis::chain_play::most_keys_at_once, keys.size() - at);
    impl_->play.take(keys.part(at, n));
    impl_->play.look_up(false);
    for (std::size_t i = 0; i < n; ++i, ++at) bitmap[at / 64] |= std::uint64_t{impl_->play.present(i)} << (at % 64);
  }
}

std::uint64_t redis_chain::growths() { return impl_->store.read_cursor(redis::mode::read); }

redis_chain_info redis_chain::info() {
  redis::chain_store& store = impl_->store;
  redis_chain_info found{.parameters = store.params, .geometry = store.geometry};
  impl_->play.take({});
  impl_->play.look_up(false);  // throws if a bitmap is missing
  found.growths = impl_->play.cursor();
  found.ones.resize(static_cast<std::size_t>(found.growths) + 1);
  std::int64_t time = -1;
  store.commands.clear();
  for (std::uint64_t i = 0; i <= found.growths; ++i) store.one(redis::mode::read, {"BITCOUNT", store.bitmap_key(i)});
  store.one(redis::mode::read, {"PTTL", store.bitmap_key(0)});
  store.run("count bits", [&](std::size_t group, const redis::reply& r) {
    if (group < found.ones.size()) {
      found.ones[group] = std::min(store.count_in(r), store.geometry.bits);
    } else {
      time = r.integer();
    }
  });
  double all_absent = 1;
  for (const std::uint64_t ones : found.ones) {
    found.keys += layouts::classic::keys_from_zeros(store.geometry, store.geometry.bits - ones);
    const double fill = static_cast<double>(ones) / static_cast<double>(store.geometry.bits);
    all_absent *= 1 - std::pow(fill, static_cast<double>(store.geometry.probes));
  }
  found.rate_now = 1 - all_absent;
  if (time >= 0) {
    found.expires_at = static_cast<std::int64_t>(milliseconds_since_1970()) + time;
  }
  return found;
}

const redis_chain_params& redis_chain::parameters() const noexcept { return impl_->store.params; }

const geometry& redis_chain::geometry() const noexcept { return impl_->store.geometry; }

void redis_chain::reset() {
  impl_->store.reset();
  impl_->play.begin_at(0);
}

void redis_chain::drop() {
  impl_->store.drop();
  impl_->play.begin_at(0);
}

void redis_chain::expire(std::chrono::milliseconds time) { impl_->store.expire(time); }

void redis_chain::persist() { impl_->store.persist(); }

}  // namespace bloomery
