// Guava chain: a scalable filter on Redis or Valkey that is compatible with a known Java implementation, which uses
// Jedis and Guava's hashing. Both can use the same filter, so an existing deployment can be read and taken over.
//
// Each bitmap has capacity n, m bits and k probes by Guava's rule (floor_round_geometry() in sizing.hpp, scheme
// "guava"). NAME is the name in the address.
//
//     NAME-0, NAME-1, ...   bitmaps of m bits each; position x of Guava is SETBIT's offset x
//     NAME-cursor           decimal text: number of the newest bitmap, from 0. Missing means 0; INCR moves it
//     NAME-bloomery         used by bloomery only, a hash: n, p, and "ones:<i>" for each bitmap that bloomery has
//                           inserted into, a count that may be wrong. Such a bitmap has all its m bits: a missing or
//                           shorter one is damaged
//
// The Java implementation always uses the names `bloomfilter-<i>` and `cursor`, so the chain `bloomfilter` has its
// cursor at `cursor`.
//
// A key is present if all its bits are set in one of the bitmaps. A present key is not inserted again; an absent key
// sets its bits in the newest bitmap. If more than half of the bits of that bitmap are then set, the next bitmap is
// added. The FPR is about the sum of the bitmaps' rates, so it grows with the chain. If compatibility is not needed,
// use redis_filter, which keeps its target FPR as it grows.
//
// Improvements over the Java implementation: a batch takes two or three round trips instead of one per bit; the server
// counts bits only if half of them may be set; two writers that fill a bitmap at the same time grow the chain once;
// unrelated chains do not share a cursor; a lost bitmap or cursor is an error instead of "absent"; in a cluster each
// bitmap is placed by its own name, because no command or script needs two keys. While the Java implementation also
// writes, its own races remain: two of its writers that grow the chain at the same time may skip a bitmap, and may
// clear the last bit of a bitmap in use.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/geometry.hpp>
#include <bloomery/error.hpp>
#include <bloomery/key.hpp>
#include <bloomery/redis.hpp>
#include <bloomery/redis/address.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// Capacity and target FPR of a chain. The Java implementation stores neither.
struct redis_chain_params {
  std::uint64_t capacity = 0;  ///< n, keys of one bitmap
  double target_fpr = 0;       ///< p, of one bitmap with n keys

  friend bool operator==(const redis_chain_params&, const redis_chain_params&) = default;
};

/// errc::invalid_argument: n and p of a chain are neither given nor stored, as in chains of the Java implementation.
struct redis_chain_params_unknown : error {
  using error::error;
};

/// The state of a chain.
struct redis_chain_info {
  redis_chain_params parameters;
  bloomery::geometry geometry;                  ///< m and k of one bitmap
  std::uint64_t growths = 0;                    ///< the cursor: number of bitmaps minus one
  std::vector<std::uint64_t> ones = {};         ///< set bits of each bitmap
  double keys = 0;                              ///< distinct keys, estimated from the bits
  double rate_now = 0;                          ///< current FPR: 1 - prod (1 - (ones / m)^k)
  std::optional<std::int64_t> expires_at = {};  ///< milliseconds since 1970
};

/// A chain of bitmaps on Redis or Valkey. Every call may throw errc::unavailable; its keys may then be inserted or not,
/// and inserting them again is safe. Requires Redis 6.2 or later, or Valkey.
///
/// Threads: one at a time. Use one object per thread, or a lock.
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
  /// Creates a chain, or opens the existing one of this name. A chain of the Java implementation is taken over if its
  /// bitmaps have the size that n and p require. Afterwards n and p are stored on the server.
  /// @throws error  incompatible: the chain has other n and p, or other keys use its names; invalid_argument: n is 0,
  ///                or p is outside (0, 1); too_large: more than 2^32 bits, the limit of a Redis string; damaged;
  ///                unavailable; not_permitted
  static redis_chain create(const redis_address& address, const redis_chain_params& wanted,
                            redis_connection_options options = {});

  /// Opens a chain without writing anything. For chains of the Java implementation, n and p must be given.
  /// @throws error  as create(); not_found: there is no such chain; redis_chain_params_unknown
  static redis_chain open(const redis_address& address, std::optional<redis_chain_params> known = {},
                          redis_connection_options options = {});

  redis_chain(redis_chain&&) noexcept;
  redis_chain& operator=(redis_chain&&) noexcept;
  ~redis_chain();

  /// Inserts a key. True: it is certainly new. The key is stored when this returns.
  /// @throws error  damaged: a bitmap is missing; not_found: the chain has expired or was dropped; too_large: the
  ///                server has no memory, or there are 10,000 bitmaps; incompatible: one of its names has a value of
  ///                another type; unavailable; not_permitted
  bool insert(std::string_view key);

  /// Inserts keys as if one by one, with the same bits and the same growth, and returns how many were certainly new.
  /// `is_new` is empty or receives per key 1 if it is certainly new, maybe_new if a lost connection left that open,
  /// otherwise 0.
  /// @throws error  as above; invalid_argument: `is_new` has another size; incompatible: keys that are not text.
  ///                Nothing is inserted then.
  std::uint64_t insert(key_span keys, std::span<std::uint8_t> is_new = {});

  /// False: the key was certainly never inserted.
  /// @throws error  damaged, not_found, incompatible, unavailable, not_permitted
  bool may_contain(std::string_view key);

  /// Bit i%64 of bitmap[i/64] is the answer for key i; all other bits of `bitmap` become 0.
  /// @throws error  as above; invalid_argument: the bitmap has fewer than ceil(keys.size() / 64) words; incompatible:
  ///                keys that are not text
  void may_contain(key_span keys, std::span<std::uint64_t> bitmap);

  /// Number of growths by the server's cursor: bitmaps minus one. The Java implementation may have skipped some.
  std::uint64_t growths();

  /// The state of the chain. The server counts the bits and reads all of them.
  redis_chain_info info();

  const redis_chain_params& parameters() const noexcept;

  /// m and k of one bitmap.
  const bloomery::geometry& geometry() const noexcept;

  /// Removes all keys and all bitmaps but the first; name, n, p and expiry stay. Keys that other clients insert
  /// meanwhile may be kept or lost.
  void reset();

  /// Removes the chain from the server.
  void drop();

  /// Sets the expiry of the whole chain, including future bitmaps, to `time` from now.
  /// @throws error invalid_argument: not positive, or more than 1000 years
  void expire(std::chrono::milliseconds time);

  /// Removes the expiry.
  void persist();

 private:
  struct impl;
  explicit redis_chain(std::unique_ptr<impl> b) noexcept;
  std::unique_ptr<impl> impl_;
};

}  // namespace bloomery
