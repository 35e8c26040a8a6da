// chain_store: the keys and scripts of a Guava chain. No command or script uses two keys, so in a cluster each bitmap
// can be on the node of its own slot.
#include "redis/chain/chain_store.hpp"

#include "redis/chain/chain_keys.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <system_error>
#include <utility>

namespace bloomery::redis {
namespace {

constexpr std::uint64_t most_bits = std::uint64_t{1} << 32;  // the limit of a Redis string: 512 MiB
constexpr std::uint64_t most_bitmaps = 10'000;
// Number of bitmaps that opening a chain looks for. Later bitmaps without a cursor reveal a lost cursor. In a cluster
// that is addressed as one server, some of them are on other nodes, which is detected now instead of at growth.
constexpr std::uint64_t bitmaps_looked_for = 16;
constexpr std::chrono::milliseconds most_time = std::chrono::hours(24 * 365 * 1000);

// Creates or extends a bitmap to full length and keeps its bits: the last bit may have been set by now. ARGV[2] is its
// expiry in milliseconds since 1970, or 0.
constexpr script make_whole{R"(
if redis.call('STRLEN', KEYS[1]) * 8 < tonumber(ARGV[1]) then
  redis.call('SETBIT', KEYS[1], ARGV[1] - 1, 0)
end
if ARGV[2] ~= '0' then redis.call('PEXPIREAT', KEYS[1], ARGV[2]) end
return 1)"};

// Removes a key only if it has the length of a bitmap, because unrelated keys may have such names, and, if ARGV[2] is
// given, only if it has that number of ones.
constexpr script remove_what_is_left{R"(
if redis.pcall('STRLEN', KEYS[1]) ~= ARGV[1] / 8 then return 0 end
if ARGV[2] and redis.call('BITCOUNT', KEYS[1]) ~= tonumber(ARGV[2]) then return 0 end
return redis.call('UNLINK', KEYS[1]))"};

// Advances the cursor if it has the value that the caller expects ('' for missing). Returns its present value.
constexpr script move_cursor{R"(
local now = redis.call('GET', KEYS[1])
if (now or '') == ARGV[1] then now = tostring(redis.call('INCR', KEYS[1])) end
return now)"};

// Clears the first bitmap and keeps its expiry.
constexpr script empty_bitmap{R"(
local time = redis.call('PTTL', KEYS[1])
redis.call('DEL', KEYS[1])
redis.call('SETBIT', KEYS[1], ARGV[1] - 1, 0)
if time > 0 then redis.call('PEXPIRE', KEYS[1], time) end
return 1)"};

// Sets the cursor to the first bitmap.
constexpr script reset_cursor{R"(
local time = redis.call('PTTL', KEYS[1])
redis.call('SET', KEYS[1], '0')
if time > 0 then redis.call('PEXPIRE', KEYS[1], time) end
return 1)"};

// Stores n and p unless they exist. Returns the stored values.
constexpr script take_params{R"(
redis.call('HSETNX', KEYS[1], 'n', ARGV[1])
redis.call('HSETNX', KEYS[1], 'p', ARGV[2])
return redis.call('HMGET', KEYS[1], 'n', 'p'))"};

// The shortest decimal text that parses to the same number.
template <class Number>
std::string text_of(Number number) {
  std::array<char, 64> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {digits.data(), end};
}

// Parses a whole text; empty if that fails.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string describe(const redis_chain_params& p) {
  return "n = " + text_of(p.capacity) + ", p = " + text_of(p.target_fpr);
}

}  // namespace

chain_store::chain_store(const redis_address& address, redis_connection_options options)
    : way(address, std::move(options)), name(address.name), where(address.text()) {
  if (name.empty())
    throw error_of(errc::invalid_argument, "the name of the filter is missing", "/NAME in the address", "", "");
}

// ---- names ----------------------------------------------------------------------------------------------------------

std::string chain_store::bitmap_key(std::uint64_t i) const { return redis::bitmap_key(name, i); }

std::string chain_store::cursor_key() const { return redis::cursor_key(name); }

std::string chain_store::our_key() const { return chain_facts_key(name); }

std::string chain_store::ones_field(std::uint64_t i) { return "ones:" + std::to_string(i); }

// ---- commands -------------------------------------------------------------------------------------------------------

void chain_store::one(redis::mode mode, std::initializer_list<std::string_view> words) {
  commands.begin(slot_of(*(words.begin() + 1)), mode);
  commands.command(words);
}

