// chain_play: lookups and inserts in a Guava chain, and when it grows.
#include "redis/chain/chain_play.hpp"

namespace bloomery::redis {
namespace {

constexpr std::uint64_t probes_of_a_command = 2048;  // a quarter of a millisecond of server time
constexpr std::size_t bits_of_a_script = 1024;       // Lua's stack is limited to 8000 words, and each bit takes four
// For this many keys or more, three probes are read first, and the others only for keys whose first probes are all set:
// in a half-full bitmap one absent key of eight. This costs one more round trip and saves up to two thirds of the bits.
constexpr std::size_t many_keys = 64;
constexpr std::size_t first_probes = 3;
constexpr int most_tries = 6;

// Sets bits if the bitmap exists with a length of ARGV[1] bits. Returns the old bits, or 0 if it does not.
constexpr script set_bits{R"(
if redis.call('STRLEN', KEYS[1]) * 8 < tonumber(ARGV[1]) then return 0 end
local command = {'BITFIELD', KEYS[1]}
local n = 2
for i = 2, #ARGV do
  command[n + 1], command[n + 2], command[n + 3], command[n + 4] = 'SET', 'u1', ARGV[i], '1'
  n = n + 4
end
return redis.call(unpack(command)))"};

// Corrects the shared count by the server's BITCOUNT (ARGV[2]) from when the field was ARGV[3], and adds ARGV[4].
// Idempotent if another client makes the same correction at the same time.
constexpr script fix_count{R"(
local field = redis.call('HGET', KEYS[1], ARGV[1]) or '0'
if field == ARGV[3] or (tonumber(field) or -1) < tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end
return redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[4]))"};

}  // namespace

void chain_play::take(key_span keys) {
  keys_ = keys.size();
  positions_.resize(keys_ * store_.geometry.probes);
  for (std::size_t i = 0; i < keys_; ++i) {
    store_.rule.positions(keys.text(i), store_.geometry, {}, positions_.data() + i * store_.geometry.probes);
  }
}

void chain_play::begin_at(std::uint64_t cursor) {
  cursor_ = cursor;
  newest_ = {};
}

// Sets the cursor; discards the cached state if the newest bitmap has changed.
void chain_play::move_to(std::uint64_t now) {
  if (now != cursor_) begin_at(now);
}

// ---- reading --------------------------------------------------------------------------------------------------------

void chain_play::look_up(bool to_insert) {
  store_.until_whole([&] { return try_to_look_up(to_insert); });
}

// Returns an error if a part of the chain is missing.
std::optional<error> chain_play::try_to_look_up(bool to_insert) {
  present_.assign(keys_, 0);
  lengths_.assign(cursor_ + 1, 0);
  const std::optional<std::uint64_t> at_server = read_bitmaps(0, to_insert);
  const std::uint64_t before = cursor_;
  has_cursor_ = at_server.has_value();
  move_to(at_server.value_or(0));
  if (cursor_ < before) return store_.gone(store_.bitmap_key(before));  // the chain was reset meanwhile
  if (cursor_ > before) {
    lengths_.resize(cursor_ + 1, 0);
    read_bitmaps(before + 1, to_insert);
  }
  if (auto lost = store_.lost_of(lengths_, has_cursor_)) return lost;
  if (newest_.seen && lengths_.back() == 0) return store_.gone(store_.bitmap_key(cursor_));
  newest_.seen = lengths_.back() > 0;
  return std::nullopt;
}

