// The chain of bitmaps. Two round trips a batch, three of many keys: bits of all its keys are read from all bitmaps, then
// what the newest one lacks is set. Between them the insertion is played through here, key by key, so that growth comes
// right after the very key that reaches half, as with the original.
//
// For that the ones of the newest bitmap must be known before. The server counts them once for each bitmap and client.
// From then on they are added up from the bits that were still clear, in a field of NAME-bloomery that all clients of this
// kind share. The original does not know it, so it may be too low, and two writers that set the same bit count it twice,
// so it may be too high. It decides nothing but when to count again: the server's BITCOUNT alone makes a chain grow.
#include "redis/batch.hpp"
#include "redis/chain_keys.hpp"
#include "redis/router.hpp"

#include <bloomery/error.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/redis_chain.hpp>
#include <bloomery/scheme.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>

namespace bloomery {
namespace {

constexpr std::uint64_t most_bits = std::uint64_t{1} << 32;  // of a Redis string: 512 MiB
constexpr std::uint64_t most_bitmaps = 10'000;
constexpr std::uint64_t probes_of_a_command = 2048;  // a quarter of a millisecond of the server's time
constexpr std::size_t most_keys_at_once = 1024;
// Of many keys three probes are read at first, and the others where these are set: in a bitmap that is half full, by one
// absent key of eight. It costs a round trip more, and saves up to two thirds of the bits.
constexpr std::size_t many_keys = 64;
constexpr std::size_t first_probes = 3;
constexpr std::chrono::milliseconds most_time = std::chrono::hours(24 * 365 * 1000);
constexpr int most_attempts = 6;  // when a bitmap is missing: 5 + 10 + 20 + 40 + 80 ms for a reset() to get through

// Makes a bitmap of full length, and leaves one alone: its last bit may be set by now.
constexpr redis::script make_bitmap{R"(
if redis.call('STRLEN', KEYS[1]) * 8 < tonumber(ARGV[1]) then
  redis.call('SETBIT', KEYS[1], ARGV[1] - 1, 0)
end
return 1)"};

// Moves the cursor on, if it still is where the caller thinks. Where it is now, and how long it lives.
constexpr redis::script move_cursor{R"(
local now = redis.call('GET', KEYS[1]) or '0'
if now == ARGV[1] then now = redis.call('INCR', KEYS[1]) end
return {tostring(now), redis.call('PTTL', KEYS[1])})"};

// Empties the first bitmap, whose end stays.
constexpr redis::script empty_bitmap{R"(
local time = redis.call('PTTL', KEYS[1])
redis.call('DEL', KEYS[1])
redis.call('SETBIT', KEYS[1], ARGV[1] - 1, 0)
if time > 0 then redis.call('PEXPIRE', KEYS[1], time) end
return 1)"};

// Back to the first bitmap.
constexpr redis::script reset_cursor{R"(
local time = redis.call('PTTL', KEYS[1])
redis.call('SET', KEYS[1], '0')
if time > 0 then redis.call('PEXPIRE', KEYS[1], time) end
return 1)"};

// Mends the shared count by what the server has counted (ARGV[2]) while the field was ARGV[3], and adds ARGV[4]. Another
// client may do the same at once: mended twice is mended once.
constexpr redis::script mend_count{R"(
local field = redis.call('HGET', KEYS[1], ARGV[1]) or '0'
if field == ARGV[3] or (tonumber(field) or -1) < tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end
return redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[4]))"};

// Takes n and p if there are none. Which there are then.
constexpr redis::script take_params{R"(
redis.call('HSETNX', KEYS[1], 'n', ARGV[1])
redis.call('HSETNX', KEYS[1], 'p', ARGV[2])
return redis.call('HMGET', KEYS[1], 'n', 'p'))"};

// The shortest digits that are read back as the same number.
template <class Number>
std::string text_of(Number number) {
  std::array<char, 64> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {digits.data(), end};
}

// All of a text, or nothing.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string describe(const redis_chain_params& p) {
  return "n = " + text_of(p.capacity) + ", p = " + text_of(p.target_rate);
}

}  // namespace

struct redis_chain::body {
  body(const redis_address& address, redis_connection_options options)
      : way(address, std::move(options)), name(address.name), where(address.text()) {
    if (name.empty())
      throw error(errc::invalid_argument, {"no name of a filter", where, "/NAME in the address", "", ""});
  }

