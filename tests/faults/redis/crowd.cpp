#include "faults/redis/crowd.hpp"

#include "redis/filters.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace bloomery_tests {
namespace {

using bloomery::errc;
using bloomery::error;
using bloomery::redis_filter;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t apart = 1'000'000'000;         // keys of different writers
constexpr std::uint64_t most_keys_of_writer = 40'000;  // then single keys only, so that the FPR stays
constexpr seconds patience{60};                        // for a call with its repetitions
constexpr std::size_t keys_per_lookup = 8192;

std::uint64_t size_of_next_call(std::mt19937_64& random, std::uint64_t written) {
  if (written > most_keys_of_writer) return 1;
  switch (random() % 8) {
    case 0: return 200 + random() % 2000;  // several groups per shard
    case 1:
    case 2:
    case 3: return 1 + random() % 64;
    default: return 1;
  }
}

void pause(std::mt19937_64& random, unsigned most_ms) {
  std::this_thread::sleep_for(milliseconds(1 + random() % most_ms));
}

}  // namespace

std::string name_of(filter_kind kind) {
  switch (kind) {
    case filter_kind::fixed: return "fixed";
    case filter_kind::growing: return "growing";
    case filter_kind::window: return "window";
    default: return "counting";
  }
}

bloomery::redis_params params_of(filter_kind kind, std::uint64_t shards) {
  bloomery::redis_params p = integers(100'000, 0.001);
  if (kind == filter_kind::growing) p = growing(200, 0.001);
  if (kind == filter_kind::window) p.filter.extra = bloomery::window_of_milliseconds(3'600'000);
  if (kind == filter_kind::counting) p.filter.layout = "counting";
  p.shards = shards;
  return p;
}

crowd::crowd(filter_kind kind, crowd_options options, std::uint64_t seed) : kind_(kind), options_(std::move(options)) {
  const auto address = [&](std::size_t client) { return options_.addresses[client % options_.addresses.size()]; };
  redis_filter::create(address(0), options_.params, options_.redis);
  for (std::size_t i = 0; i < options_.writers; ++i) {
    writers_.push_back(std::make_unique<writer>());
    writer& w = *writers_.back();
    w.base = (i + 1) * apart;
    bloomery::redis_options own = options_.redis;
    own.notes = [&w](const std::string& text) { w.in_doubt |= text.find("may have lost them") != text.npos; };
    w.filter.emplace(redis_filter::open(address(i), own));
  }
  for (std::size_t i = 0; i < options_.readers; ++i) {
    bloomery::redis_options own = options_.redis;
    if (i % 2 == 1) own.closed_layers_bytes = 0;
    readers_.push_back(std::make_unique<redis_filter>(redis_filter::open(address(i), own)));
  }
  for (const auto& w : writers_) threads_.emplace_back([this, &w = *w, s = seed++] { write(w, s); });
  for (const auto& f : readers_) threads_.emplace_back([this, &f = *f, s = seed++] { read(f, s); });
}

void crowd::end() {
  done_ = true;
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

bool crowd::permits(const error& e) const {
  return e.code() == errc::unavailable || (e.code() == errc::damaged && options_.may_be_damaged) ||
         (e.code() == errc::not_found && options_.may_be_missing);
}

void crowd::report(std::string problem) {
  const std::lock_guard lock(mutex_);
  problems_.push_back(std::move(problem));
}

// Repeats the call until it is acknowledged; nothing: it is given up.
std::optional<insertion> crowd::insert(writer& w, const std::vector<std::uint64_t>& keys) {
  const auto end = steady::now() + patience;
  while (true) {
    redis_filter& f = *w.filter;
    const bloomery::redis_counters before = f.counters();
    w.in_doubt = false;
    const auto began = steady::now();
    try {
      if (keys.size() == 1)
        f.insert(keys.front());
      else
        f.insert(std::span<const std::uint64_t>(keys));
      const auto returned = steady::now();
      const bloomery::redis_counters now = f.counters();
      return insertion{.first = keys.front(),
                       .count = keys.size(),
                       .began = began,
                       .returned = returned,
                       .reconnected = now.reconnects > before.reconnects,
                       .repeated = now.resent_groups > before.resent_groups,
                       .in_doubt = w.in_doubt};
    } catch (const error& e) {
      ++failed_;
      if (!permits(e)) {
        report(std::string("an insertion failed: ") + e.what());
        return std::nullopt;
      }
      if (e.code() == errc::damaged || done_) return std::nullopt;
      if (steady::now() > end) {
        report(std::string("insertions have failed for a minute: ") + e.what());
        return std::nullopt;
      }
    }
    std::this_thread::sleep_for(milliseconds(2));
  }
}

void crowd::write(writer& w, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  while (!done_) {
    const std::uint64_t written = w.begun;
    const std::uint64_t count = size_of_next_call(random, written);
    const auto keys = keys_from(w.base + written, count);
    w.begun = written + count;
    try {
      w.under_way = count;
      const std::optional<insertion> call = insert(w, keys);
      w.under_way = 0;
      if (call) {
        const std::lock_guard lock(w.mutex);
        w.done.push_back(*call);
        acknowledged_ += count;
      }
    } catch (const std::exception& e) {
      report(std::string("an insertion failed: ") + e.what());
    }
    pause(random, 20);
  }
}

// Looks up keys of random calls and of the latest ones, at most a few hundred keys at a time.
void crowd::read(redis_filter& f, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  while (!done_) {
    std::vector<std::uint64_t> keys;
    for (const auto& w : writers_) {
      const std::lock_guard lock(w->mutex);
      const std::size_t calls = w->done.size();
      for (std::size_t i = 0; i < 10 && i < calls; ++i) {
        const insertion& c = w->done[i < 5 ? calls - 1 - i : random() % calls];
        const std::uint64_t skipped = c.count > 64 ? random() % (c.count - 64) : 0;
        const auto some = keys_from(c.first + skipped, std::min<std::uint64_t>(c.count, 64));
        keys.insert(keys.end(), some.begin(), some.end());
      }
    }
    try {
      look_up(f, keys, nullptr);
    } catch (const error& e) {
      ++failed_;
      if (!permits(e)) report(std::string("a lookup failed: ") + e.what());
    } catch (const std::exception& e) {
      report(std::string("a lookup failed: ") + e.what());
    }
    pause(random, 16);
  }
}

insertion crowd::call_of(std::uint64_t key) const {
  const writer& w = *writers_[static_cast<std::size_t>(key / apart - 1)];
  const std::lock_guard lock(w.mutex);
  const auto behind = std::upper_bound(w.done.begin(), w.done.end(), key,
                                       [](std::uint64_t k, const insertion& call) { return k < call.first; });
  return *(behind - 1);
}

// Records keys that are absent. With `damaged`, keys are looked up one by one if the call reports damage.
void crowd::look_up(redis_filter& f, const std::vector<std::uint64_t>& keys, std::set<std::uint64_t>* damaged) {
  std::vector<std::uint64_t> bitmap((keys.size() + 63) / 64);
  try {
    f.may_contain(std::span<const std::uint64_t>(keys), bitmap);
  } catch (const error& e) {
    if (damaged == nullptr || (e.code() != errc::damaged && e.code() != errc::not_found) || !permits(e)) throw;
    if (e.code() == errc::not_found || keys.size() == 1) {
      damaged->insert(keys.begin(), keys.end());
      return;
    }
    for (const std::uint64_t key : keys) look_up(f, {key}, damaged);
    return;
  }
  const auto now = steady::now();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if ((bitmap[i / 64] >> (i % 64) & 1) != 0 || now - call_of(keys[i]).began >= options_.lifetime) continue;
    const std::lock_guard lock(mutex_);
    absent_.insert(keys[i]);
  }
}

bool crowd::is_in_a_long_call() const {
  return std::any_of(writers_.begin(), writers_.end(), [](const auto& w) { return w->under_way >= 200; });
}

std::vector<std::uint64_t> crowd::begun() const {
  std::vector<std::uint64_t> keys;
  for (const auto& w : writers_) {
    const auto own = keys_from(w->base, w->begun);
    keys.insert(keys.end(), own.begin(), own.end());
  }
  return keys;
}

std::vector<std::uint64_t> crowd::all_acknowledged() const {
  std::vector<std::uint64_t> keys;
  for (const auto& w : writers_) {
    for (const insertion& call : w->done) {
      const auto own = keys_from(call.first, call.count);
      keys.insert(keys.end(), own.begin(), own.end());
    }
  }
  return keys;
}

// Layers are not overfilled, although calls were repeated.
void crowd::judge_counts(const bloomery::redis_info& info, std::uint64_t acknowledged) {
  if (info.rate_now > options_.params.filter.target_fpr)
    report("the FPR is " + std::to_string(info.rate_now) + ", above its target");
  if (kind_ == filter_kind::growing && static_cast<double>(info.inserted) < 0.98 * static_cast<double>(acknowledged))
    report("room was taken for " + std::to_string(info.inserted) + " keys only");
}

void crowd::judge(tally& sum, const std::function<redis_filter()>& fresh) {
  const std::vector<std::uint64_t> keys = all_acknowledged();
  std::set<std::uint64_t> damaged;
  const auto look_up_all = [&](redis_filter& f) {
    for (std::size_t i = 0; i < keys.size(); i += keys_per_lookup) {
      const auto first = keys.begin() + static_cast<std::ptrdiff_t>(i);
      const auto last = keys.begin() + static_cast<std::ptrdiff_t>(std::min(keys.size(), i + keys_per_lookup));
      insist([&] { look_up(f, {first, last}, &damaged); });
    }
  };
  try {
    look_up_all(*readers_.front());
    insist([&] {
      redis_filter f = fresh();
      look_up_all(f);
      if (excuses_.empty() && !options_.may_be_damaged) judge_counts(f.info(), keys.size());
    });
  } catch (const error& e) {
    if (e.code() == errc::unavailable || !permits(e)) {
      report(std::string("acknowledged keys cannot be looked up: ") + e.what());
    } else {
      damaged.insert(keys.begin(), keys.end());
    }
  }

  ++sum.rounds;
  sum.acknowledged += keys.size();
  sum.damaged += damaged.size();
  sum.failed += failed_;
  for (const auto& w : writers_) {
    for (const insertion& call : w->done) sum.spanning += call.repeated || call.in_doubt ? 1 : 0;
  }
  std::uint64_t lost = 0;
  for (const std::uint64_t key : absent_) {
    const insertion call = call_of(key);
    const bool excused = std::any_of(excuses_.begin(), excuses_.end(), [&](const auto& e) { return e(call); });
    ++(excused ? sum.excused : sum.lost);
    if (excused || ++lost > 3) continue;
    report("key " + std::to_string(key) + " is absent: of a call of " + std::to_string(call.count) + " keys" +
           (call.reconnected ? ", which opened a connection again" : ""));
  }
  if (keys.empty()) report("no key was acknowledged: the round shows nothing");
  for (std::string& text : problems_) sum.problems.push_back(name_of(kind_) + ": " + std::move(text));
  problems_.clear();
}

}  // namespace bloomery_tests