// Reads the bitmaps from `from` up to the cursor, in requests of a few megabytes. Returns the server's cursor.
std::optional<std::uint64_t> chain_play::read_bitmaps(std::uint64_t from, bool to_insert) {
  if (to_insert) set_.assign(keys_ * store_.geometry.probes, 0);
  const std::uint64_t at_once = std::max<std::uint64_t>(1, 65'536 / (keys_ * store_.geometry.probes + 1));
  std::optional<std::uint64_t> now;
  for (; from <= cursor_; from += at_once) {
    now = read_bitmaps(from, std::min(from + at_once - 1, cursor_), to_insert);
  }
  return now;
}

std::optional<std::uint64_t> chain_play::read_bitmaps(std::uint64_t from, std::uint64_t to, bool to_insert) {
  const redis::mode mode = to_insert ? redis::mode::write : redis::mode::read;  // write: from the master
  const bool newest_too = to_insert && to == cursor_;
  const bool count = newest_too && newest_.count_is_due(store_.geometry);
  const std::size_t first =
      keys_ >= many_keys ? std::min<std::size_t>(first_probes, store_.geometry.probes) : store_.geometry.probes;
  const auto probes_in = [&](std::uint64_t i) { return newest_too && i == to ? store_.geometry.probes : first; };
  const auto step_in = [&](std::uint64_t i) { return std::max<std::size_t>(1, probes_of_a_command / probes_in(i)); };
  store_.commands.clear();
  store_.one(mode, {"GET", store_.cursor_key()});
  for (std::uint64_t i = from; i <= to; ++i) {
    const std::string key = store_.bitmap_key(i);
    const std::size_t step = step_in(i);
    store_.begin(key, mode);
    for (std::size_t at = 0; at < keys_; at += step) {
      ask_for_bits(
          key, std::min(step, keys_ - at), [&](std::size_t j) { return at + j; }, 0, probes_in(i));
    }
    store_.commands.command({"STRLEN", key});
    if (count && i == to) store_.commands.command({"BITCOUNT", key});
  }
  if (count) store_.one(mode, {"HGET", store_.our_key(), store_.ones_field(cursor_)});

  std::optional<std::uint64_t> now;
  std::uint64_t ones = 0;
  std::string field = "0";
  undecided_.clear();
  store_.run("read a chain", [&](std::size_t group, reply r) {
    const std::uint64_t i = from + group - 1;
    if (group == 0) {
      now = store_.cursor_in(r);
    } else if (i > to) {
      if (!r.is_nil()) field = r.text();
    } else {
      const std::size_t step = step_in(i);
      for (std::size_t at = 0; at < keys_; at += step, r = r.next()) {
        take_bits(r, i, at, std::min(step, keys_ - at), probes_in(i), newest_too && i == to);
      }
      lengths_[i] = store_.count_in(r);
      if (lengths_[i] > 0) store_.check_length(i, lengths_[i]);
      if (count && i == to) ones = store_.count_in(r.next());
    }
  });
  if (count) newest_.is_counted(ones, field);
  if (!undecided_.empty()) read_rest(first, mode);
  return now;
}

// Adds one command that reads the probes from `first` up to `last` of n keys, key_at(0) to key_at(n - 1).
template <class KeyAt>
void chain_play::ask_for_bits(const std::string& bitmap, std::size_t n, KeyAt key_at, std::size_t first,
                              std::size_t last) {
  store_.commands.start(2 + 3 * n * (last - first));
  store_.commands.word("BITFIELD_RO");
  store_.commands.word(bitmap);
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t probe = first; probe < last; ++probe) {
      store_.commands.word("GET");
      store_.commands.word("u1");
      store_.commands.word(positions_[key_at(j) * store_.geometry.probes + probe]);
    }
  }
}

void chain_play::check_bits(const reply& r, std::size_t count) const {
  if (r.size() == count) return;
  throw store_.error_of(errc::io, "the server sent a wrong number of bits", "", "", "");
}

// Handles the reply for the first `probes` probes of n keys from key `at` on, in bitmap i.
void chain_play::take_bits(const reply& r, std::uint64_t i, std::size_t at, std::size_t n, std::size_t probes,
                           bool keep) {
  check_bits(r, n * probes);
  for (std::size_t j = 0; j < n; ++j) {
    bool all = true;
    for (std::size_t probe = 0; probe < probes; ++probe) {
      const bool bit = r[j * probes + probe].integer() != 0;
      all = all && bit;
      if (keep) set_[(at + j) * probes + probe] = bit ? 1 : 0;
    }
    if (all && probes == store_.geometry.probes) present_[at + j] = 1;
    if (all && probes < store_.geometry.probes) undecided_.push_back({i, at + j});
  }
}

// Reads the other probes of keys whose first probes are all set.
void chain_play::read_rest(std::size_t first, redis::mode mode) {
  const std::size_t rest = store_.geometry.probes - first;
  const std::size_t step = std::max<std::size_t>(1, probes_of_a_command / rest);
  store_.commands.clear();
  std::vector<std::span<const key_in_bitmap>> parts;
  for (std::size_t at = 0; at < undecided_.size(); at += parts.back().size()) {
    const std::uint64_t i = undecided_[at].bitmap;
    std::size_t n = 1;
    while (n < step && at + n < undecided_.size() && undecided_[at + n].bitmap == i) ++n;
    parts.push_back(std::span(undecided_).subspan(at, n));
    store_.begin(store_.bitmap_key(i), mode);
    ask_for_bits(
        store_.bitmap_key(i), n, [&](std::size_t j) { return undecided_[at + j].key; }, first, store_.geometry.probes);
    store_.commands.command({"STRLEN", store_.bitmap_key(i)});  // again, since it may have been removed
  }
  store_.run("read a chain", [&](std::size_t group, const reply& r) {
    const auto& part = parts[group];
    check_bits(r, part.size() * rest);
    for (std::size_t j = 0; j < part.size(); ++j) {
      bool all = true;
      for (std::size_t probe = 0; probe < rest; ++probe) all = all && r[j * rest + probe].integer() != 0;
      if (all) present_[part[j].key] = 1;
    }
    const std::uint64_t i = part[0].bitmap;
    lengths_[i] = std::min(lengths_[i], store_.count_in(r.next()));
  });
}