  // ---- names --------------------------------------------------------------------------------------------------------

  std::string bitmap_key(std::uint64_t i) const { return redis::bitmap_key(name, i); }
  std::string cursor_key() const { return redis::cursor_key(name); }
  std::string our_key() const { return redis::chain_facts_key(name); }
  static std::string ones_field(std::uint64_t i) { return "ones:" + std::to_string(i); }

  // ---- commands -----------------------------------------------------------------------------------------------------

  void begin(const std::string& key, redis::mode mode) { commands.begin(redis::slot_of(key), mode); }

  // A group of one command, whose second word is the key.
  void one(redis::mode mode, std::initializer_list<std::string_view> words) {
    commands.begin(redis::slot_of(*(words.begin() + 1)), mode);
    commands.command(words);
  }

  void one_script(const redis::script& script, const std::string& key, std::initializer_list<std::string_view> args) {
    begin(key, redis::mode::write);
    commands.start_script(script, 1, args.size());
    commands.word(key);
    for (const std::string_view arg : args) commands.word(arg);
  }

  // Runs `commands`; replies that are errors are thrown, which ends the call.
  template <class Take>
  void run(std::string_view doing, Take take) {
    way.run(commands, [&](std::size_t group, redis::reply first) {
      redis::reply r = first;
      for (std::uint32_t i = 0; i < commands.groups()[group].commands; ++i, r = r.next()) {
        redis::throw_if_error(r, way.address(), doing);
      }
      take(group, first);
    });
  }
  void run(std::string_view doing) {
    run(doing, [](std::size_t, const redis::reply&) {});
  }

  // ---- what may be wrong --------------------------------------------------------------------------------------------

  [[noreturn]] void fail(errc code, std::string what, std::string expected, std::string found,
                         std::string way_out) const {
    throw error(code, {std::move(what), where, std::move(expected), std::move(found), std::move(way_out)});
  }

  [[noreturn]] void fail_not_found() const {
    fail(errc::not_found, "no such chain: there is no key '" + bitmap_key(0) + "'", "", "",
         "make it; if it was there, it has expired, or was dropped or evicted");
  }

  [[noreturn]] void fail_missing(std::uint64_t i) const {
    fail(errc::damaged, "a part of the chain is gone: the key '" + bitmap_key(i) + "'",
         std::to_string(cursor + 1) + " bitmaps", "", "see that the server evicts nothing, and make the chain again");
  }

  std::uint64_t cursor_in(const redis::reply& r) const {
    if (r.is_nil()) return 0;
    const auto number = number_in<std::uint64_t>(r.text());
    if (!number || *number >= most_bitmaps || std::to_string(*number) != r.text()) {
      fail(errc::incompatible, "the key '" + cursor_key() + "' is no cursor of a chain",
           "a number from 0 to " + std::to_string(most_bitmaps - 1), std::string(r.text().substr(0, 40)),
           "take another name");
    }
    return *number;
  }

  void check_length(std::uint64_t i, std::uint64_t bytes) const {
    const std::uint64_t ours = geometry.bits / 8;
    if (bytes <= ours && (i > 0 || bytes == ours)) return;  // one that nobody made before it was written to ends early
    fail(errc::incompatible, "the bitmap '" + bitmap_key(i) + "' was not made for " + describe(params),
         std::to_string(geometry.bits) + " bits", std::to_string(8 * bytes), "give the n and p that it was made with");
  }