void chain_store::one_script(const script& s, const std::string& key, std::initializer_list<std::string_view> args) {
  begin(key, mode::write);
  commands.start_script(s, 1, args.size());
  commands.word(key);
  for (const std::string_view arg : args) commands.word(arg);
}

// ---- what may be wrong ----------------------------------------------------------------------------------------------

struct chain_store::server_state {
  std::optional<std::uint64_t> cursor = {};
  std::array<std::uint64_t, bitmaps_looked_for> bytes = {};  // of the first bitmaps
  std::array<bool, bitmaps_looked_for> counted = {};         // "ones:<i>" exists
  std::optional<redis_chain_params> params = {};
};

error chain_store::error_of(errc code, std::string what, std::string expected, std::string found,
                            error_hint to_do) const {
  return {code, {std::move(what), where, std::move(expected), std::move(found), std::move(to_do)}};
}

error chain_store::not_found() const {
  return error_of(errc::not_found, "there is no such chain: missing key '" + bitmap_key(0) + "'", "", "",
                  hint::make_chain);
}

error chain_store::gone(const std::string& key) const {
  return error_of(errc::damaged, "a part of the chain is missing: the key '" + key + "'", "", "", hint::remove_chain);
}

std::optional<error> chain_store::lost_of(const std::vector<std::uint64_t>& lengths, bool has_cursor) {
  if (lengths[0] == 0) return lengths.size() == 1 ? not_found() : gone(bitmap_key(0));
  std::vector<std::uint64_t> early;  // short bitmaps that the Java implementation may have left
  for (std::uint64_t i = 1; i < lengths.size(); ++i) {
    if (lengths[i] == 0 && i + 1 < lengths.size()) return gone(bitmap_key(i));
    if (lengths[i] < geometry.bits / 8) early.push_back(i);
  }
  if (!has_cursor) return lost_of(look());
  if (early.empty()) return std::nullopt;

  commands.clear();
  begin(our_key(), mode::write);  // read everything from masters, including the lengths: replicas may lag
  commands.start(2 + early.size());
  commands.word("HMGET");
  commands.word(our_key());
  for (const std::uint64_t i : early) commands.word(ones_field(i));
  for (const std::uint64_t i : early) one(mode::write, {"STRLEN", bitmap_key(i)});
  std::vector<bool> counted(early.size()), whole(early.size());
  run("read the keys of a chain", [&](std::size_t group, const reply& r) {
    for (std::size_t i = 0; group == 0 && i < r.size() && i < early.size(); ++i) counted[i] = !r[i].is_nil();
    if (group > 0) whole[group - 1] = count_in(r) >= geometry.bits / 8;
  });
  for (std::size_t i = 0; i < early.size(); ++i) {
    if (counted[i] && !whole[i]) return gone(bitmap_key(early[i]));
  }
  return std::nullopt;
}

void chain_store::check_length(std::uint64_t i, std::uint64_t bytes) const {
  const std::uint64_t ours = geometry.bits / 8;
  if (bytes <= ours && (i > 0 || bytes == ours)) return;
  throw error_of(errc::incompatible, "the bitmap '" + bitmap_key(i) + "' was not created for " + describe(params),
                 std::to_string(geometry.bits) + " bits", std::to_string(8 * bytes), hint::give_chain_params);
}

std::optional<std::uint64_t> chain_store::cursor_in(const reply& r) const {
  if (r.is_nil()) return std::nullopt;
  const auto number = number_in<std::uint64_t>(r.text());
  if (!number || *number >= most_bitmaps || std::to_string(*number) != r.text()) {
    throw error_of(errc::incompatible, "the key '" + cursor_key() + "' is not the cursor of a chain",
                   "a number from 0 to " + std::to_string(most_bitmaps - 1), std::string(r.text().substr(0, 40)),
                   hint::choose_another_name);
  }
  return number;
}

std::int64_t chain_store::time_in(const reply& r) const {
  const std::int64_t seconds = r.size() == 2 ? number_in<std::int64_t>(r[0].text()).value_or(0) : 0;
  const std::int64_t microseconds = r.size() == 2 ? number_in<std::int64_t>(r[1].text()).value_or(0) : 0;
  if (seconds <= 0 || seconds > most_time.count() / 1000 || microseconds < 0 || microseconds >= 1'000'000) {
    throw error_of(errc::io, "the server's reply to TIME is not a time", "", "", "");
  }
  return seconds * 1000 + microseconds / 1000;
}

std::uint64_t chain_store::count_in(const reply& r) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(r.integer(), 0));
}

// ---- creating and opening -------------------------------------------------------------------------------------------

