// redis_filter: a filter that many machines share, on Redis or Valkey, one server or a cluster. The servers need no
// module.
//
// redis/address.hpp describes addresses. docs/redis.md describes the keys and bytes on the server, and which failures
// an acknowledged insert survives. Requires the library bloomery::redis.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/cells.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/detail/function_ref.hpp>
#include <bloomery/key.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/params.hpp>
#include <bloomery/redis/address.hpp>
#include <bloomery/secret.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

class layered_filter;

/// How to reach servers.
struct redis_connection_options {
  /// Time limit for one connection attempt, more than 0. The system's lookup of the host name comes before it and has
  /// its own limit (resolv.conf). Before the first reply of a server, a refused connection is reported at once, and an
  /// address that does not answer after this time. Later, lost connections are opened again within `time`.
  std::chrono::milliseconds connect_time{2'000};
  /// Time limit for one exchange with the servers, including its retries, more than 0. Each KiB sent or received adds a
  /// millisecond, up to ten times the limit. A call takes a few exchanges per 16,384 keys.
  std::chrono::milliseconds time{10'000};
  std::string certificate_authorities = {};  ///< TLS: a file of certificates to trust; empty: the system's
  std::string certificate = {};              ///< TLS: of this client, a file; empty: none
  std::string certificate_key = {};          ///< TLS: the private key of `certificate`, a file
  bool read_from_replicas = false;           ///< lookups go to replicas, where recent inserts may be absent
  /// A file descriptor that becomes readable to stop all calls, -1 for none: the present exchange then fails as
  /// unavailable after one more second. The descriptor is not read.
  int stop_descriptor = -1;
};

/// The result of a lookup whose shard is lost: evicted, deleted, or lost with its server.
enum class redis_damage : std::uint8_t {
  error,  ///< the call fails as damaged
  maybe,  ///< "maybe present" for the keys of this shard, so that an application then looks them up in its database
};

/// How to use a shared filter.
struct redis_options {
  redis_connection_options connection = {};
  std::optional<secret_key> secret = {};  ///< of a keyed filter
  unsigned wait_replicas = 0;             ///< inserts return when this number of replicas of each node has them
  bool local_copy = false;                ///< caches bits seen as set: keys that they show as present need no request
  /// Bytes for copies of the closed layers of a growing or sliding-window filter, which inserts no longer change.
  /// Lookups of many keys then read the newest layer only. Layers above 1 MiB per shard are not copied. 0: no copies.
  std::uint64_t closed_layers_bytes = std::uint64_t{16} << 20;
  redis_damage on_damage = redis_damage::error;  ///< for lookups; inserts into a lost shard always fail
  /// Receives a note about each repair, and about keys of a counting filter whose state is unknown after a lost
  /// connection.
  callback<void(const std::string&)> notes = {};
};

/// The value that redis_filter::insert() writes to `is_new` for a key that may or may not be new. Either a connection
/// broke, the client sent the key again, and the answer "not new" may be caused by its own first request. Or another
/// client is repairing the key's shard, and may not have inserted the key again yet. A program that keeps new keys and
/// drops the others should keep such a key: it may then keep a key twice, but never loses one.
inline constexpr std::uint8_t maybe_new = 2;

/// Counters of the actions and events on the connections of a redis_filter since it was created. They only increase.
struct redis_counters {
  std::uint64_t exchanges = 0;   ///< batches of commands sent to servers; a call takes one or more
  std::uint64_t retries = 0;     ///< groups of commands sent again after a transient error or a lost connection
  std::uint64_t reconnects = 0;  ///< connections opened again after one to the same address had been lost
  std::uint64_t redirects = 0;   ///< MOVED and ASK replies of cluster nodes
  /// Changes found in the description of the filter and in headers of shards: another client cleared, replaced, grew or
  /// rotated the filter, or a server came back with an older state.
  std::uint64_t description_changes = 0;
  std::uint64_t growths = 0;  ///< layers that this object added to shards, without those of other clients
  /// Reconnections that found another server process, recognized by the run id of INFO: the server was restarted, or
  /// another server took its address. It may lack the last writes. 0 if the user may not run INFO.
  std::uint64_t restarts_seen = 0;
  std::uint64_t resent_groups = 0;  ///< groups of commands by which insert() repeated keys after a connection broke
};

/// How a shared filter grows.
enum class redis_growth : std::uint8_t {
  none,        ///< the filter does not grow: beyond its capacity the FPR rises above the target
  to_maximum,  ///< up to redis_params::maximum keys, with fewer bits per key than unlimited
  unlimited,   ///< up to 16 layers: at least 2^15 times the capacity
};

/// Parameters of a shared filter. Everything except `filter.capacity` and `filter.target_fpr` may be left empty;
/// plan_redis() (redis/plan.hpp) completes it.
struct redis_params {
  /// layout "split_block512", "blocked" or "counting"; hash, keys, seed; capacity n and target_fpr p;
  /// a window of time in `extra`. The geometry follows from these.
  params filter = {};
  redis_growth growth = redis_growth::none;
  std::uint64_t maximum = 0;                                 ///< keys, with redis_growth::to_maximum
  std::uint64_t shards = 0;                                  ///< S, 1 to 2^24; 0: chosen by plan_redis()
  std::optional<std::chrono::milliseconds> expires_in = {};  ///< the whole filter, this long after its creation
};

/// State of a shared filter.
struct redis_info {
  redis_params parameters;   ///< complete; filter.geometry is that of the first layers of all shards, concatenated
  std::uint64_t epoch = 0;   ///< changes with clear() and replace()
  std::uint64_t lines = 0;   ///< of a shard's first layer
  std::uint64_t layers = 0;  ///< of the shard with the most layers
  /// Scalable filters: an upper bound of the keys that were certainly new, which includes the reservations of writers
  /// (docs/redis.md). Otherwise distinct keys, estimated from the bits: beyond_counting (filter_facts.hpp) if all bits
  /// are set.
  std::uint64_t inserted = 0;
  bool is_estimate = true;
  std::uint64_t ones = 0;                       ///< bits set, in all shards
  std::uint64_t bits = 0;                       ///< of all layers of all shards
  double rate_now = 0;                          ///< expected FPR for the present number of keys
  std::optional<std::int64_t> expires_at = {};  ///< milliseconds since 1970
};

/// A shard of a shared filter, as it is on its server.
struct redis_shard {
  /// A layer, or a generation of a sliding-window filter.
  struct layer {
    std::int64_t number = 0;  ///< 0, 1, ... from the oldest; or the number of the generation
    bloomery::geometry geometry = {};
    std::uint64_t capacity = 0;  ///< keys; 0: no limit
    std::uint64_t ones = 0;      ///< bits set; counting filters: non-zero counters
  };
  std::string node;           ///< its master, "host:port" or the path of a socket; empty: unknown at present
  std::vector<layer> layers;  ///< the oldest first
};

/// Consecutive lines of a shared filter, 64 bytes each, as they are on the server.
struct redis_lines {
  std::uint64_t shard = 0;
  std::int64_t layer = 0;               ///< number of the layer, as in redis_shard
  std::uint64_t first = 0;              ///< number of the first line, from 0 in this layer of this shard
  std::span<const std::uint8_t> bytes;  ///< valid during the call
  std::uint64_t epoch = 0;              ///< epoch of the filter, as in redis_info
};

/// A filter on Redis or Valkey. Every call may throw errc::unavailable. The keys of a failed insert may or may not be
/// inserted, and may be inserted again. A counting filter may then count a key twice, also if a lost connection was
/// restored within a call.
///
/// If a connection breaks while a call inserts keys, its server may have crashed and lost acknowledged writes. The call
/// then inserts all its keys again before it returns, on the servers that now have the filter. A counting filter does
/// not, because keys would count twice: a note says that keys of this call may be missing or counted twice.
///
/// Inserts, lookups and removals check at least once per minute that the server still describes this filter. They
/// restore a lost description, switch to the filter that replaced this one, or throw not_found after drop().
///
/// Threads: one at a time per object. A moved-from object may only be assigned to or destroyed.
///
/// Example:
///     const auto use = [](const redis_address& address) {
///       redis_filter seen = redis_filter::create(address, {.filter = {.capacity = 1'000'000, .target_fpr = 0.01}});
///       assert(seen.insert("Madrid"));
///       assert(redis_filter::open(address).may_contain("Madrid"));
///       const std::string_view cities[] = {"Madrid", "Berlin"};
///       std::uint64_t there = 0;
///       seen.may_contain(cities, std::span(&there, 1));
///       assert(there == 1);
///       seen.drop();
///     };
///     if (const char* server = std::getenv("BLOOMERY_EXAMPLES_REDIS")) use(redis_address::parse(server));
class redis_filter {
 public:
  /// Creates a filter, or opens the existing filter of this name if its parameters are the same. A filter that could
  /// not be completed is removed, unless the server is unreachable. If the server has no description of this name, its
  /// keys are searched (SCAN, at most connection.time) for shards of a filter whose description was lost; such a filter
  /// gets its description back.
  /// @throws error  incompatible: a filter with other parameters exists, or its name has a value of another type;
  ///                not_a_filter: its name has another string; not_found: dropped during creation;
  ///                invalid_argument: refused by plan_redis(), or an expiry outside 1 ms to 2^53 ms; damaged,
  ///                too_large, unavailable, not_permitted
  static redis_filter create(const redis_address& address, const redis_params& wanted, redis_options options = {});

  /// @throws error  not_found; damaged; incompatible: another secret; unavailable, not_permitted
  static redis_filter open(const redis_address& address, redis_options options = {});

  redis_filter(redis_filter&&) noexcept;
  redis_filter& operator=(redis_filter&&) noexcept;

  /// A scalable filter returns the unused part of its reservations in the counts of shards. This takes at most 200 ms,
  /// and 200 ms more during a replacement. Move assignment does the same for the old value.
  ~redis_filter();

  /// Inserts a key. True: it is certainly new. The key is stored when this returns.
  /// @throws error  damaged: a part of the filter is missing; not_found: expired or dropped; too_large: it cannot grow
  ///                further, or the server has no memory; unavailable; not_permitted; incompatible: the filter has keys
  ///                of the other kind
  bool insert(std::string_view key);
  bool insert(std::uint64_t key);

  /// Inserts keys as if one by one and returns how many were certainly new. `is_new` is empty or receives per key: 1 if
  /// it was certainly new, maybe_new if a lost connection or a repair left that open, else 0.
  /// Takes text or integers, no hashes: another client may replace the filter by one with another hash.
  /// @throws error  as above; incompatible: hashes; invalid_argument: is_new has another size; nothing is inserted
  std::uint64_t insert(key_span keys, std::span<std::uint8_t> is_new = {});
  std::uint64_t insert(std::initializer_list<std::string_view> keys) {
    return insert(key_span(std::span<const std::string_view>(keys.begin(), keys.size())));
  }

  /// False: the key was certainly never inserted. @throws error as insert()
  bool may_contain(std::string_view key);
  bool may_contain(std::uint64_t key);

  /// Bit i % 64 of bitmap[i / 64] is the answer for key i; all other bits of `bitmap` become 0.
  /// @throws error  as insert(); invalid_argument: the bitmap has fewer than ceil(keys.size() / 64) words
  void may_contain(key_span keys, std::span<std::uint64_t> bitmap);
  bool may_contain(std::initializer_list<std::string_view> keys) = delete;  // not one view of two pointers

  /// Looks up one key and reports its cells on the server and their contents, the newest layer first.
  /// @throws error as insert()
  key_explanation explain(std::string_view key);
  key_explanation explain(std::uint64_t key);
  key_explanation explain(key_span one_key);

  /// Removes keys from a counting filter, each atomically, and returns how many were removed. After a lost connection
  /// nothing is sent again: errc::unavailable means that keys may or may not be removed. Remove only inserted keys: see
  /// filter::remove(). During a replacement, the keys stay in the new filter. `results` is empty or receives one result
  /// per key.
  /// @throws error  incompatible: not a counting filter; invalid_argument: `results` has another size; as insert()
  std::uint64_t remove(key_span keys, std::span<removal> results = {});
  removal remove(std::initializer_list<std::string_view> keys) = delete;  // as may_contain()

  /// Distinct keys, estimated from the bits of all shards; the server reads all of them. Scalable filters:
  /// redis_info::inserted, with sigma 0. Sliding-window filters: the distinct keys of all generations, estimated from a
  /// sample of at most 4 MiB, or one line per generation if that is more. The sample may miss all of a few keys.
  estimate card();

  /// The complete state, including an estimate of the keys: that of card(), but for a sliding-window filter at least
  /// the estimate for its fullest generation and at most the sum over all generations, whose bits are counted in full.
  ///
  /// @param shards  if not null, receives the state of each shard in order
  redis_info info(std::vector<redis_shard>* shards = nullptr);

  /// Reads lines from masters and passes them to `hear`, each at most once. A filter of up to `most` bytes is read
  /// completely; from a larger filter, runs of 64 lines are read, spread evenly over each layer of each shard, `most`
  /// bytes in total, but at least one run per layer. A generation that expires during the call is left out. `hear` is
  /// called while other lines are under way: it must not use this filter, and its time counts towards the exchange.
  /// @throws error  damaged: a part of the filter is missing; locked: the filter was replaced during the call; what
  ///                `hear` throws
  ///
  /// Example:
  ///     const auto set_bits = [](redis_filter& seen) {
  ///       std::uint64_t ones = 0;
  ///       seen.read_lines(64 << 20, [&](const redis_lines& some) { ones += count_ones(some.bytes); });
  ///       return ones;
  ///     };
  ///     static_cast<void>(set_bits);
  void read_lines(std::uint64_t most, const std::function<void(const redis_lines&)>& hear);

  /// The parameters as this object last read them: on opening, and in a call that finds the filter replaced by another
  /// client.
  const redis_params& parameters() const noexcept;

  /// Counters of this object's connections. The filter that replace() passes to `fill` counts towards this object.
  redis_counters counters() const noexcept;

  /// Removes all keys and begins a new epoch. Keys that other clients insert meanwhile may or may not be kept.
  /// @throws error as replace()
  void clear();

  /// Removes the filter from the server, and a replacement in progress. A mark stays for ten minutes, so that no
  /// client restores the filter: all others get not_found. @throws error locked: replaced during the call
  void drop();

  /// Removes the filter of this name, even if it is damaged or its description is lost or unreadable. In that case all
  /// keys of the server are searched for its shards (SCAN). Needs no secret.
  /// @returns false: there was none
  /// @throws error  not_a_filter, wrong_version: the name belongs to something else; locked; unavailable; not_permitted
  static bool drop(const redis_address& address, redis_options options = {});

  /// Sets the expiry of the whole filter to `time` from now.
  /// @throws error invalid_argument: outside 1 ms to 2^53 ms; locked: changed during the call
  void expire(std::chrono::milliseconds time);

  /// Removes the expiry. @throws error locked
  void persist();

  /// Begins the generation of the server's present time in all shards. Inserts do the same in the shards that they
  /// change. @throws error incompatible: not a sliding-window filter
  void rotate();

  /// Replaces the filter while it is in use. `fill` receives an empty filter; from then on, inserts of all clients go
  /// to both filters. Keys whose insert was in progress when `fill` is called may be in the old filter only, so `fill`
  /// must insert them, too. When `fill` returns, the new filter takes the old one's place. If `fill` throws, the old
  /// filter stays, and the exception passes; but a shard that had lost its header is lost. During the call, `fill` must
  /// not clear, drop, replace or expire either filter. If only remains of the old filter cannot be removed, a note is
  /// sent to redis_options::notes.
  /// @throws error  incompatible: another hash, kind of keys, seed or secret; locked: another client replaces it, too,
  ///                or the new filter lost a part; not_found: dropped during the call; invalid_argument: an expiry
  ///                outside 1 ms to 2^53 ms, or `fill` moved the new filter
  void replace(const redis_params& wanted, const std::function<void(redis_filter& fresh)>& fill);

  /// Refills the shards that have lost a part (docs/redis.md, Repair) while the other shards stay in use. `fill`
  /// receives this filter and inserts all keys of its source; keys of other shards are skipped without a request. It
  /// must bring all keys whose insert had begun before. Until it returns, lookups in the lost shards get errc::damaged,
  /// and inserts of other clients into them are accepted and kept. If `fill` throws, the exception passes, the shards
  /// stay damaged, and repair() can be called again. `fill` is not called if no shard has to be refilled. It must not
  /// clear, drop, replace, repair or expire the filter.
  /// @returns the numbers of the shards that were refilled, in order; empty: no shard had lost keys
  /// @throws error  incompatible: a counting filter, whose keys would count twice; locked: another client repairs or
  ///                replaces the filter; damaged: a shard was lost again; invalid_argument: `fill` moved the filter
  std::vector<std::uint64_t> repair(const std::function<void(redis_filter& filter)>& fill);

  /// Merges a filter with the same geometry, hash, keys and secret into this one. @throws error incompatible; locked:
  /// being replaced
  void merge(redis_filter& other);
  void merge(const any_filter& other);

  /// A local filter with the same bits, equal to a local filter of the same keys.
  /// @throws error incompatible: the filter grows, or has a window
  any_filter pull();

  /// A local copy of the layers of a filter that grows, or of the slices of one with a window: it has every key whose
  /// insert had returned before this call, and gives the same answers. The keys of a layer are an upper bound, as
  /// redis_info::inserted. A slice that expires during the call is left out, and the copy is as of a later time.
  /// @throws error  incompatible: a filter of fixed size; damaged: a part of the filter is missing; locked: the filter
  ///                was replaced or repaired during the call; too_large: not enough memory
  /// @param metadata  layered_params::metadata of the copy
  layered_filter pull_layers(const std::string& metadata = {});

  /// Creates a filter with the layers of a copy, bit for bit. It continues to grow, or the slices of its window expire
  /// when those of the original do. Other clients may insert meanwhile. If it fails after the filter was created, the
  /// filter stays with a part of the bits: drop() it.
  /// @param from            from pull_layers()
  /// @param options         also has the secret
  /// @param expired_slices  if not null, receives the starts of the slices that had expired by the server's clock, in
  ///                        order: these are left out
  /// @throws error  already_exists: there is a filter of this name; incompatible: not a copy of a shared filter, or
  ///                layers of other sizes than this version makes; locked: other clients let it grow, or began a
  ///                slice, meanwhile; as create()
  static redis_filter create_from(const redis_address& address, const layered_filter& from,
                                  std::optional<std::chrono::milliseconds> expires_in = {}, redis_options options = {},
                                  std::vector<std::uint64_t>* expired_slices = nullptr);

 private:
  struct impl;
  explicit redis_filter(std::unique_ptr<impl> b) noexcept;
  std::unique_ptr<impl> impl_;
};

}  // namespace bloomery
