// The check of a filter's description: when it happens, its result, and the restoration of a lost description.
#include "redis/filter/description_check.hpp"

#include "redis/filter/elapsed.hpp"
#include "redis/filter/impl.hpp"
#include "redis/filter/scripts.hpp"

#include <bloomery/error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace bloomery {

using redis::mode;
using redis::reply;

namespace {

constexpr std::chrono::milliseconds time_for_copies{1'000};

std::atomic<std::int64_t> clock_advance = 0;

std::int64_t check_clock() { return redis::milliseconds_since_start() + clock_advance; }

}  // namespace

void redis::advance_check_clock(std::chrono::milliseconds time) noexcept { clock_advance += time.count(); }

void redis_filter::impl::note(const std::string& text) const {
  if (options.notes) options.notes(text);
}

void redis_filter::impl::throw_not_found() const {
  throw error(errc::not_found,
              {"the filter no longer exists: it was dropped, or it has expired", where(), "", "", hint::build_again});
}

// ---- when -----------------------------------------------------------------------------------------------------------

void redis_filter::impl::begin_reading_meta() { read_at_ = check_clock(); }

void redis_filter::impl::begin_checks() {
  to_come = false;
  checked_at_ = read_at_;
  keep_copies();
}

// Reads headers of shards that the call uses. Headers are rarely read otherwise, so a full server would evict them.
void redis_filter::impl::touch_headers(std::size_t groups) {
  std::vector<std::uint16_t> slots;
  for (const redis::batch::group& g : commands.groups().first(groups)) slots.push_back(g.slot);
  std::sort(slots.begin(), slots.end());
  const std::uint64_t shards = description.shards();
  for (std::uint64_t i = 0; i < std::min(shards, redis::headers_per_check); ++i) {
    touched_ = touched_ + 1 < shards ? touched_ + 1 : 0;
    const std::string header = redis::header_key(description, touched_);
    const std::uint16_t slot = redis::slot_of(header);
    if (!std::binary_search(slots.begin(), slots.end(), slot)) continue;
    commands.begin(slot, mode::write);
    commands.command({"HGETALL", header});
  }
}

// Adds groups that read the description and headers if a check is due. @returns the number of the first group
std::optional<std::size_t> redis_filter::impl::add_check() {
  const std::int64_t now = check_clock();
  const std::int64_t last = check_ ? check_->read_at : checked_at_;
  if (to_come || commands.empty() || now - last < check_after_) return std::nullopt;
  check_.reset();
  begin_reading_meta();
  const std::size_t number = commands.groups().size();
  commands.begin(redis::slot_of(redis::meta_key(address.name)), mode::write);
  commands.command({"GET", redis::meta_key(address.name)});
  commands.command({"GET", redis::second_key(address.name)});
  touch_headers(number);
  return number;
}

void redis_filter::impl::take_check(reply first) {
  const reply second = first.next();
  check_ = check_result{read_at_, std::string(first.is_nil() ? second.text() : first.text()),
                        first.is_nil() || second.is_nil()};
}

void redis_filter::impl::read_check() {
  redis::batch ask;
  begin_reading_meta();
  ask.begin(redis::slot_of(redis::meta_key(address.name)), mode::write);
  ask.command({"GET", redis::meta_key(address.name)});
  ask.command({"GET", redis::second_key(address.name)});
  router.run(ask, [&](std::size_t, reply r) {
    redis::throw_if_error(r, address, "read the description");
    redis::throw_if_error(r.next(), address, "read the description");
    take_check(r);
  });
}

void redis_filter::impl::confirm(redis::access how) {
  while (!to_come) {
    if (!check_ && check_clock() - checked_at_ > redis::check_limit) read_check();
    if (!check_) return;
    const check_result found = *std::exchange(check_, std::nullopt);
    const bool is_write = how == redis::access::write;
    redis::meta now = found.text.empty() ? restore(true, is_write) : redis::meta::parse(found.text, address);
    const bool other = now.epoch != description.epoch;
    // Another filter of this name is being created. It has no shards yet, so this one may be used for the rest of the
    // minute.
    if (other && !now.ready && check_clock() - checked_at_ <= redis::check_limit) return;
    read_at_ = found.read_at;
    if (other) {
      turn_to(std::move(now));  // if it fails, the next call checks again
      throw redis::made_anew(errc::locked,
                             {"the filter was replaced during the call", where(), "", "", hint::try_again});
    }
    checked_at_ = read_at_;
    description.expires_at = now.expires_at;
    check_after_ = found.text.empty() ? redis::check_interval_after_loss
                                      : std::min(redis::check_interval, check_after_ + check_after_ / 8);
    if (!is_write || !description.ready) continue;
    if (found.one_is_missing && !found.text.empty()) write_second(now);
    keep_copies();
  }
}

// ---- a lost description ---------------------------------------------------------------------------------------------

// The reply of the script `restore`: its result, and the present description.
std::pair<std::int64_t, std::string> redis_filter::impl::write_if_missing(const redis::meta& m) {
  std::pair<std::int64_t, std::string> result{-1, ""};
  redis::batch write;
  begin_reading_meta();
  write.begin(redis::slot_of(redis::meta_key(address.name)), mode::write);
  write.start_script(redis::scripts::restore, 3, 2);
  write.word(redis::meta_key(address.name));
  write.word(redis::second_key(address.name));
  write.word(redis::mark_key(m.instance));
  write.word(m.text());
  write.word(std::to_string(m.expires_at));
  router.run(write, [&](std::size_t, reply r) {
    redis::throw_if_error(r, address, "restore the description of the filter");
    if (r.size() == 2) result = {r[0].integer(), std::string(r[1].text())};
  });
  if (result.first == 1) note("the description of the filter was lost and has been restored");
  return result;
}

// Writes the second copy. The result of this does not affect any answer.
void redis_filter::impl::write_second(const redis::meta& m) {
  try {
    write_if_missing(m);
  } catch (const error&) {
    // The next check tries again.
  }
}

redis_filter::impl::remains redis_filter::impl::read_remains() {
  remains found;
  const std::uint64_t shards = std::min(redis::shards_with_copy, description.shards());
  redis::batch ask;
  const std::string mark = redis::mark_key(description.instance);
  ask.begin(redis::slot_of(mark), mode::write);
  ask.command({"GET", mark});
  for (std::uint64_t s = 0; s < shards; ++s) {
    const std::string header = redis::header_key(description, s);
    ask.begin(redis::slot_of(header), mode::write);
    ask.command({"HGETALL", header});
    ask.command({"GETRANGE", redis::layer_key(description, s, view(s).newest()), "-16", "-1"});
  }
  const std::string epoch = std::to_string(description.epoch);
  router.run(ask, [&](std::size_t group, reply r) {
    redis::throw_if_error(r, address, "restore the description of the filter");
    if (group == 0) {
      found.dropped = !r.is_nil();
      return;
    }
    const reply version = r.next();
    redis::throw_if_error(version, address, "restore the description of the filter");
    if (version.text() == redis::text_of(view(group - 1).stamp)) found.has_shards = true;
    if (redis::field_of(r, "epoch") != epoch) return;
    found.has_shards = true;
    const std::string_view copy = redis::field_of(r, "meta");
    if (!copy.empty() && found.copy.empty()) found.copy = copy;
  });
  return found;
}

redis::meta redis_filter::impl::restore(bool has_shards, bool required) {
  remains found;
  try {
    found = read_remains();
  } catch (const error& e) {
    if (!has_shards || e.code() == errc::unavailable) throw;
  }
  if (found.dropped || !(has_shards || found.has_shards)) throw_not_found();
  redis::meta lost = description;
  if (!found.copy.empty()) {
    // The copy is newer than the description known here if another client has set the expiry.
    redis::meta copy = redis::meta::parse(found.copy, address);
    if (copy.epoch == description.epoch) lost = std::move(copy);
  }
  lost.ready = true;
  if (lost.expires_at != 0 && lost.expires_at <= server_now() + 1000) throw_not_found();
  try {
    const auto [done, text] = write_if_missing(lost);
    if (done < 0) throw_not_found();
    return redis::meta::parse(text, address);
  } catch (const error& e) {
    // A user that may only look up keys cannot restore anything. The shards exist, so answers are correct.
    if (required || (e.code() != errc::not_permitted && e.code() != errc::too_large)) throw;
    return lost;
  }
}

redis::meta redis_filter::impl::current_meta() {
  if (std::optional<redis::meta> now = read_meta()) return *std::move(now);
  return restore(false, false);
}

void redis_filter::impl::keep_copies() {
  std::string text = description.text();
  if (text == copied_) return;
  redis::batch write;
  for (std::uint64_t s = 0; s < std::min(redis::shards_with_copy, description.shards()); ++s) {
    const std::string header = redis::header_key(description, s);
    write.begin(redis::slot_of(header), mode::write);
    write.start_script(redis::scripts::keep_copy, 1, 2);
    write.word(header);
    write.word(description.epoch);
    write.word(text);
  }
  try {
    router.run(
        write, [](std::size_t, reply) {}, std::min(time_for_copies, options.connection.time));
    copied_ = std::move(text);
  } catch (const error&) {
    // The next check tries again. The filter can be used without copies.
  }
}

}  // namespace bloomery