void chain_store::take(const redis_chain_params& p) {
  params = p;
  geometry = rule.geometry_for(p.capacity, p.target_fpr);
  if (geometry.bits > most_bits) {
    throw error_of(errc::too_large, "the bitmap is longer than a Redis string", "at most 4294967296 bits",
                   std::to_string(geometry.bits), hint::use_smaller_chain);
  }
}

std::optional<redis_chain_params> chain_store::params_in(const reply& n_text, const reply& p_text) const {
  if (n_text.is_nil() && p_text.is_nil()) return std::nullopt;
  const auto n = number_in<std::uint64_t>(n_text.text());
  const auto p = number_in<double>(p_text.text());
  if (!n || !p || *n == 0 || !(*p > 0 && *p < 1)) {
    throw error_of(errc::damaged, "the key '" + our_key() + "' does not contain n and p",
                   "n of at least 1, p in (0, 1)", "",
                   error_hint(hint::give_chain_params, "remove that key, and give n and p"));
  }
  return redis_chain_params{*n, *p};
}

chain_store::server_state chain_store::look() {
  server_state f;
  commands.clear();
  one(mode::write, {"GET", cursor_key()});  // read everything from masters
  begin(our_key(), mode::write);
  commands.start(4 + f.counted.size());
  commands.word("HMGET");
  commands.word(our_key());
  commands.word("n");
  commands.word("p");
  for (std::uint64_t i = 0; i < f.counted.size(); ++i) commands.word(ones_field(i));
  for (std::uint64_t i = 0; i < f.bytes.size(); ++i) one(mode::write, {"STRLEN", bitmap_key(i)});
  way.run(commands, [&](std::size_t group, const reply& r) {
    // Unrelated keys with names of later bitmaps only matter when the chain grows.
    if (group > 2 && r.is_error() && r.text().starts_with("WRONGTYPE")) return;
    throw_if_error(r, way.address(), "search for a chain");
    if (group == 0) f.cursor = cursor_in(r);
    if (group == 1 && r.size() == 2 + f.counted.size()) {
      f.params = params_in(r[0], r[1]);
      for (std::size_t i = 0; i < f.counted.size(); ++i) f.counted[i] = !r[2 + i].is_nil();
    }
    if (group >= 2) f.bytes[group - 2] = count_in(r);
  });
  return f;
}

// Without its cursor, a chain that has grown looks like one that has not. Counts alone prove little, because the Java
// implementation leaves them when it resets a chain.
std::optional<error> chain_store::lost_of(const server_state& f) const {
  if (f.bytes[0] == 0 && f.cursor.value_or(0) > 0) return gone(bitmap_key(0));
  for (std::size_t i = 1; i < f.bytes.size() && f.bytes[0] > 0 && !f.cursor; ++i) {
    if (f.bytes[i] > 0 && f.counted[i]) return gone(cursor_key());
  }
  return std::nullopt;
}

chain_store::server_state chain_store::look_until_whole() {
  server_state f;
  until_whole([&] {
    f = look();
    return lost_of(f);
  });
  return f;
}

void chain_store::check_same(const redis_chain_params& there) const {
  if (there == params) return;
  throw error_of(
      errc::incompatible, "a chain with other n and p, or the rest of one, exists", describe(params), describe(there),
      error_hint(hint::give_chain_params, "use these, choose another name, or remove the key '" + our_key() + "'"));
}

std::uint64_t chain_store::create(const redis_chain_params& wanted) {
  take(wanted);
  const server_state f = look_until_whole();
  if (f.bytes[0] > 0) check_length(0, f.bytes[0]);
  if (f.params) check_same(*f.params);
  const bool some_left = std::any_of(f.bytes.begin() + 1, f.bytes.end(), [](std::uint64_t bytes) { return bytes > 0; });
  if (f.bytes[0] == 0 && some_left) remove_what_others_left();
  store_params();
  commands.clear();
  one(mode::write, {"SET", cursor_key(), "0", "NX"});
  run("create a chain");
  if (f.bytes[0] == 0) make_bitmap(0, end_of_chain().value_or(0));
  return f.cursor.value_or(0);
}

