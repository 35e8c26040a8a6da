// The server data of a Guava chain (bloomery/redis/chain.hpp): key names, commands, and checks for completeness.
// chain_play.hpp interprets the bits.
//
// The Java implementation advances the cursor before it creates the bitmap, and a bitmap written before it is created
// is only as long as its last set bit requires. bloomery creates a bitmap in full length before it advances the cursor
// and before it counts ones in "ones:<i>" of NAME-bloomery. So if that field exists, the bitmap must be complete.
// Otherwise the newest bitmap may be missing, and all but the first may be shorter.
#pragma once

#include <bloomery/detail/geometry.hpp>
#include <bloomery/error.hpp>
#include <bloomery/redis.hpp>
#include <bloomery/redis/address.hpp>
#include <bloomery/redis/chain.hpp>
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

  /// Adds a group of one command, whose second word is the key.
  void one(redis::mode mode, std::initializer_list<std::string_view> words);
  void one_script(const script& s, const std::string& key, std::initializer_list<std::string_view> args);

  /// Runs `commands`; throws if a reply is an error.
  /// @param to_do  the operation, as after "cannot": "read a chain"
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

  // ---- checks

  error error_of(errc code, std::string what, std::string expected, std::string found, error_hint to_do) const;
  error not_found() const;
  error gone(const std::string& key) const;

  /// Runs `look`, which returns an error if a part of the chain is missing, until the chain is complete: the Java
  /// implementation may be resetting it. Throws the error if it persists.
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

  /// An error if a part of the chain is missing; `lengths` are those of the bitmaps up to the cursor, in bytes.
  std::optional<error> lost_of(const std::vector<std::uint64_t>& lengths, bool has_cursor);

  /// @throws error  incompatible: too long for a bitmap of these n and p, or, for the first one, too short
  void check_length(std::uint64_t i, std::uint64_t bytes) const;

  /// Empty: the key is missing, which means 0 in a chain of the Java implementation that has never grown.
  std::optional<std::uint64_t> cursor_in(const reply& r) const;
  static std::uint64_t count_in(const reply& r);

  /// Milliseconds since 1970 in the reply to TIME.
  std::int64_t time_in(const reply& r) const;

  // ---- lifecycle; bloomery/redis/chain.hpp documents the public functions

  /// Both return the cursor.
  std::uint64_t create(const redis_chain_params& wanted);
  std::uint64_t open(const std::optional<redis_chain_params>& known);

  std::uint64_t read_cursor(redis::mode mode);

  /// Creates a missing bitmap that the cursor already includes, or extends a short one. It gets the cursor's expiry.
  /// @param has_cursor  whether the cursor existed. If it is missing now, the chain has expired: returns false and
  ///                    creates nothing
  bool complete_bitmap(std::uint64_t i, bool has_cursor);

  /// Creates the next bitmap and then advances the cursor. If several clients find the newest bitmap half full, only
  /// one of them advances the cursor. Returns the new cursor.
  std::uint64_t grow(std::uint64_t cursor, bool has_cursor);

  void reset();
  void drop();
  void expire(std::chrono::milliseconds time);
  void persist();

  const scheme& rule = *find_scheme("guava");
  router way;
  batch commands;     // of the present call
  std::string name;   // of the chain
  std::string where;  // for messages
  redis_chain_params params = {};
  bloomery::geometry geometry = {};

 private:
  struct server_state;

  void take(const redis_chain_params& p);
  std::optional<redis_chain_params> params_in(const reply& n, const reply& p) const;
  server_state look();
  std::optional<error> lost_of(const server_state& f) const;
  server_state look_until_whole();
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
