// Repair of a shared filter: refills the shards that have lost a part while the others stay in use.
//
// A lost shard is recreated empty under a random token. The newest layer has the token after its lines, in place of the
// shard version, and the header has it in `repairing`; the version in the header is different. So lookups consider the
// shard lost, whatever they know of it, and so do writers of versions without repairs. Other writers accept the token
// and use the version in the header. When all keys are inserted, one script writes one version to both places.
//
// If the repairing client dies, the shard stays as it is, and the next repair continues with it: keys that other
// clients have inserted since are kept. A lease in {NAME}:repair prevents two repairs from filling the same shards at
// the same time. Correctness does not depend on it, because each repair completes only shards that still have the token
// of that repair.
//
// In a filter that grows, a repaired shard starts again with its first layer. In a filter with a window, only lost
// generations are removed, and keys that are inserted again go to the present generation. If only the header of a shard
// is lost, it is written again.
// inserted again go to the present one. Where only the header of a shard is lost, it is written again.
#include "redis/filter/lifecycle.hpp"
#include "redis/filter/lookup.hpp"
#include "redis/filter/scripts.hpp"

#include <bloomery/error.hpp>
#include <bloomery/layouts/sliding.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace bloomery {

using redis::each_part;
using redis::mode;
using redis::most_rounds;
using redis::reply;
using redis::shard_view;
using redis::throw_restless;

