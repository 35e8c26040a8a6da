// A filter that many machines share: on Redis or Valkey, one server or a cluster, without a module.
//
// Read redis/address.hpp for where it is, docs/redis.md for its keys and bytes, and for what an acknowledged insert
// survives. It needs the library bloomery::redis.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/estimate.hpp>
#include <bloomery/key_explanation.hpp>
#include <bloomery/key_span.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/params.hpp>
#include <bloomery/redis/address.hpp>
#include <bloomery/secret.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// How to reach servers.
struct redis_connection_options {
  /// For one connection to come about, more than 0. To look a host's name up is the system's affair, and takes its own
  /// time before that (resolv.conf says how much).
  std::chrono::milliseconds connect_time{2'000};
  /// For one exchange with the servers, with all that is tried again in it, more than 0; and a millisecond more for
  /// each KiB that is sent or received, up to ten times as much. A call is a few exchanges for each 16384 keys.
  std::chrono::milliseconds time{10'000};
  std::string certificate_authorities = {};  ///< TLS: a file of certificates to trust; empty: the system's
  std::string certificate = {};              ///< TLS: of this client, a file; empty: none
  std::string certificate_key = {};          ///< TLS: the key of that, a file
  bool read_from_replicas = false;           ///< lookups go to replicas: what they have not got yet is absent there
  /// A file descriptor that becomes readable when all is to end, -1 for none: an exchange under way then has one more
  /// second before it fails as unavailable. It is not read.
  int stop_descriptor = -1;
};

/// How to use a shared filter.
struct redis_options {
  redis_connection_options connection = {};
  std::optional<secret_key> secret = {};  ///< of a keyed filter
  unsigned wait_replicas = 0;             ///< inserts return when so many replicas of each node have them
  bool local_copy = false;                ///< keeps the bits that were seen: what they say is present costs no request
  std::function<void(const std::string&)> notes = {};  ///< hears of what was mended on the way
};

/// How a shared filter grows.
enum class redis_growth : std::uint8_t {
  none,        ///< not at all: it takes more keys than its capacity, at a higher error rate
  to_maximum,  ///< up to redis_params::maximum keys, for a few bits a key less than without a limit
  unlimited,   ///< until 16 layers are there: 2^15 times the capacity
};

/// What a shared filter is. Everything but `filter.capacity` and `filter.target_fpr` may be left empty; what follows is
/// the affair of plan_redis() (redis/plan.hpp).
struct redis_params {
  /// layout "split_block512", "blocked" or "counting"; hash, keys, seed; capacity n and target_fpr p;
  /// window_milliseconds, for a filter that forgets. The geometry follows.
  params filter = {};
  redis_growth growth = redis_growth::none;
  std::uint64_t maximum = 0;                                 ///< keys, with redis_growth::to_maximum
  std::uint64_t shards = 0;                                  ///< S, 1 to 2^24; 0: as plan_redis() has it
  std::optional<std::chrono::milliseconds> expires_in = {};  ///< all of it, so long after it was made
};

/// A shared filter, described.
struct redis_info {
  redis_params parameters;   ///< complete; filter.geometry is that of all shards' first layers, end to end
  std::uint64_t epoch = 0;   ///< another after clear() and replace()
  std::uint64_t lines = 0;   ///< of a shard's first layer
  std::uint64_t layers = 0;  ///< of the shard that has most
  /// Growing filters: at most so many keys were certainly new, for what others have reserved room for is counted, too
  /// (docs/redis.md). Else distinct keys, estimated from the bits: beyond_counting (filter_facts.hpp) if all are set.
  std::uint64_t inserted = 0;
  bool is_estimate = true;
  std::uint64_t ones = 0;                       ///< bits set, of all
  std::uint64_t bits = 0;                       ///< of all layers of all shards
  double rate_now = 0;                          ///< exact rate for what is in
  std::optional<std::int64_t> expires_at = {};  ///< milliseconds since 1970
};

/// A shard of a shared filter, as it is on its server.
struct redis_shard {
  /// Of a filter with a window a generation.
  struct layer {
    std::int64_t number = 0;  ///< 0, 1, ... from the oldest; or that of the generation
    bloomery::geometry geometry = {};
    std::uint64_t capacity = 0;  ///< keys that it is made for; 0: as many as may come
    std::uint64_t ones = 0;      ///< bits set; of a counting filter counters that are not 0
  };
  std::string node;           ///< the master that has it, "host:port", or the path of its socket; "": nobody knows now
  std::vector<layer> layers;  ///< the oldest first
};

/// Lines of a shared filter that follow each other, of 64 bytes each, as they are on their server.
struct redis_lines {
  std::uint64_t shard = 0;
  std::int64_t layer = 0;               ///< its number, as redis_shard has it
  std::uint64_t first = 0;              ///< the first line's number, from 0 in this layer of this shard
  std::span<const std::uint8_t> bytes;  ///< valid during the call
  std::uint64_t epoch = 0;              ///< of the filter that has them, as redis_info has it
};

/// A filter on Redis or Valkey. Every call may throw errc::unavailable; what it was to insert may then be in or not,
/// and may be inserted again. A counting filter may have it twice then, also if a lost connection was mended within a
/// call.
///
/// Not to be used by two threads at once: each has its own, or they take turns. A moved-from one may only be assigned
/// to or destroyed.
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
  /// Makes a filter if there is none of this name, else takes the one there is, if it is the same. One that could not
  /// be made is taken away again, unless the server was away.
  /// @throws error  incompatible: there is one with other parameters, or its name has a key of another type;
  ///                not_a_filter: its name has some other string; not_found: it was dropped while it was made;
  ///                invalid_argument: what plan_redis() refuses, or an expiry beyond 1 ms to 2^53 ms; damaged,
  ///                too_large, unavailable, not_permitted
  static redis_filter create(const redis_address& address, const redis_params& wanted, redis_options options = {});

  /// @throws error  not_found: there is none; damaged; incompatible: not this secret; unavailable, not_permitted
  static redis_filter open(const redis_address& address, redis_options options = {});

  redis_filter(redis_filter&&) noexcept;
  redis_filter& operator=(redis_filter&&) noexcept;

  /// One that grows gives back the room in the shards' counts that it had reserved for keys that did not come. For that
  /// it waits at most 200 ms, and once more so long if it is being replaced; so does what is assigned to.
  ~redis_filter();

  /// Adds a key. True: it is certainly new. It is in when this returns.
  /// @throws error damaged: a part of the filter is gone; not_found: it has expired or was dropped; too_large: it
  ///               cannot grow any more, or the server has no memory; unavailable; not_permitted; incompatible: the
  ///               filter has keys of the other kind
  bool insert(std::string_view key);
  bool insert(std::uint64_t key);

  /// Adds keys as if one by one and returns how many were certainly new; is_new is empty or takes 1 or 0 for each. Any
  /// number of keys, text or integers: the description names the hash, and another client may change it.
  /// @throws error  as above; incompatible: hashes; invalid_argument: another size of is_new. Then nothing is inserted.
  std::uint64_t insert(key_span keys, std::span<std::uint8_t> is_new = {});

  /// False: the key was certainly never inserted. @throws error as insert()
  bool may_contain(std::string_view key);
  bool may_contain(std::uint64_t key);

  /// Bit i % 64 of bitmap[i / 64] is the answer for key i; all other bits of `bitmap` become 0.
  /// @throws error  as insert(); invalid_argument: the bitmap has fewer than ceil(keys.size() / 64) words
  void may_contain(key_span keys, std::span<std::uint64_t> bitmap);

  /// Looks one key up and tells where its cells are on the server, and what they hold; layers from the newest on.
  /// @throws error as insert()
  key_explanation explain(std::string_view key);
  key_explanation explain(std::uint64_t key);
  key_explanation explain(key_span one_key);

  /// Takes keys out of a counting filter, each atomically. A connection that fails meanwhile is not tried again: the
  /// key may be out or not, errc::unavailable says so. Only what was inserted may be removed: see filter::remove().
  /// While the filter is being replaced, they stay in the one that is to come.
  /// `results` is empty or takes one answer per key. Returns how many were removed.
  /// @throws error  incompatible: it does not count; invalid_argument: another size of `results`; as insert()
  std::uint64_t remove(key_span keys, std::span<removal> results = {});

  /// Distinct keys, estimated from the bits of all shards: the server reads all of them for it. Of a filter that
  /// grows, at most so many that were certainly new: redis_info::inserted, with sigma 0. Of a filter with a window, the
  /// keys of all its generations, each once, from a sample of at most 4 MiB or a line of each generation.
  estimate card();

  /// As card(), and all else.
  ///
  /// @param shards  if not null becomes what is known of each of them, one after another
  redis_info info(std::vector<redis_shard>* shards = nullptr);

  /// Reads the bits, some lines at a time, from masters: of a filter of up to `most` bytes all of them; of a larger one
  /// runs of 64 lines, spread evenly over each layer of each shard, in all as many as `most` bytes allow, but one of
  /// each layer at least. Each line is heard at most once. Of a filter with a window, not those of a generation that
  /// runs out meanwhile. They are heard while others are on their way: `hear` may not use this filter, and what it
  /// takes is part of the time for an exchange.
  /// @throws error  damaged: a part of the filter is gone; locked: it was made anew meanwhile; what `hear` throws
  ///
  /// Example:
  ///     const auto set_bits = [](redis_filter& seen) {
  ///       std::uint64_t ones = 0;
  ///       seen.read_lines(64 << 20, [&](const redis_lines& some) { ones += count_ones(some.bytes); });
  ///       return ones;
  ///     };
  ///     static_cast<void>(set_bits);
  void read_lines(std::uint64_t most, const std::function<void(const redis_lines&)>& hear);

  /// What it is, as it was when this was opened.
  const redis_params& parameters() const noexcept;

  /// Forgets all keys: a new epoch. What others insert meanwhile may be in or not. @throws error as replace()
  void clear();

  /// Removes it and all its keys from the server, and what is about to replace it. @throws error locked: it was made
  /// anew meanwhile
  void drop();

  /// All of it goes at one time, so long from now. @throws error invalid_argument: not 1 ms to 2^53 ms; locked: it was
  /// changed meanwhile
  void expire(std::chrono::milliseconds time);

  /// It stays. @throws error locked
  void persist();

  /// Begins the generation that the clock of the server asks for, in all shards. Inserting does it, too, where it
  /// inserts. @throws error incompatible: it has no window
  void rotate();

  /// Makes it anew while it is used: `fill` gets an empty one, to which others' inserts go from now on as to the old
  /// one. What was being inserted when fill is called may be in the old one alone, so fill has to know of it. When fill
  /// returns, the new one takes its place. Throws what fill throws, and then all is as it was; but a shard that had
  /// lost its header is lost. Until this returns, neither of the two can be cleared, dropped, replaced or given an
  /// expiry by fill. When only the old one's remains cannot be removed, redis_options::notes hears of it.
  /// @throws error  incompatible: another hash, kind of keys, seed or secret; locked: somebody else replaces it, too,
  ///                or
  ///                the new one lost a part; not_found: it was dropped meanwhile; invalid_argument: an expiry beyond
  ///                1 ms to 2^53 ms, or fill moved the new one away
  void replace(const redis_params& wanted, const std::function<void(redis_filter& fresh)>& fill);

  /// Takes in the keys of a filter with the same geometry, hash, keys and secret. @throws error incompatible; locked:
  /// it is being replaced
  void merge(redis_filter& other);
  void merge(const any_filter& other);

  /// The local filter with the same bits. Of a filter that has not grown, equal to one made here with the same keys.
  /// @throws error incompatible: it has grown, or it has a window
  any_filter pull();

 private:
  struct impl;
  explicit redis_filter(std::unique_ptr<impl> b) noexcept;
  std::unique_ptr<impl> impl_;
};

}  // namespace bloomery