// Removes the rest of a chain that expired or was dropped incompletely. Another client may create and fill a new chain
// meanwhile, so a bitmap is removed only if its number of ones has not changed since the first bitmap was missing.
void chain_store::remove_what_others_left() {
  bool more = true;
  for (std::uint64_t from = 1; more && from < most_bitmaps; from += bitmaps_looked_for) {
    std::array<std::optional<std::uint64_t>, bitmaps_looked_for> ones;
    commands.clear();
    for (std::uint64_t i = 0; i < ones.size(); ++i) one(mode::write, {"BITCOUNT", bitmap_key(from + i)});
    way.run(commands, [&](std::size_t group, const reply& r) {
      if (r.is_error() && r.text().starts_with("WRONGTYPE")) return;
      throw_if_error(r, way.address(), "count bits");
      ones[group] = count_in(r);
    });
    bool is_made = false;
    commands.clear();
    one(mode::write, {"STRLEN", bitmap_key(0)});
    run("search for a chain", [&](std::size_t, const reply& r) { is_made = r.integer() != 0; });
    if (is_made) return;
    commands.clear();
    for (std::uint64_t i = 0; i < ones.size(); ++i) {
      if (!ones[i]) continue;
      one_script(remove_what_is_left, bitmap_key(from + i), {std::to_string(geometry.bits), std::to_string(*ones[i])});
    }
    more = false;
    run("remove bitmaps", [&](std::size_t, const reply& r) { more = more || r.integer() > 0; });
  }
}

// The first client stores n and p; others compare them with their own.
void chain_store::store_params() {
  std::optional<redis_chain_params> there;
  commands.clear();
  one_script(take_params, our_key(), {text_of(params.capacity), text_of(params.target_fpr)});
  run("create a chain", [&](std::size_t, const reply& r) {
    if (r.size() == 2) there = params_in(r[0], r[1]);
  });
  if (there) check_same(*there);
}

std::uint64_t chain_store::open(const std::optional<redis_chain_params>& known) {
  const server_state f = look_until_whole();
  if (f.bytes[0] == 0) throw not_found();
  if (!known && !f.params) {
    throw redis_chain_params_unknown(errc::invalid_argument,
                                     {"n and p of this chain are not stored", where,
                                      "n and p of the program that created it", "", hint::give_chain_params});
  }
  take(known ? *known : *f.params);
  if (f.params) check_same(*f.params);
  check_length(0, f.bytes[0]);
  return f.cursor.value_or(0);
}

std::uint64_t chain_store::read_cursor(redis::mode mode) {
  std::optional<std::uint64_t> now;
  commands.clear();
  one(mode, {"GET", cursor_key()});
  run("read the cursor", [&](std::size_t, const reply& r) { now = cursor_in(r); });
  return now ? *now : look_until_whole().cursor.value_or(0);
}

// ---- growth ---------------------------------------------------------------------------------------------------------

std::optional<std::int64_t> chain_store::end_of_chain() {
  std::int64_t left = 0, now = 0;
  commands.clear();
  begin(cursor_key(), mode::write);
  commands.command({"PTTL", cursor_key()});
  commands.command({"TIME"});  // on the same server
  run("read the end of a chain", [&](std::size_t, const reply& r) {
    left = r.integer();
    now = time_in(r.next());
  });
  if (left == -2) return std::nullopt;
  return left >= 0 ? now + left : 0;
}

void chain_store::make_bitmap(std::uint64_t i, std::int64_t end) {
  commands.clear();
  one_script(make_whole, bitmap_key(i), {std::to_string(geometry.bits), std::to_string(end)});
  run("create a bitmap");
}

bool chain_store::complete_bitmap(std::uint64_t i, bool has_cursor) {
  const std::optional<std::int64_t> end = end_of_chain();
  if (has_cursor && !end) return false;
  make_bitmap(i, end.value_or(0));
  return true;
}

std::uint64_t chain_store::grow(std::uint64_t cursor, bool has_cursor) {
  if (cursor + 1 >= most_bitmaps) {
    throw error_of(errc::too_large, "the chain cannot grow further",
                   "at most " + std::to_string(most_bitmaps) + " bitmaps", "", hint::make_larger_chain);
  }
  const std::optional<std::int64_t> end = end_of_chain();
  if (has_cursor && !end) return cursor;
  make_bitmap(cursor + 1, end.value_or(0));
  std::uint64_t now = cursor;
  commands.clear();
  one_script(move_cursor, cursor_key(), {has_cursor ? std::to_string(cursor) : ""});
  run("grow a chain", [&](std::size_t, const reply& r) { now = cursor_in(r).value_or(cursor); });
  // A concurrent expire() or persist() has changed only the bitmaps up to the old cursor.
  const std::int64_t end_now = end_of_chain().value_or(0);
  commands.clear();
  const std::string next = bitmap_key(cursor + 1);
  if (end_now > 0) one(mode::write, {"PEXPIREAT", next, std::to_string(end_now)});
  if (end_now == 0 && end.value_or(0) > 0) one(mode::write, {"PERSIST", next});
  if (!commands.empty()) run("grow a chain");
  return now;
}