namespace {

constexpr std::chrono::milliseconds lease_time{15'000};
constexpr std::chrono::milliseconds lease_prolonged_after{4'000};

}  // namespace

enum class shard_state : std::uint8_t { whole, changed, lost, repairing, headless };

struct redis_filter::impl::shard_condition {
  std::uint64_t shard = 0;
  shard_state state = shard_state::lost;
  shard_view view = {};                  // of a headless shard: the layers that may exist
  std::vector<std::int64_t> whole = {};  // numbers of the complete layers
  std::string end = {};                  // of a headless shard: the bytes after the lines of its first layer
};

void redis_filter::impl::throw_replaced_in_repair() const {
  throw error(errc::locked, {"the filter was replaced during its repair", where(), "", "",
                             "no repair is needed: the new filter has all its shards"});
}

void redis_filter::impl::lease_repair() {
  const auto now = std::chrono::steady_clock::now();
  repair_work& work = *repair_;
  if (work.leased && now - *work.leased < lease_prolonged_after) return;
  const std::string key = redis::repair_key(address.name);
  bool ours = false;
  commands.clear();
  commands.begin(redis::slot_of(key), mode::write);
  commands.start_script(redis::scripts::lease, 1, 2);
  commands.word(key);
  commands.word(work.lease);
  commands.word(static_cast<std::uint64_t>(lease_time.count()));
  run([&](std::size_t, reply r) { ours = r.integer() == 1; }, "begin a repair");
  if (!ours) {
    throw error(errc::locked,
                {"another client is repairing the filter", where(), "", "",
                 error_hint(hint::try_again, "wait until it is done; if it was interrupted, try again in " +
                                                 std::to_string(lease_time.count() / 1000) + " s")});
  }
  work.leased = now;
}

// ---- finding lost shards --------------------------------------------------------------------------------------------

std::vector<redis_filter::impl::shard_condition> redis_filter::impl::examine(std::span<const std::uint64_t> shards) {
  const redis::meta& m = description;
  std::vector<shard_condition> all(shards.size());
  commands.clear();
  for (const std::uint64_t s : shards) {
    const std::string header = redis::header_key(m, s);
    commands.begin(redis::slot_of(header), mode::write);
    commands.command({"HGETALL", header});
  }
  run(
      [&](std::size_t i, reply r) {
        shard_condition& one = all[i];
        one.shard = shards[i];
        auto found = redis::view_of(m, r, where());
        one.state = found ? shard_state::lost : shard_state::headless;
        one.view = found ? *std::move(found) : redis::first_view(m, shards[i]);
      },
      "read a shard's header");
  if (m.has_window()) {
    const std::int64_t now = generation_now();
    for (shard_condition& one : all) {
      if (one.state != shard_state::headless) continue;
      one.view.numbers.clear();
      for (std::int64_t g = std::max<std::int64_t>(now - window_generations, 0); g <= now; ++g) {
        one.view.numbers.push_back(g);
      }
      one.view.layers.assign(one.view.numbers.size(), m.first);
    }
  }
  commands.clear();
  for (const shard_condition& one : all) {
    const shard_view& v = one.view;
    const std::string header = redis::header_key(m, one.shard);
    const bool headless = one.state == shard_state::headless;
    commands.begin(redis::slot_of(header), mode::write);
    for (std::size_t l = 0; l < v.numbers.size(); ++l) {
      commands.command({"STRLEN", redis::layer_key(m, one.shard, v, l)});
    }
    const std::int64_t stamped = headless ? m.first_generation : v.newest();
    commands.command({"GETRANGE", redis::layer_key(m, one.shard, stamped), "-16", "-1"});
    commands.command({"HGET", header, "stamp"});
  }
  run(
      [&](std::size_t i, reply r) {
        shard_condition& one = all[i];
        const shard_view& v = one.view;
        const bool headless = one.state == shard_state::headless;
        bool all_whole = true;
        for (std::size_t l = 0; l < v.numbers.size(); ++l, r = r.next()) {
          const bool is_whole = r.integer() == static_cast<std::int64_t>(v.layers[l].string_bytes());
          const bool is_over = may_be_over(v.numbers[l]);
          if (is_whole && !is_over) one.whole.push_back(v.numbers[l]);
          all_whole &= is_whole || (is_over && v.repairing.empty());
        }
        one.end = r.text();
        const std::string_view expected = v.repairing.empty() ? redis::text_of(v.stamp) : v.repairing;
        const bool has_stamp = one.end == expected || (v.repairing.empty() && may_be_over(v.newest()));
        const std::string_view stamp_now = r.next().text();
        if (headless) {
          if (!stamp_now.empty()) one.state = shard_state::changed;
        } else if (stamp_now != redis::text_of(v.stamp)) {
          one.state = shard_state::changed;
        } else if (all_whole && has_stamp) {
          one.state = v.repairing.empty() ? shard_state::whole : shard_state::repairing;
        } else if (!has_stamp) {
          std::erase(one.whole, v.newest());  // its bytes were written after it was lost
        }
      },
      "search for lost shards");
  return all;
}

// ---- begin ----------------------------------------------------------------------------------------------------------

// Writes the header of a shard whose layer is complete. Otherwise the header does not match the layers: the shard is
// lost, and other clients detect this. A filter that never grows has one layer, whatever changes were made since its
// creation; if that layer ends with a repair token, a repair was not finished. In any other filter, the first shard
// version shows that nothing was changed.
void redis_filter::impl::add_header(const shard_condition& found) {
  const redis::meta& m = description;
  const redis::stamp first = redis::first_stamp(m.epoch, found.shard);
  const bool is_there = std::find(found.whole.begin(), found.whole.end(), m.first_generation) != found.whole.end();
  const bool has_stamp = m.has_window() || m.grows() ? found.end == redis::text_of(first) : redis::is_stamp(found.end);
  const bool is_whole = is_there && has_stamp;
  std::vector<std::int64_t> numbers = {m.first_generation};
  if (m.has_window() && !is_whole) {
    numbers = found.whole;
    const std::int64_t now = generation_now();
    if (numbers.empty() || numbers.back() < now) numbers.push_back(now);
  }
  const redis::stamp fresh = redis::new_stamp();
  const std::string header = redis::header_key(m, found.shard);
  commands.begin(redis::slot_of(header), mode::write);
  commands.start_script(redis::scripts::make_header, 2, 8);
  commands.word(header);
  commands.word(redis::layer_key(m, found.shard, numbers.back()));
  commands.word(m.epoch);
  commands.word(is_whole ? std::string_view(found.end) : redis::text_of(fresh));
  commands.word(redis::text_of(numbers));
  commands.word(std::to_string(numbers.back()));
  commands.word(redis::text_of(m.first));
  commands.word(m.grows() ? m.first.capacity : 0);  // the count is unknown; this is the maximum
  commands.word(std::to_string(m.expires_at));
  commands.word(is_whole ? "1" : "0");
}

void redis_filter::impl::add_begin_repair(const shard_condition& found) {
  const redis::meta& m = description;
  const shard_view& v = found.view;
  std::int64_t newest = 0;
  std::vector<std::int64_t> numbers;
  std::vector<std::string> closed, gone;
  bool keeps_newest = false;
  if (m.has_window()) {
    newest = std::max(generation_now(), v.newest());
    numbers = found.whole;
    keeps_newest = !numbers.empty() && numbers.back() == newest;
    if (!keeps_newest) numbers.push_back(newest);
    for (const std::int64_t number : numbers) {
      if (number != newest) closed.push_back(redis::layer_key(m, found.shard, number));
    }
    for (const std::int64_t number : v.numbers) {
      if (std::find(numbers.begin(), numbers.end(), number) == numbers.end()) {
        gone.push_back(redis::layer_key(m, found.shard, number));
      }
    }
  } else {
    numbers = {0};
    for (std::int64_t i = 0; m.grows() && i < static_cast<std::int64_t>(redis::most_layers); ++i) {
      if (i != 0) gone.push_back(redis::layer_key(m, found.shard, i));
      gone.push_back(redis::closed_layer_key(m, found.shard, i));
    }
  }
  const std::string header = redis::header_key(m, found.shard);
  commands.begin(redis::slot_of(header), mode::write);
  commands.start_script(redis::scripts::begin_repair, 2 + closed.size() + gone.size(), 10);
  commands.word(header);
  commands.word(redis::layer_key(m, found.shard, newest));
  for (const std::string& name : closed) commands.word(name);
  for (const std::string& name : gone) commands.word(name);
  commands.word(redis::text_of(v.stamp));
  commands.word(redis::text_of(redis::new_stamp()));
  commands.word(redis::text_of(redis::new_repair_token()));
  commands.word(64 * m.first.lines);
  commands.word(redis::text_of(numbers));
  commands.word(std::to_string(newest));
  commands.word(redis::text_of(m.first));
  commands.word(std::to_string(m.has_window() ? m.end_of_generation(newest) : 0));
  commands.word(keeps_newest ? "1" : "0");
  commands.word(closed.size());
}

// Removes headers that were written after the filter was dropped or replaced, which would otherwise stay.
void redis_filter::impl::remove_headers_if_dropped() {
  try {
    if (current_meta().epoch == description.epoch) return;
  } catch (const error& e) {
    if (e.code() != errc::not_found) throw;
    unlink(description);
    throw;
  }
  unlink(description);
  throw_replaced_in_repair();
}

// Writes headers first: a replacement that is announced later marks them. @returns shards to be examined again
std::vector<std::uint64_t> redis_filter::impl::begin_repair(const std::vector<shard_condition>& conditions) {
  std::vector<std::uint64_t> again;
  commands.clear();
  for (const shard_condition& one : conditions) {
    if (one.state == shard_state::changed) again.push_back(one.shard);
    if (one.state != shard_state::headless) continue;
    add_header(one);
    again.push_back(one.shard);
  }
  if (!commands.empty()) {
    run([](std::size_t, reply) {}, "write the header of a shard");
    remove_headers_if_dropped();
  }
  if (read_coming()) {
    throw error(errc::locked,
                {"the filter is being replaced, which repairs it, too", where(), "", "", hint::wait_for_replacement});
  }
  std::vector<std::uint64_t> asked;
  commands.clear();
  for (const shard_condition& one : conditions) {
    if (one.state == shard_state::repairing) repair_->tokens[one.shard] = one.view.repairing;
    if (one.state != shard_state::lost) continue;
    if (description.counts()) {
      throw error(errc::incompatible,
                  {"a counting filter cannot be repaired, because keys of other clients would count twice", where(), "",
                   "shard " + std::to_string(one.shard) + " of " + std::to_string(description.shards()) + " is lost",
                   "replace the filter"});
    }
    add_begin_repair(one);
    asked.push_back(one.shard);
  }
  if (!commands.empty()) run([](std::size_t, reply) {}, "begin a repair");
  again.insert(again.end(), asked.begin(), asked.end());  // to learn their tokens, which may have changed
  std::sort(again.begin(), again.end());
  return again;
}

void redis_filter::impl::begin_repair() {
  each_part(description.shards(), [&](std::span<const std::uint64_t> part) {
    std::vector<std::uint64_t> todo(part.begin(), part.end());
    for (unsigned round = 0; !todo.empty(); ++round) {
      if (round == most_rounds) throw_restless(address);
      lease_repair();
      todo = begin_repair(examine(todo));
    }
  });
}

// ---- refill and end -------------------------------------------------------------------------------------------------

void redis_filter::impl::insert_into_lost(std::span<const std::uint64_t> hash64s, std::uint8_t* is_new) {
  lease_repair();
  if (description.epoch != repair_->epoch) throw_replaced_in_repair();
  std::fill_n(is_new, hash64s.size(), std::uint8_t{0});
  std::vector<std::uint64_t> some;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < hash64s.size(); ++i) {
    if (!repair_->tokens.contains(shard_of(hash64s[i]))) continue;
    some.push_back(hash64s[i]);
    which.push_back(i);
  }
  if (some.empty()) return;
  std::vector<std::uint8_t> answers(some.size());
  insert(some, answers.data());
  if (description.epoch != repair_->epoch) throw_replaced_in_repair();
  for (std::size_t i = 0; i < which.size(); ++i) is_new[which[i]] = answers[i];
}

void redis_filter::impl::end_repair() {
  std::vector<std::uint64_t> todo;
  for (const auto& [shard, token] : repair_->tokens) todo.push_back(shard);
  for (unsigned round = 0; !todo.empty(); ++round) {
    if (round == most_rounds) throw_restless(address);
    std::vector<std::uint64_t> part(todo.begin(),
                                    todo.begin() + static_cast<std::ptrdiff_t>(std::min(todo.size(), redis::together)));
    if (refresh(part)) throw_replaced_in_repair();
    std::vector<std::uint64_t> behind;
    for (const std::uint64_t s : part) {
      const bool is_behind = description.has_window() && !view(s).repairing.empty();
      if (is_behind && view(s).newest() < generation_now()) behind.push_back(s);
    }
    if (!behind.empty() && begin_generation(behind)) throw_replaced_in_repair();
    commands.clear();
    for (const std::uint64_t s : part) {
      const shard_view& v = view(s);
      if (v.repaired != repair_->tokens[s]) {
        throw error(errc::locked, {"another client has started to repair the filter again", where(), "", "",
                                   error_hint(hint::try_again, "wait until it is done, and repair the filter again")});
      }
      if (v.repairing.empty()) {
        std::erase(todo, s);
        continue;
      }
      const std::string header = redis::header_key(description, s);
      commands.begin(redis::slot_of(header), mode::write);
      commands.start_script(redis::scripts::end_repair, 2, 3);
      commands.word(header);
      commands.word(redis::layer_key(description, s, v.newest()));
      commands.word(redis::text_of(v.stamp));
      commands.word(redis::text_of(redis::new_stamp()));
      commands.word(v.repairing);
    }
    if (!commands.empty()) run([](std::size_t, reply) {}, "end a repair");
  }
  copied_.clear();  // restored headers have no copy of the description
  keep_copies();
}

std::vector<std::uint64_t> redis_filter::repair(const std::function<void(redis_filter& filter)>& fill) {
  impl* const b = impl_.get();
  b->refuse_in_fill();
  b->be_current();
  const auto work = std::make_shared<impl::repair_work>();
  const redis::stamp name = redis::new_stamp();
  work->epoch = b->description.epoch;
  work->lease.assign(redis::text_of(name));
  b->repair_ = work;
  struct ending {
    redis_filter& filter;
    impl* const b;
    impl::repair_work& work;
    ~ending() {
      work.is_over = true;
      if (filter.impl_.get() != b || !work.leased) return;
      try {
        b->withdraw(redis::repair_key(b->address.name), work.lease);
      } catch (const error&) {
        // The lease expires by itself.
      }
    }
  } const end{*this, b, *work};

  b->begin_repair();
  if (work->tokens.empty()) return {};
  std::vector<std::uint64_t> shards;
  for (const auto& [shard, token] : work->tokens) shards.push_back(shard);
  fill(*this);
  if (impl_.get() != b) {
    throw error(errc::invalid_argument, {"the function that refills the filter has moved it", "", "", "", ""});
  }
  if (b->description.epoch != work->epoch) b->throw_replaced_in_repair();
  b->end_repair();
  return shards;
}

}  // namespace bloomery