  static std::uint64_t count_in(const redis::reply& r) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(r.integer(), 0));
  }

  // ---- making and opening -------------------------------------------------------------------------------------------

  void take(const redis_chain_params& p) {
    params = p;
    geometry = rule.geometry_for(p.capacity, p.target_rate);
    if (geometry.bits > most_bits) {
      fail(errc::too_large, "a bitmap beyond the length of a Redis string", "at most 4294967296 bits",
           std::to_string(geometry.bits), "take a smaller n: the chain grows by bitmaps of that size");
    }
  }

  struct what_is_there {
    std::uint64_t cursor = 0;
    std::uint64_t bytes = 0;  // of the first bitmap
    std::optional<redis_chain_params> params = {};
  };

  std::optional<redis_chain_params> params_in(const redis::reply& r) const {
    if (r.size() != 2 || (r[0].is_nil() && r[1].is_nil())) return std::nullopt;
    const auto n = number_in<std::uint64_t>(r[0].text());
    const auto p = number_in<double>(r[1].text());
    if (!n || !p || *n == 0 || !(*p > 0 && *p < 1)) {
      fail(errc::damaged, "the key '" + our_key() + "' holds no n and p", "n of at least 1, p in (0, 1)", "",
           "remove that key, and give n and p");
    }
    return redis_chain_params{*n, *p};
  }

  what_is_there look_for() {
    what_is_there f;
    const std::string first = bitmap_key(0), at = cursor_key(), ours = our_key();
    commands.clear();
    one(redis::mode::write, {"GET", at});  // all of them from masters
    one(redis::mode::write, {"STRLEN", first});
    one(redis::mode::write, {"HMGET", ours, "n", "p"});
    run("looking for a chain", [&](std::size_t group, const redis::reply& r) {
      if (group == 0) f.cursor = cursor_in(r);
      if (group == 1) f.bytes = count_in(r);
      if (group == 2) f.params = params_in(r);
    });
    if (f.bytes == 0 && f.cursor > 0) {
      cursor = f.cursor;
      fail_missing(0);
    }
    return f;
  }

  void check_same(const redis_chain_params& there) const {
    if (there == params) return;
    fail(errc::incompatible, "there is a chain with other n and p, or what is left of one", describe(params),
         describe(there), "take these, another name, or remove the key '" + our_key() + "'");
  }

  void create() {
    const what_is_there f = look_for();
    if (f.bytes > 0) check_length(0, f.bytes);
    store_params();
    const std::string first = bitmap_key(0), at = cursor_key();
    commands.clear();
    one_script(make_bitmap, first, {std::to_string(geometry.bits)});
    one(redis::mode::write, {"SET", at, "0", "NX"});
    run("making a chain");
    cursor = f.cursor;
  }

  // Whoever is first has n and p there; others find out whether they want the same.
  void store_params() {
    std::optional<redis_chain_params> there;
    commands.clear();
    one_script(take_params, our_key(), {text_of(params.capacity), text_of(params.target_rate)});
    run("making a chain", [&](std::size_t, const redis::reply& r) { there = params_in(r); });
    if (there) check_same(*there);
  }

  void open(const std::optional<redis_chain_params>& known) {
    const what_is_there f = look_for();
    if (f.bytes == 0) fail_not_found();
    if (!known && !f.params) {
      fail(errc::invalid_argument, "n and p of this chain are not stored", "both, as they were given where it was made",
           "", "give them");
    }
    take(known ? *known : *f.params);
    if (f.params) check_same(*f.params);
    check_length(0, f.bytes);
    cursor = f.cursor;
  }

  // ---- reading ------------------------------------------------------------------------------------------------------

  std::uint64_t read_cursor(redis::mode mode) {
    std::uint64_t now = 0;
    const std::string at = cursor_key();
    commands.clear();
    one(mode, {"GET", at});
    run("reading the cursor", [&](std::size_t, const redis::reply& r) { now = cursor_in(r); });
    return now;
  }

  // What is known of the newest bitmap is forgotten if it is another one now.
  void move_to(std::uint64_t now) {
    if (now == cursor) return;
    cursor = now;
    newest = {};
  }

  // Reads the bits of the first `keys` keys of `positions` from all bitmaps: who is present in one of them and, for an
  // insertion, which bits are set in the newest and, where that is due, its ones.
  void look_up(std::size_t keys, bool to_insert) {
    for (int attempt = 1;; ++attempt) {
      present.assign(keys, 0);
      lengths.assign(cursor + 1, 0);
      const std::uint64_t now = read_bitmaps(keys, 0, to_insert);
      bool whole = now >= cursor;  // else it was emptied meanwhile
      if (now > cursor) {
        const std::uint64_t from = cursor + 1;
        move_to(now);
        lengths.resize(cursor + 1, 0);
        read_bitmaps(keys, from, to_insert);
      }
      move_to(now);
      // The newest one may be missing as long as nobody has written to it.
      std::uint64_t i = 0;
      while (whole && i <= cursor && (lengths[i] > 0 || (i == cursor && i > 0 && !newest.exists))) ++i;
      if (whole && i > cursor) {
        newest.exists = lengths[cursor] > 0;
        return;
      }
      if (attempt == most_attempts) {
        if (cursor == 0) fail_not_found();
        fail_missing(i);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5 << (attempt - 1)));
    }
  }

  // The same of the bitmaps from `from` up to the cursor, some megabytes of requests at a time. Where the server has the
  // cursor.
  std::uint64_t read_bitmaps(std::size_t keys, std::uint64_t from, bool to_insert) {
    if (to_insert) set.assign(keys * geometry.probes, 0);
    const std::uint64_t at_once = std::max<std::uint64_t>(1, 65'536 / (keys * geometry.probes + 1));
    std::uint64_t now = cursor;
    for (; from <= cursor; from += at_once) {
      now = read_bitmaps(keys, from, std::min(from + at_once - 1, cursor), to_insert);
    }
    return now;
  }

  std::uint64_t read_bitmaps(std::size_t keys, std::uint64_t from, std::uint64_t to, bool to_insert) {
    const redis::mode mode = to_insert ? redis::mode::write : redis::mode::read;  // write: from the master
    const bool newest_too = to_insert && to == cursor;
    const bool count = newest_too && newest.count_is_due(geometry);
    const std::size_t first =
        keys >= many_keys ? std::min<std::size_t>(first_probes, geometry.probes) : geometry.probes;
    const auto probes_in = [&](std::uint64_t i) { return newest_too && i == to ? geometry.probes : first; };
    const auto step_in = [&](std::uint64_t i) { return std::max<std::size_t>(1, probes_of_a_command / probes_in(i)); };
    commands.clear();
    one(mode, {"GET", cursor_key()});
    for (std::uint64_t i = from; i <= to; ++i) {
      const std::string key = bitmap_key(i);
      const std::size_t step = step_in(i);
      begin(key, mode);
      for (std::size_t at = 0; at < keys; at += step) {
        ask_for_bits(
            key, std::min(step, keys - at), [&](std::size_t j) { return at + j; }, 0, probes_in(i));
      }
      commands.command({"STRLEN", key});
      if (count && i == to) commands.command({"BITCOUNT", key});
    }
    if (count) one(mode, {"HGET", our_key(), ones_field(cursor)});

    std::uint64_t now = 0, ones = 0;
    std::string field = "0";
    undecided.clear();
    run("reading a chain", [&](std::size_t group, redis::reply r) {
      const std::uint64_t i = from + group - 1;
      if (group == 0) {
        now = cursor_in(r);
      } else if (i > to) {
        if (!r.is_nil()) field = r.text();
      } else {
        const std::size_t step = step_in(i);
        for (std::size_t at = 0; at < keys; at += step, r = r.next()) {
          take_bits(r, i, at, std::min(step, keys - at), probes_in(i), newest_too && i == to);
        }
        lengths[i] = count_in(r);
        if (lengths[i] > 0) check_length(i, lengths[i]);
        if (count && i == to) ones = count_in(r.next());
      }
    });
    if (count) newest.is_counted(ones, field);
    if (!undecided.empty()) read_rest(first, mode);
    return now;
  }

  // One command for n keys, key_at(0) and so on: their probes from `first` up to `last`.
  template <class KeyAt>
  void ask_for_bits(const std::string& bitmap, std::size_t n, KeyAt key_at, std::size_t first, std::size_t last) {
    commands.start(2 + 3 * n * (last - first));
    commands.word("BITFIELD_RO");
    commands.word(bitmap);
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t probe = first; probe < last; ++probe) {
        commands.word("GET");
        commands.word("u1");
        commands.word(positions[key_at(j) * geometry.probes + probe]);
      }
    }
  }

  void check_bits(const redis::reply& r, std::size_t count) const {
    if (r.size() != count) fail(errc::io, "the server sent another number of bits than was asked for", "", "", "");
  }

  // The reply for the first `probes` probes of n keys from the key `at` on, in bitmap i.
  void take_bits(const redis::reply& r, std::uint64_t i, std::size_t at, std::size_t n, std::size_t probes, bool keep) {
    check_bits(r, n * probes);
    for (std::size_t j = 0; j < n; ++j) {
      bool all = true;
      for (std::size_t probe = 0; probe < probes; ++probe) {
        const bool bit = r[j * probes + probe].integer() != 0;
        all = all && bit;
        if (keep) set[(at + j) * probes + probe] = bit ? 1 : 0;
      }
      if (all && probes == geometry.probes) present[at + j] = 1;
      if (all && probes < geometry.probes) undecided.push_back({i, at + j});
    }
  }

  // The other probes of keys whose first ones are set.
  void read_rest(std::size_t first, redis::mode mode) {
    const std::size_t rest = geometry.probes - first;
    const std::size_t step = std::max<std::size_t>(1, probes_of_a_command / rest);
    commands.clear();
    std::vector<std::span<const key_in_bitmap>> parts;
    for (std::size_t at = 0; at < undecided.size(); at += parts.back().size()) {
      const std::uint64_t i = undecided[at].bitmap;
      std::size_t n = 1;
      while (n < step && at + n < undecided.size() && undecided[at + n].bitmap == i) ++n;
      parts.push_back(std::span(undecided).subspan(at, n));
      begin(bitmap_key(i), mode);
      ask_for_bits(
          bitmap_key(i), n, [&](std::size_t j) { return undecided[at + j].key; }, first, geometry.probes);
    }
    run("reading a chain", [&](std::size_t group, const redis::reply& r) {
      const auto& part = parts[group];
      check_bits(r, part.size() * rest);
      for (std::size_t j = 0; j < part.size(); ++j) {
        bool all = true;
        for (std::size_t probe = 0; probe < rest; ++probe) all = all && r[j * rest + probe].integer() != 0;
        if (all) present[part[j].key] = 1;
      }
    });
  }

  // ---- inserting ----------------------------------------------------------------------------------------------------

  bool over_half(std::uint64_t ones) const { return 2 * ones > geometry.bits; }

  // Inserts the keys of `positions` up to and with the one after which the chain grows. How many that are.
  std::size_t insert_some(std::size_t keys, std::uint8_t* is_new) {
    look_up(keys, true);
    if (is_new) std::fill_n(is_new, keys, std::uint8_t{0});

    // What would come if they were inserted one by one.
    std::size_t done = 0;
    std::uint64_t ones = newest.ones;
    bool grows = false;
    to_set.clear();
    fresh.clear();
    while (done < keys && !grows) {
      for (std::size_t i = done * geometry.probes; present[done] == 0 && i < (done + 1) * geometry.probes; ++i) {
        if (set[i] == 0 && fresh.insert(positions[i]).second) to_set.push_back({done, positions[i]});
      }
      ++done;
      grows = over_half(ones + to_set.size());
    }
    if (to_set.empty() && !grows) return done;

    // Bits that are set need not be sent: they stay set.
    const std::string key = bitmap_key(cursor);
    commands.clear();
    begin(key, redis::mode::write);
    const bool makes = !newest.exists;
    if (makes) {
      commands.start_script(make_bitmap, 1, 1);
      commands.word(key);
      commands.word(geometry.bits);
    } else {
      commands.command({"STRLEN", key});
    }
    for (std::size_t at = 0; at < to_set.size(); at += probes_of_a_command) {
      const auto part = std::span(to_set).subspan(at, std::min<std::size_t>(probes_of_a_command, to_set.size() - at));
      commands.start(2 + 4 * part.size());
      commands.word("BITFIELD");
      commands.word(key);
      for (const bit_to_set& bit : part) {
        commands.word("SET");
        commands.word("u1");
        commands.word(bit.position);
        commands.word("1");
      }
    }
    if (grows) commands.command({"BITCOUNT", key});
    add_to_count(to_set.size());

    std::uint64_t counted = 0, shared = 0;
    run("inserting into a chain", [&](std::size_t group, redis::reply r) {
      if (group == 1) {
        shared = count_in(r);
        return;
      }
      if (r.integer() == 0) fail_missing(cursor);
      r = r.next();
      for (std::size_t at = 0; at < to_set.size(); at += probes_of_a_command, r = r.next()) {
        for (std::size_t i = 0; is_new && i < r.size() && at + i < to_set.size(); ++i) {
          if (r[i].integer() == 0) is_new[to_set[at + i].key] = 1;
        }
      }
      if (grows) counted = count_in(r);
    });
    newest.exists = true;
    newest.mend = false;
    newest.ones = shared;
    if (grows) {
      newest.is_counted(counted, std::to_string(shared));
    } else if (over_half(shared)) {  // others have inserted, too
      count();
    }
    if (over_half(newest.ones)) grow();  // as the server has counted
    return done;
  }

  // The shared count of the newest bitmap's ones goes up; the reply is what it is then.
  void add_to_count(std::uint64_t ones) {
    if (newest.mend) {
      one_script(mend_count, our_key(),
                 {ones_field(cursor), std::to_string(newest.ones), newest.field, std::to_string(ones)});
    } else {
      one(redis::mode::write, {"HINCRBY", our_key(), ones_field(cursor), std::to_string(ones)});
    }
  }

  // Has the server count the newest bitmap.
  void count() {
    std::uint64_t ones = 0;
    std::string field = "0";
    commands.clear();
    one(redis::mode::write, {"BITCOUNT", bitmap_key(cursor)});
    one(redis::mode::write, {"HGET", our_key(), ones_field(cursor)});
    run("counting bits", [&](std::size_t group, const redis::reply& r) {
      if (group == 0) ones = count_in(r);
      if (group == 1 && !r.is_nil()) field = r.text();
    });
    newest.is_counted(ones, field);
  }

  // The next bitmap is there before the cursor shows it. The cursor moves for one of those who find the newest half full;
  // the others follow.
  void grow() {
    if (cursor + 1 >= most_bitmaps) {
      fail(errc::too_large, "the chain cannot grow any more", "at most " + std::to_string(most_bitmaps) + " bitmaps",
           "", "make one for more keys");
    }
    const std::string next = bitmap_key(cursor + 1);
    commands.clear();
    one_script(make_bitmap, next, {std::to_string(geometry.bits)});
    run("growing a chain");

    std::uint64_t now = cursor;
    std::int64_t time = -1;
    commands.clear();
    one_script(move_cursor, cursor_key(), {std::to_string(cursor)});
    run("growing a chain", [&](std::size_t, const redis::reply& r) {
      if (r.size() != 2) fail(errc::io, "the server's script has another reply than it should", "", "", "");
      now = cursor_in(r[0]);
      time = r[1].integer();
    });
    if (time > 0) {  // all of a chain ends at one time
      commands.clear();
      one(redis::mode::write, {"PEXPIRE", next, std::to_string(time)});
      run("growing a chain");
    }
    move_to(now);
  }

  // ---- all of it ----------------------------------------------------------------------------------------------------

  // For each bitmap of the chain one command: WORD key [argument]. Also for those that the chain gets meanwhile.
  void for_all_bitmaps(std::string_view doing, std::string_view word, const std::string& argument) {
    for (std::uint64_t from = 0, to = read_cursor(redis::mode::write); from <= to;) {
      commands.clear();
      for (; from <= to; ++from) {
        if (argument.empty()) {
          one(redis::mode::write, {word, bitmap_key(from)});
        } else {
          one(redis::mode::write, {word, bitmap_key(from), argument});
        }
      }
      run(doing);
      to = read_cursor(redis::mode::write);
    }
  }

  // Removes the bitmaps from `from` on: up to the cursor, and those behind it that an interrupted reset() has left.
  void remove_bitmaps(std::uint64_t from, std::uint64_t to) {
    for (bool more = true; more; from = to + 1, to = from + 3) {
      more = false;
      commands.clear();
      for (std::uint64_t i = from; i <= to; ++i) one(redis::mode::write, {"UNLINK", bitmap_key(i)});
      run("removing bitmaps", [&](std::size_t, const redis::reply& r) { more = more || r.integer() > 0; });
    }
  }

  struct key_in_bitmap {
    std::uint64_t bitmap;
    std::size_t key;  // its number in the batch
  };

  struct bit_to_set {
    std::size_t key;  // its number in the batch
    std::uint64_t position;
  };

  // The newest bitmap, as far as it is known here.
  struct state_of_newest {
    bool exists = false;           // it was seen
    bool counted = false;          // by the server, while this was open
    bool mend = false;             // the shared count was `field` then, and that is wrong
    std::uint64_t ones = 0;        // by the shared count
    std::uint64_t counted_at = 0;  // ones, when the server counted
    std::string field = {};

    void is_counted(std::uint64_t n, std::string shared) {
      counted = true;
      ones = counted_at = n;
      mend = shared != std::to_string(n);
      field = std::move(shared);
    }

    // At first, and each time an eighth of the way to half is done: the original may be writing, too.
    bool count_is_due(const bloomery::geometry& g) const {
      const std::uint64_t half = g.bits / 2;
      const std::uint64_t to_half = half > counted_at ? half - counted_at : 0;
      return !counted || ones >= counted_at + std::max<std::uint64_t>(to_half / 8, 8 * g.probes);
    }
  };

  const scheme& rule = *find_scheme("guava");
  redis::router way;
  std::string name;   // of the chain
  std::string where;  // for messages
  redis_chain_params params;
  bloomery::geometry geometry;
  std::uint64_t cursor = 0;
  state_of_newest newest;

  // Of the batch at work.
  redis::batch commands;
  std::vector<std::uint64_t> positions;     // k of each key
  std::vector<std::uint8_t> present;        // 1: in one of the bitmaps
  std::vector<std::uint8_t> set;            // the bits at `positions` in the newest one
  std::vector<std::uint64_t> lengths;       // of the bitmaps, bytes
  std::vector<key_in_bitmap> undecided;     // their first bits are set
  std::vector<bit_to_set> to_set;           // in the order of keys
  std::unordered_set<std::uint64_t> fresh;  // the positions in to_set

  void take_positions(std::span<const std::string_view> keys) {
    positions.resize(keys.size() * geometry.probes);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      rule.positions(keys[i], geometry, 0, positions.data() + i * geometry.probes);
    }
  }
};

