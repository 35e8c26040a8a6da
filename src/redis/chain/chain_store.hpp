// What lies on the server of a chain (bloomery/redis_chain.hpp): its names, the commands for them, and whether what is
// there is all of it. What the bits mean is known in chain_play.hpp.
//
// The original makes a bitmap after the cursor shows it, and one that is written to before is as long as its last bit
// wants. Who works here makes it in its full length before that, and before its ones are counted in "ones:<i>" of
// NAME-bloomery. So where that field is, all of the bitmap must be; where it is not, the newest bitmap may be missing,
// and all but the first may end early.
#pragma once

#include <bloomery/error.hpp>
#include <bloomery/geometry.hpp>
#include <bloomery/redis.hpp>
#include <bloomery/redis_address.hpp>
#include <bloomery/redis_chain.hpp>
#include <bloomery/scheme.hpp>

#include "redis/net/batch.hpp"
#include "redis/net/router.hpp"

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace bloomery::redis {

struct chain_store {
  chain_store(const redis_address& address, redis_connection_options options);

  // ---- names

  std::string bitmap_key(std::uint64_t i) const;
  std::string cursor_key() const;
  std::string our_key() const;
  static std::string ones_field(std::uint64_t i);

  // ---- commands

  void begin(const std::string& key, redis::mode mode) { commands.begin(slot_of(key), mode); }

  /// A group of one command, whose second word is the key.
  void one(redis::mode mode, std::initializer_list<std::string_view> words);
  void one_script(const script& s, const std::string& key, std::initializer_list<std::string_view> args);

  /// Runs `commands`; replies that are errors are thrown, which ends the call.
  /// @param to_do  as in "cannot read a chain"
  template <class Take>
  void run(std::string_view to_do, Take take) {
    way.run(commands, [&](std::size_t group, reply first) {
      reply r = first;
      for (std::uint32_t i = 0; i < commands.groups()[group].commands; ++i, r = r.next()) {
        throw_if_error(r, way.address(), to_do);
      }
      take(group, first);
    });
  }
  void run(std::string_view to_do) {
    run(to_do, [](std::size_t, const reply&) {});
  }

  // ---- what may be wrong

  error error_of(errc code, std::string what, std::string expected, std::string found, error_hint to_do) const;
  error not_found() const;
  error gone(const std::string& key) const;

  /// Runs `look`, which returns an error if a part of the chain is gone, until it finds all: a reset() of the original
  /// may be at work. What is gone for long is thrown.
  template <class Look>
  void until_whole(Look look) {
    constexpr int most_attempts = 6;  // 5 + 10 + 20 + 40 + 80 ms
    for (int attempt = 1;; ++attempt) {
      const std::optional<error> lost = look();
      if (!lost) return;
      if (attempt == most_attempts) throw *lost;
      std::this_thread::sleep_for(std::chrono::milliseconds(5 << (attempt - 1)));
    }
  }

  /// What is gone of a chain whose bitmaps, up to the cursor, have these lengths in bytes.
  std::optional<error> lost_of(const std::vector<std::uint64_t>& lengths, bool has_cursor);

  /// @throws error  incompatible: it is too long for a bitmap of these n and p, or as the first one too short
  void check_length(std::uint64_t i, std::uint64_t bytes) const;

  /// Nothing: the key is not there, which means 0 in a chain that the original has never grown.
  std::optional<std::uint64_t> cursor_in(const reply& r) const;
  static std::uint64_t count_in(const reply& r);

  /// Milliseconds since 1970 in the reply to TIME.
  std::int64_t time_in(const reply& r) const;

  // ---- the life of a chain; what is public is told in bloomery/redis_chain.hpp

  /// Both return the cursor.
  std::uint64_t create(const redis_chain_params& wanted);
  std::uint64_t open(const std::optional<redis_chain_params>& known);

  std::uint64_t read_cursor(redis::mode mode);

  /// Makes a bitmap that the cursor shows already, or mends one that ends early. It expires when the cursor does.
  /// @param has_cursor  there was a cursor. If there is none now, the chain has expired: false, and nothing is made
  bool complete_bitmap(std::uint64_t i, bool has_cursor);

  /// The next bitmap is there before the cursor shows it. The cursor moves for one of those who find the newest half
  /// full; the others follow. Where it is then.
  std::uint64_t grow(std::uint64_t cursor, bool has_cursor);

  void reset();
  void drop();
  void expire(std::chrono::milliseconds time);
  void persist();

  const scheme& rule = *find_scheme("guava");
  router way;
  batch commands;     // of the call at work
  std::string name;   // of the chain
  std::string where;  // for messages
  redis_chain_params params = {};
  bloomery::geometry geometry = {};

 private:
  struct what_is_there;

  void take(const redis_chain_params& p);
  std::optional<redis_chain_params> params_in(const reply& n, const reply& p) const;
  what_is_there look();
  std::optional<error> lost_of(const what_is_there& f) const;
  what_is_there look_until_whole();
  void check_same(const redis_chain_params& there) const;
  void store_params();
  void remove_what_others_left();
  std::optional<std::int64_t> end_of_chain();
  void make_bitmap(std::uint64_t i, std::int64_t end);
  std::uint64_t cursor_or_none();
  void for_all_bitmaps(std::string_view to_do, std::string_view word, const std::string& argument);
  void remove_bitmaps_behind_first(std::uint64_t last);
};

}  // namespace bloomery::redis
