// A growing filter on Redis or Valkey with the keys, bits and growth of a known Java one: Jedis, and Guava's hashing.
// Both can work on the same filter, so a deployment of that one can be read and taken over.
//
// n keys and m bits a bitmap, k hashes: Guava's (floor_round_geometry() in sizing.hpp, scheme "guava"). NAME is the
// address's.
//
//     NAME-0, NAME-1, ...   bitmaps of m bits each; position x of Guava is SETBIT's offset x
//     NAME-cursor           decimal text: number of the newest bitmap, from 0. Missing means 0; INCR moves it
//     NAME-bloomery         ours alone, a hash: n, p, and for each bitmap that we have inserted into "ones:<i>", a count that
//                           may be wrong. Such a bitmap has all its m bits: one that is missing or shorter is damaged
//
// As the original has no names but `bloomfilter-<i>` and `cursor`, the name `bloomfilter` has its cursor at `cursor`.
//
// A key is present if all its bits are set in one of the bitmaps. One that is present is not inserted again; another
// sets its bits in the newest bitmap. When, right after that, more than half of the bits of that bitmap are set, the
// next one is begun. A false positive costs the sum of the bitmaps' rates, so error grows with the chain: for a filter
// that keeps its rate as it grows, without a past to be compatible with, take redis_filter.
//
// What is better here than in the original: a batch costs two or three round trips, not one for each bit; bits are
// counted by the server only where half of them may be set; two writers that meet half together grow the chain once;
// unrelated chains do not share a cursor; a bitmap or a cursor that got lost is an error and not "absent"; in a cluster
// each bitmap lies where its name says, as no command or script needs two keys. As long as the original writes, too, it
// does so in its own way: two of them that grow at once may skip a bitmap, and may clear the last bit of one that is
// already used.
#pragma once

#include <bloomery/error.hpp>
#include <bloomery/export.hpp>
#include <bloomery/geometry.hpp>
#include <bloomery/key_span.hpp>
#include <bloomery/redis.hpp>
#include <bloomery/redis_address.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// What a chain is made for. The original stores neither.
struct redis_chain_params {
  std::uint64_t capacity = 0;  ///< n, keys of one bitmap
  double target_fpr = 0;       ///< p, of one bitmap with n keys

  friend bool operator==(const redis_chain_params&, const redis_chain_params&) = default;
};

/// n and p of a chain are neither given nor stored, as of one that the original made. errc::invalid_argument.
struct redis_chain_params_unknown : error {
  using error::error;
};

/// A chain, described.
struct redis_chain_info {
  redis_chain_params parameters;
  bloomery::geometry geometry;                  ///< m and k of one bitmap
  std::uint64_t growths = 0;                    ///< the cursor: bitmaps, less one
  std::vector<std::uint64_t> ones = {};         ///< bits set, of each bitmap
  double keys = 0;                              ///< distinct ones, estimated from the bits
  double rate_now = 0;                          ///< share of absent keys that are reported: 1 - prod (1 - (ones / m)^k)
  std::optional<std::int64_t> expires_at = {};  ///< milliseconds since 1970
};

/// A chain of bitmaps on Redis or Valkey. Every call may throw errc::unavailable; what it was to insert may then be in
/// or not, and may be inserted again. Redis 6.2 or later, or Valkey.
///
/// Not to be used by two threads at once: each has its own, or they take turns.
///
/// Example:
///     const auto use = [](const redis_address& address) {
///       redis_chain seen = redis_chain::create(address, {.capacity = 10'000, .target_fpr = 0.0005});
///       assert((seen.geometry() == geometry{158'208, 11}));
///       assert(seen.insert("Madrid") && !seen.insert("Madrid"));
///       assert(seen.may_contain("Madrid") && seen.growths() == 0);
///       seen.drop();
///     };
///     if (const char* server = std::getenv("BLOOMERY_EXAMPLES_REDIS")) use(redis_address::parse(server));
class redis_chain {
 public:
  /// Makes a chain if there is none of this name, else takes the one there is: also one that the original made, if its
  /// bitmaps have the size that n and p ask for. Afterwards n and p are on the server.
  /// @throws error  incompatible: there is one with other n and p, or other keys have its names; invalid_argument: n is
  ///                0, p is outside (0, 1); too_large: more bits than a Redis string can have, 2^32; damaged; unavailable;
  ///                not_permitted
  static redis_chain create(const redis_address& address, const redis_chain_params& wanted,
                            redis_connection_options options = {});

  /// Opens a chain and writes nothing. One of the original's needs its n and p to be given.
  /// @throws error  as create(), and not_found: there is none; redis_chain_params_unknown
  static redis_chain open(const redis_address& address, std::optional<redis_chain_params> known = {},
                          redis_connection_options options = {});

  redis_chain(redis_chain&&) noexcept;
  redis_chain& operator=(redis_chain&&) noexcept;
  ~redis_chain();

  /// Adds a key. True: it is certainly new. It is in when this returns.
  /// @throws error  damaged: a bitmap is gone; not_found: the chain has expired or was dropped; too_large: the server
  ///                has
  ///                no memory, or there are 10,000 bitmaps; incompatible: a key of its names is something else;
  ///                unavailable; not_permitted
  bool insert(std::string_view key);

  /// Adds keys as if one by one, with the same bits and the same growth; is_new is empty or takes 1 or 0 for each.
  /// Returns how many were certainly new.
  /// @throws error  as above; invalid_argument: another size of is_new; incompatible: keys that are not text. Then
  ///                nothing is inserted.
  std::uint64_t insert(key_span keys, std::span<std::uint8_t> is_new = {});

  /// False: the key was certainly never inserted.
  /// @throws error  damaged, not_found, incompatible, unavailable, not_permitted
  bool may_contain(std::string_view key);

  /// Bit i%64 of bitmap[i/64] is the answer for key i; all other bits of `bitmap` become 0.
  /// @throws error  as above; invalid_argument: the bitmap has fewer than ceil(keys.size() / 64) words; incompatible:
  ///                keys that are not text
  void may_contain(key_span keys, std::span<std::uint64_t> bitmap);

  /// How often it has grown, by the server's cursor: bitmaps, less one. The original's cursor may have skipped some.
  std::uint64_t growths();

  /// What is in it, counted by the server, which reads all bits for it.
  redis_chain_info info();

  const redis_chain_params& parameters() const noexcept;

  /// m and k of one bitmap.
  const bloomery::geometry& geometry() const noexcept;

  /// Forgets all keys and all growth; it keeps its name, n, p and its end. What others insert meanwhile may be in or
  /// not.
  void reset();

  /// Removes it and all its keys from the server.
  void drop();

  /// All of it goes at one time, so long from now, bitmaps yet to come, too. @throws error invalid_argument: not
  /// positive, or more than 1000 years
  void expire(std::chrono::milliseconds time);

  /// It stays.
  void persist();

 private:
  struct impl;
  explicit redis_chain(std::unique_ptr<impl> b) noexcept;
  std::unique_ptr<impl> impl_;
};

}  // namespace bloomery