redis_chain::redis_chain(std::unique_ptr<body> b) noexcept : body_(std::move(b)) {}
redis_chain::redis_chain(redis_chain&&) noexcept = default;
redis_chain& redis_chain::operator=(redis_chain&&) noexcept = default;
redis_chain::~redis_chain() = default;

redis_chain redis_chain::create(const redis_address& address, const redis_chain_params& wanted,
                                redis_connection_options options) {
  auto b = std::make_unique<body>(address, std::move(options));
  b->take(wanted);
  b->create();
  return redis_chain(std::move(b));
}

redis_chain redis_chain::open(const redis_address& address, std::optional<redis_chain_params> known,
                              redis_connection_options options) {
  auto b = std::make_unique<body>(address, std::move(options));
  b->open(known);
  return redis_chain(std::move(b));
}

bool redis_chain::insert(std::string_view key) {
  std::uint8_t is_new = 0;
  insert({&key, 1}, {&is_new, 1});
  return is_new != 0;
}

void redis_chain::insert(std::span<const std::string_view> keys, std::span<std::uint8_t> is_new) {
  assert(is_new.empty() || is_new.size() == keys.size());
  for (std::size_t at = 0; at < keys.size();) {
    const std::size_t n = std::min(most_keys_at_once, keys.size() - at);
    body_->take_positions(keys.subspan(at, n));
    at += body_->insert_some(n, is_new.empty() ? nullptr : is_new.data() + at);
  }
}