// ---- the whole chain ------------------------------------------------------------------------------------------------

// Runs the command WORD key [argument] for each bitmap, including those that are added meanwhile.
void chain_store::for_all_bitmaps(std::string_view to_do, std::string_view word, const std::string& argument) {
  for (std::uint64_t from = 0, to = read_cursor(mode::write); from <= to;) {
    commands.clear();
    for (; from <= to; ++from) {
      if (argument.empty()) {
        one(mode::write, {word, bitmap_key(from)});
      } else {
        one(mode::write, {word, bitmap_key(from), argument});
      }
    }
    run(to_do);
    to = read_cursor(mode::write);
  }
}

// Removes the bitmaps after the first one up to `last`, later ones left by an interrupted reset() or a lost cursor, and
// the counts of their ones.
void chain_store::remove_bitmaps_behind_first(std::uint64_t last) {
  std::uint64_t end = 1;
  for (bool more = true; more && end < most_bitmaps;) {
    more = false;
    commands.clear();
    for (const std::uint64_t to = std::max(last + 1, end + 3); end <= to; ++end) {
      if (end <= last) {
        one(mode::write, {"UNLINK", bitmap_key(end)});
      } else {
        one_script(remove_what_is_left, bitmap_key(end), {std::to_string(geometry.bits)});
      }
    }
    run("remove bitmaps", [&](std::size_t, const reply& r) { more = more || r.integer() > 0; });
  }
  commands.clear();
  begin(our_key(), mode::write);
  commands.start(static_cast<std::size_t>(2 + end));
  commands.word("HDEL");
  commands.word(our_key());
  for (std::uint64_t i = 0; i < end; ++i) commands.word(ones_field(i));
  run("remove bitmaps");
}

// The cursor without checks, for chains that will be removed.
std::uint64_t chain_store::cursor_or_none() {
  std::uint64_t now = 0;
  commands.clear();
  one(mode::write, {"GET", cursor_key()});
  run("read the cursor", [&](std::size_t, const reply& r) { now = cursor_in(r).value_or(0); });
  return now;
}

void chain_store::reset() {
  const std::uint64_t last = cursor_or_none();
  // In this order no reader misses a bitmap, and a concurrent writer writes to a bitmap that is then removed.
  commands.clear();
  one_script(empty_bitmap, bitmap_key(0), {std::to_string(geometry.bits)});
  run("empty a chain");
  commands.clear();
  one_script(reset_cursor, cursor_key(), {});
  run("empty a chain");
  remove_bitmaps_behind_first(last);
}

void chain_store::drop() {
  remove_bitmaps_behind_first(cursor_or_none());  // if interrupted here, the chain can be opened and dropped again
  commands.clear();
  one(mode::write, {"UNLINK", bitmap_key(0)});
  one(mode::write, {"UNLINK", cursor_key()});
  one(mode::write, {"UNLINK", our_key()});
  run("drop a chain");
}

void chain_store::expire(std::chrono::milliseconds time) {
  if (time.count() <= 0 || time > most_time) {
    throw error_of(errc::invalid_argument, "expiry out of range", "more than 0 ms, at most 1000 years",
                   std::to_string(time.count()), "");
  }
  std::int64_t at = 0;  // by the server's clock; the latest of several servers
  for (const auto& node : way.run_on_nodes({"TIME"})) {
    throw_if_error(node.reply(), way.address(), "read the clock");
    at = std::max(at, time_in(node.reply()));
  }
  const std::string when = std::to_string(at + time.count());
  // The cursor first: a client that grows the chain from now on uses its expiry for the new bitmap.
  read_cursor(mode::write);  // throws if it is lost, before anything changes that would hide this
  store_params();
  commands.clear();
  begin(cursor_key(), mode::write);
  commands.command({"SET", cursor_key(), "0", "NX"});
  commands.command({"PEXPIREAT", cursor_key(), when});
  one(mode::write, {"PEXPIREAT", our_key(), when});
  run("set the expiry of a chain");
  for_all_bitmaps("set the expiry of a chain", "PEXPIREAT", when);
}

void chain_store::persist() {
  commands.clear();
  one(mode::write, {"PERSIST", cursor_key()});
  one(mode::write, {"PERSIST", our_key()});
  run("remove the expiry of a chain");
  for_all_bitmaps("remove the expiry of a chain", "PERSIST", "");
}

}  // namespace bloomery::redis