// ---- inserting ------------------------------------------------------------------------------------------------------

std::size_t chain_play::insert_some(std::uint8_t* is_new) {
  for (int tries = 1; tries <= most_tries; ++tries) {
    look_up(true);
    if (is_new) std::fill_n(is_new, keys_, std::uint8_t{0});
    const plan p = play_through();
    if (!to_set_.empty() && !send(is_new)) continue;  // the chain was reset meanwhile, or the bitmap was lost
    if (!to_set_.empty() || p.grows) settle(p.grows);
    return p.keys;
  }
  throw store_.gone(store_.bitmap_key(cursor_));
}

// Simulates the insertion of the keys one by one.
chain_play::plan chain_play::play_through() {
  const std::size_t probes = store_.geometry.probes;
  plan p;
  to_set_.clear();
  fresh_.clear();
  for (; p.keys < keys_ && !p.grows; ++p.keys) {
    for (std::size_t i = p.keys * probes; present_[p.keys] == 0 && i < (p.keys + 1) * probes; ++i) {
      if (set_[i] == 0 && fresh_.insert(positions_[i]).second) to_set_.push_back({p.keys, positions_[i]});
    }
    p.grows = over_half(newest_.ones + to_set_.size());
  }
  return p;
}

// Sets the bits of the plan that are still clear; set bits stay set. False: the bitmap was removed since its bits were
// read.
bool chain_play::send(std::uint8_t* is_new) {
  const std::string key = store_.bitmap_key(cursor_);
  const bool is_whole = lengths_[cursor_] == store_.geometry.bits / 8;
  if (!is_whole && !store_.complete_bitmap(cursor_, has_cursor_)) return false;
  store_.commands.clear();
  add_to_count(to_set_.size());
  for (std::size_t at = 0; at < to_set_.size(); at += bits_of_a_script) {
    const auto part = std::span(to_set_).subspan(at, std::min(bits_of_a_script, to_set_.size() - at));
    store_.begin(key, mode::write);
    store_.commands.start_script(set_bits, 1, 1 + part.size());
    store_.commands.word(key);
    store_.commands.word(store_.geometry.bits);
    for (const bit_to_set& bit : part) store_.commands.word(bit.position);
  }

  bool there = true;
  std::uint64_t shared = 0;
  store_.run("insert into a chain", [&](std::size_t group, const reply& r) {
    if (group == 0) {
      shared = store_.count_in(r);
      return;
    }
    const auto part = std::span(to_set_).subspan((group - 1) * bits_of_a_script);
    if (r.is(reply_type::integer)) {
      there = false;
      return;
    }
    check_bits(r, std::min(bits_of_a_script, part.size()));
    const bool was_repeated = store_.way.may_have_run_twice(group);
    for (std::size_t i = 0; is_new && i < r.size(); ++i) {
      std::uint8_t& answer = is_new[part[i].key];
      if (r[i].integer() == 0) answer = 1;
      if (was_repeated && answer == 0) answer = maybe_new;
    }
  });
  newest_.fix = false;
  newest_.ones = shared;
  if (!there) newest_ = {.seen = true};
  return there;
}

void chain_play::settle(bool count_is_due) {
  if (count_is_due || over_half(newest_.ones)) count();  // other clients insert, too
  if (over_half(newest_.ones)) move_to(store_.grow(cursor_, has_cursor_));
}

// Adds to the shared count of ones of the newest bitmap; the reply is the new count.
void chain_play::add_to_count(std::uint64_t ones) {
  if (newest_.fix) {
    store_.one_script(fix_count, store_.our_key(),
                      {store_.ones_field(cursor_), std::to_string(newest_.ones), newest_.field, std::to_string(ones)});
  } else {
    store_.one(redis::mode::write, {"HINCRBY", store_.our_key(), store_.ones_field(cursor_), std::to_string(ones)});
  }
}

// Lets the server count the ones of the newest bitmap.
void chain_play::count() {
  std::uint64_t ones = 0;
  std::string field = "0";
  store_.commands.clear();
  store_.one(redis::mode::write, {"BITCOUNT", store_.bitmap_key(cursor_)});
  store_.one(redis::mode::write, {"HGET", store_.our_key(), store_.ones_field(cursor_)});
  store_.run("count bits", [&](std::size_t group, const reply& r) {
    if (group == 0) ones = store_.count_in(r);
    if (group == 1 && !r.is_nil()) field = r.text();
  });
  newest_.is_counted(ones, field);
}

}  // namespace bloomery::redis