bool redis_chain::may_contain(std::string_view key) {
  std::uint64_t word = 0;
  may_contain({&key, 1}, {&word, 1});
  return word != 0;
}

void redis_chain::may_contain(std::span<const std::string_view> keys, std::span<std::uint64_t> bitmap) {
  assert(bitmap.size() >= keys.size() / 64 + (keys.size() % 64 != 0));
  std::fill(bitmap.begin(), bitmap.end(), 0);
  for (std::size_t at = 0; at < keys.size();) {
    const std::size_t n = std::min(most_keys_at_once, keys.size() - at);
    body_->take_positions(keys.subspan(at, n));
    body_->look_up(n, false);
    for (std::size_t i = 0; i < n; ++i, ++at) bitmap[at / 64] |= std::uint64_t{body_->present[i]} << (at % 64);
  }
}

std::uint64_t redis_chain::growths() { return body_->read_cursor(redis::mode::read); }

redis_chain_info redis_chain::info() {
  body& b = *body_;
  redis_chain_info found{.parameters = b.params, .geometry = b.geometry};
  b.take_positions({});
  b.look_up(0, false);  // all bitmaps are there
  found.growths = b.cursor;
  found.ones.resize(static_cast<std::size_t>(b.cursor) + 1);
  std::int64_t time = -1;
  b.commands.clear();
  for (std::uint64_t i = 0; i <= b.cursor; ++i) b.one(redis::mode::read, {"BITCOUNT", b.bitmap_key(i)});
  b.one(redis::mode::read, {"PTTL", b.bitmap_key(0)});
  b.run("counting bits", [&](std::size_t group, const redis::reply& r) {
    if (group < found.ones.size()) {
      found.ones[group] = std::min(body::count_in(r), b.geometry.bits);
    } else {
      time = r.integer();
    }
  });
  double all_absent = 1;
  for (const std::uint64_t ones : found.ones) {
    found.keys += classic::keys_from_zeros(b.geometry, b.geometry.bits - ones);
    const double fill = static_cast<double>(ones) / static_cast<double>(b.geometry.bits);
    all_absent *= 1 - std::pow(fill, static_cast<double>(b.geometry.probes));
  }
  found.rate_now = 1 - all_absent;
  if (time >= 0) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    found.expires_at = std::chrono::duration_cast<std::chrono::milliseconds>(now).count() + time;
  }
  return found;
}

const redis_chain_params& redis_chain::parameters() const noexcept { return body_->params; }

const geometry& redis_chain::geometry() const noexcept { return body_->geometry; }

void redis_chain::reset() {
  body& b = *body_;
  const std::uint64_t last = b.read_cursor(redis::mode::write);
  // In this order no reader misses a bitmap, and a writer who comes between writes to one that is then removed.
  b.commands.clear();
  b.one_script(empty_bitmap, b.bitmap_key(0), {std::to_string(b.geometry.bits)});
  b.run("emptying a chain");
  b.commands.clear();
  b.one_script(reset_cursor, b.cursor_key(), {});
  b.run("emptying a chain");
  b.remove_bitmaps(1, last + 1);
  b.commands.clear();
  b.begin(b.our_key(), redis::mode::write);
  for (std::uint64_t i = 0; i <= last; ++i) b.commands.command({"HDEL", b.our_key(), body::ones_field(i)});
  b.run("emptying a chain");
  b.cursor = 0;
  b.newest = {};
}

void redis_chain::drop() {
  body& b = *body_;
  const std::uint64_t last = b.read_cursor(redis::mode::write);
  b.remove_bitmaps(1, last + 1);  // what is interrupted here can be opened, and dropped again
  b.commands.clear();
  b.one(redis::mode::write, {"UNLINK", b.bitmap_key(0)});
  b.one(redis::mode::write, {"UNLINK", b.cursor_key()});
  b.one(redis::mode::write, {"UNLINK", b.our_key()});
  b.run("dropping a chain");
  b.cursor = 0;
  b.newest = {};
}

void redis_chain::expire(std::chrono::milliseconds time) {
  body& b = *body_;
  if (time.count() <= 0 || time > most_time) {
    b.fail(errc::invalid_argument, "time to live of a chain", "more than 0 ms, at most 1000 years",
           std::to_string(time.count()), "");
  }
  std::int64_t at = 0;  // by the server's clock; the latest of several
  for (const auto& node : b.way.run_on_nodes({"TIME"})) {
    const redis::reply r = node.reply();
    redis::throw_if_error(r, b.way.address(), "asking for the time");
    if (r.size() != 2) continue;
    const std::int64_t seconds = number_in<std::int64_t>(r[0].text()).value_or(0);
    const std::int64_t microseconds = number_in<std::int64_t>(r[1].text()).value_or(0);
    at = std::max(at, seconds * 1000 + microseconds / 1000);
  }
  const std::string when = std::to_string(at + time.count());
  // The cursor first: who grows the chain from now on takes its end for the new bitmap.
  b.store_params();
  b.commands.clear();
  b.begin(b.cursor_key(), redis::mode::write);
  b.commands.command({"SET", b.cursor_key(), "0", "NX"});
  b.commands.command({"PEXPIREAT", b.cursor_key(), when});
  b.one(redis::mode::write, {"PEXPIREAT", b.our_key(), when});
  b.run("setting the end of a chain");
  b.for_all_bitmaps("setting the end of a chain", "PEXPIREAT", when);
}

void redis_chain::persist() {
  body& b = *body_;
  b.commands.clear();
  b.one(redis::mode::write, {"PERSIST", b.cursor_key()});
  b.one(redis::mode::write, {"PERSIST", b.our_key()});
  b.run("taking the end from a chain");
  b.for_all_bitmaps("taking the end from a chain", "PERSIST", "");
}

}  // namespace bloomery
