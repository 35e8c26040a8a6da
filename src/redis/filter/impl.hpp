// redis_filter::impl: the state of a redis_filter. Its functions are in
//
//   redis_filter.cpp       hashing, and the public API
//   shard_cache.cpp        cached headers of shards, and their refresh
//   description_check.cpp  checks of the description, and its restoration
//   lookup.cpp, insert.cpp, explain.cpp
//   lifecycle.cpp          shards, growth, generations
//   create.cpp             create, open
//   replace.cpp            replace, clear, expire
//   repair.cpp             refilling lost shards
//   drop.cpp, orphans.cpp  removal, also of shards without a description
//   scan.cpp               operations on all bits
//   copy_layers.cpp, copy_slices.cpp   copies of filters that grow or have a window
#pragma once

#include <bloomery/error.hpp>
#include <bloomery/redis.hpp>
#include <bloomery/redis/plan.hpp>

#include "redis/filter/closed_layers.hpp"
#include "redis/filter/description_check.hpp"
#include "redis/filter/meta.hpp"
#include "redis/net/batch.hpp"
#include "redis/net/router.hpp"
#include "registry/tables.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace bloomery {

namespace redis {

/// The filter was replaced by one with another hash, seed or secret, or during the call: the call starts again and
/// hashes its keys again.
struct made_anew : error {
  using error::error;
};

inline constexpr int most_beginnings = 8;

/// Runs a call, and repeats it if the filter was replaced.
template <class Work>
auto begin_again(Work work) {
  for (int attempt = 1;; ++attempt) {
    try {
      return work();
    } catch (const made_anew&) {
      if (attempt == most_beginnings) throw;
    }
  }
}

/// The filter that should have replaced another one has lost a part, or was given up.
struct replacement_lost : error {
  using error::error;
};

enum class access : std::uint8_t { look_up, look_up_on_replica, write };

inline void make_distinct(std::vector<std::uint64_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

}  // namespace redis

struct redis_filter::impl {
  impl(const redis_address& address, redis_options options);
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;
  ~impl();  // returns reserved room if the servers answer soon

  /// The coming filter that will replace `live`, as a writer sees it: uses the same connections.
  impl(const impl& live, redis::meta coming);

  // ---- shard_cache.cpp

  /// The present description on the server; empty: there is none.
  std::optional<redis::meta> read_meta();

  /// The description of the coming filter.
  std::optional<redis::meta> read_coming();

  /// Switches this object to the filter with this description.
  void adopt(redis::meta m);

  /// Calls adopt() in the middle of a call. @throws redis::made_anew afterwards, because hashes of keys are no longer
  /// valid
  void turn_to(redis::meta m);

  /// Reads the description again, and switches to another filter if there is one. @throws error not_found
  void be_current();

  // ---- description_check.cpp

  /// The present description on the server. If it is lost and shards exist, it is restored.
  /// @throws error not_found: dropped, expired, or there is no shard
  redis::meta current_meta();

  /// Called before a call returns: applies the check of the description that the call included, or performs one if the
  /// last one is too old.
  /// @throws redis::made_anew  another filter has this name, and this object uses it now
  /// @throws error not_found
  void confirm(redis::access how);

  /// Called before the description is read.
  void begin_reading_meta();

  /// Called when the coming filter has replaced the old one.
  void begin_checks();

  /// Keeps copies of the description in the headers of the first shards, for redis_filter::create().
  void keep_copies();

  /// Writes a lost description again. @returns the description then on the server or, if writing is not permitted, the
  /// lost one
  /// @param has_shards  this client knows that shards exist; otherwise it searches for them
  /// @param required    missing permission is an error
  /// @throws error not_found
  redis::meta restore(bool has_shards, bool required);

  [[noreturn]] void throw_not_found() const;
  void note(const std::string& text) const;

  const redis::shard_view& view(std::uint64_t shard);

  /// Reads headers again. True: this object has switched to another filter (adopt() was called).
  /// @throws error not_found, damaged
  bool refresh(std::span<const std::uint64_t> shards);

  /// Called after unexpected shard versions: reads the headers and checks that they explain the difference. Returns as
  /// refresh().
  /// @param how        on a replica, lagging behind is an explanation
  /// @param confirmed  receives shards of an idle sliding-window filter whose state may be valid
  bool explain_stale(std::span<const std::uint64_t> shards, redis::access how,
                     std::vector<std::uint64_t>* confirmed = nullptr);

  /// Throws unless the newest layers of these shards have the length and the version of their headers.
  void throw_unless_back(std::span<const std::uint64_t> shards, redis::access how);

  [[noreturn]] void throw_gone(std::uint64_t shard, const std::string& what);

  using hole_list = std::vector<std::pair<std::uint64_t, std::int64_t>>;  // shards, and layers that are incomplete
  void throw_holes(const hole_list& holes, std::vector<std::uint64_t>* lost = nullptr);

  /// throw_gone() for a coming filter.
  [[noreturn]] void throw_lost();

  /// Reads the description again. True: another filter has replaced this one, and this object has switched to it.
  bool turn_if_replaced();

  /// The coming filter, if shards have a replacement mark. If it has already replaced this one, may adopt() it instead.
  /// Null: there is none, or no longer.
  impl* replacement();

  std::int64_t server_now();  // milliseconds since 1970
  std::int64_t generation_now() { return server_now() / static_cast<std::int64_t>(description.slice()); }
  bool is_over(std::int64_t generation) { return description.end_of_generation(generation) <= server_now(); }

  /// Whether a missing layer may have expired, by any server's clock. Otherwise it was evicted.
  bool may_be_over(std::int64_t layer) {
    return description.has_window() && description.earliest_end_of_generation(layer) <= server_now();
  }

  /// Runs the groups in `commands`; throws replies that are errors.
  void run(const std::function<void(std::size_t group, redis::reply first)>& take, const char* doing);

  void throw_own(std::string_view text) const;
  error_hint after_loss() const;

  std::uint64_t shard_of(std::uint64_t hash64) const noexcept { return multiply_high(hash64, description.shards()); }
  std::string where() const { return address.text(); }

  // ---- redis_filter.cpp, lookup.cpp, insert.cpp

  /// Hashes text or integers. @throws error incompatible: keys of the other kind, or hashes
  void hash(key_span keys, key_hash* hashes) const;
  void hash(key_span keys, std::vector<std::uint64_t>& hash64s) const;

  void note_doubts();  // notes about keys of a counting filter whose state is unknown after a lost connection

  // Process a limited number of keys per step, so that no call needs memory for all.
  void look_up(std::span<const std::uint64_t> hash64s, std::uint8_t* found);
  void insert(std::span<const std::uint64_t> hash64s, std::uint8_t* is_new);  // 0, 1 or maybe_new
  void remove(std::span<const std::uint64_t> hash64s, removal* results);
  [[noreturn]] void throw_replaced_in_removal() const;

  // ---- explain.cpp

  key_explanation explain(key_span one_key);

  // ---- scan.cpp

  redis_info info(std::vector<redis_shard>* shards);
  estimate keys_in_window();
  void merge(std::span<const std::uint8_t> bytes);
  void merge_into_newest(std::uint64_t shard, std::span<const std::uint8_t> lines);

  // ---- copy_layers.cpp, copy_slices.cpp

  layered_filter pull_layers(const std::string& metadata);
  void push_layers(const layered_filter& from);
  std::vector<std::uint64_t> push_slices(const layered_filter& from);  // returns the starts of expired slices
  void add_slices(const layered_filter& from, std::span<const std::size_t> layers);
  [[noreturn]] void throw_changed_in_push() const;

  // ---- orphans.cpp: shards of this name whose description is lost

  bool restore_orphan();  // true: they have a description again
  bool remove_orphans();  // true: there were some

  // ---- drop.cpp

  void drop_described();                   // the filter of `description`
  bool drop_text(const std::string& key);  // deletes a description that may be unreadable; true: it existed
  void let_mark_expire(const redis::meta& m);
  void remove_mark(const redis::meta& m);

  // ---- lifecycle.cpp, create.cpp, replace.cpp

  void make_shards();
  bool begin_generation(std::span<const std::uint64_t> shards);  // returns as refresh(), as does grow()
  bool grow(std::span<const std::uint64_t> shards);
  // A filter is replaced in these steps: the new one is created (make_coming, make_shards), announced, marked in all
  // shards of the old one, filled, and put in its place; or it is given up.
  void refuse_in_fill() const;
  std::unique_ptr<impl> make_coming(const redis_params& wanted);
  void announce(const redis::meta& live, const redis::meta& coming);
  void put_in_place(const redis::meta& live, const redis::meta& coming);
  void give_up(const redis::meta& coming);
  bool withdraw(const std::string& key, const std::string& text);  // true: it existed and is deleted
  void mark_all(const std::string& next_instance, const std::string& only = "");
  void unmark(std::span<const std::uint64_t> shards);
  bool exchange(const std::string& before, const std::string& after, const std::string& expiry);
  void set_expiry(std::int64_t at);  // milliseconds since 1970; 0: none
  bool on_replicas();                // waits until replicas have the writes of this client, as many as required
  void unlink(const redis::meta& m);
  void unlink_coming(const std::string& text);
  /// @returns shards that have a header by now
  std::vector<std::uint64_t> unlink_headless(const redis::meta& m, std::span<const std::uint64_t> shards);
  void load_all_views();
  std::vector<std::uint64_t> rebuild_first_views(std::span<const std::uint64_t> shards);

  // ---- repair.cpp

  void lease_repair();  // takes or renews the lease. @throws error locked
  void begin_repair();  // fills repair_->tokens
  void end_repair();
  void insert_into_lost(std::span<const std::uint64_t> hash64s, std::uint8_t* is_new);
  [[noreturn]] void throw_replaced_in_repair() const;

  struct repair_work {
    bool is_over = false;
    std::uint64_t epoch = 0;
    std::string lease = {};
    std::optional<std::chrono::steady_clock::time_point> leased = {};  // when the lease was taken or renewed
    std::map<std::uint64_t, std::string> tokens = {};  // `repairing` of the shards that are being refilled
  };
  std::shared_ptr<repair_work> repair_;  // null: no call of repair() so far
  bool is_repairing() const noexcept { return repair_ != nullptr && !repair_->is_over; }

  redis_address address;
  redis_options options;
  std::shared_ptr<redis::router> connections;
  redis::router& router;
  redis::meta description;
  bool to_come = false;         // this is the coming filter, which never switches to another filter
  bool being_replaced = false;  // by a call in progress
  const layout_row* layout = nullptr;
  const hash_row* hasher = nullptr;
  hash_seed seed;
  std::vector<std::unique_ptr<redis::shard_view>> views;
  std::unique_ptr<impl> next;
  std::uint64_t sent_twice = 0;  // number of repeated keys of the present insert()
  redis::batch commands;

 private:
  void give_back();  // returns room in the counts that was not used

  using order = std::vector<std::pair<std::uint64_t, std::uint32_t>>;  // hash64 and index of each key, sorted by shard

  order order_of(std::span<const std::uint64_t> hash64s, std::span<const std::uint32_t> which) const;

  // ---- description_check.cpp

  struct check_result {
    std::int64_t read_at;  // time by the clock of checks, before the command was sent
    std::string text;      // empty: there is no description
    bool one_is_missing;
  };
  struct remains {  // the rest of a filter without a description
    bool dropped = false;
    bool has_shards = false;
    std::string copy = {};  // of the description
  };
  std::optional<std::size_t> add_check();
  void touch_headers(std::size_t groups);
  void take_check(redis::reply first);
  void read_check();
  remains read_remains();
  std::pair<std::int64_t, std::string> write_if_missing(const redis::meta& m);
  void write_second(const redis::meta& m);

  std::optional<check_result> check_;                 // not yet applied by confirm()
  std::int64_t check_after_ = redis::check_interval;  // milliseconds
  std::int64_t read_at_ = 0;                          // when the description was last read
  std::int64_t checked_at_ = 0;                       // when the description was last read and applied
  std::uint64_t touched_ = 0;                         // number of the last shard whose header was read by a check
  std::string copied_;                                // the description whose copies are in headers; empty: unknown

  // ---- lookups and insertions

  enum class layer_source : std::uint8_t {
    none,   // its generation has expired
    lines,  // one line per key
    whole,  // all lines, to be copied
    copy,   // already copied
  };
  struct key_group {  // some keys of one shard
    std::uint64_t shard;
    std::size_t first;  // index in the order
    std::size_t count;
    // Determined by add_look(), used by take_look():
    std::vector<layer_source> sources = {};  // one per layer
    std::vector<std::uint8_t> known = {};    // one per key: 1 if a copy has it
  };
  std::vector<key_group> groups_of(const order& keys, std::size_t most) const;

  std::uint64_t line_of(const redis_layer& layer, std::uint64_t shard, std::uint64_t hash64) const;
  std::span<const std::uint64_t> cells_of(const redis_layer& layer, std::uint64_t shard, std::uint64_t hash64);
  std::span<const std::uint64_t> cells_to_write(const redis_layer& layer, std::uint64_t shard, std::uint64_t hash64);

  /// The time that determines which generations have expired. Call it before commands are written, because reading the
  /// server's clock runs a command.
  std::int64_t time_for_generations() { return description.has_window() ? server_now() : 0; }
  bool is_alive(std::int64_t layer, std::int64_t now) const {
    return !description.has_window() || description.end_of_generation(layer) > now;
  }

  void use_copies(key_group& g, const order& keys, std::size_t upto, std::int64_t now);
  void add_look(key_group& g, const order& keys, std::size_t upto, std::int64_t now, redis::access how);
  std::optional<std::int64_t> take_look(const key_group& g, const order& keys, std::size_t upto, redis::reply& r,
                                        std::uint8_t* has, redis::access how);
  void add_stamp(const key_group& g, redis::access how);
  std::string_view take_stamp(const key_group& g, const redis::reply& r, redis::access how);
  void look_up(std::span<const std::uint64_t> hash64s, std::uint8_t* found, redis::access how);
  std::vector<std::uint32_t> look_once(std::span<const std::uint64_t> hash64s, std::span<const std::uint32_t> which,
                                       std::uint8_t* found, redis::access how);
  bool explain_each(std::span<const std::uint64_t> stale, redis::access how, std::vector<std::uint64_t>& confirmed,
                    std::vector<std::uint64_t>* lost);
  void look_into_next(std::span<const std::uint64_t> hash64s, std::uint8_t* found);
  void add_mark(std::uint64_t shard, const std::string& next_instance, const std::string& only);
  bool copy_has(std::uint64_t shard, const redis::shard_view& v, std::uint64_t hash64);
  void keep_copy(std::uint64_t shard, std::int64_t number, const redis_layer& layer, std::uint64_t line,
                 std::string_view bytes);
  void forget_copy(std::uint64_t shard);
  void check_copy();

  struct written {
    std::uint64_t new_keys = 0;
    std::string stamp;                 // after the bits
    std::optional<std::int64_t> hole;  // an older layer that is incomplete
  };
  std::size_t older_layers(const redis::shard_view& v) const;
  void add_write(key_group& g, const order& keys, std::int64_t now);
  written take_write(std::size_t number, const key_group& g, const order& keys, redis::reply r, std::uint8_t* is_new);
  struct sight {
    bool is_known = false;
    std::string repaired = {};
    std::int64_t newest = 0;
  };
  static sight sight_of(const redis::shard_view& v);
  static bool was_reset(const redis::shard_view& now, const sight& before);
  void doubt_new(std::uint8_t& is_new) const;
  static void doubt_copies(const key_group& g, const order& keys, std::uint8_t* is_new);
  /// Unexpected versions of shards that were written to.
  class unexpected_stamps {
   public:
    void add(std::uint64_t shard, std::string stamp);
    bool empty() const noexcept { return all_.empty(); }
    std::vector<std::uint64_t> shards() const;
    /// Whether the shard is not among them, or all of its bits were written to its present newest layer.
    bool is_in_place(const redis::shard_view& now, const sight& before, std::uint64_t shard) const;

   private:
    std::map<std::uint64_t, std::string> all_;
  };

  bool catch_up(const order& keys);
  bool forget_lost_room();
  void reserve_again(const order& keys);
  std::vector<std::uint64_t> reserve(std::span<const key_group> groups, std::vector<std::uint64_t>& full);
  unexpected_stamps write_reserved(std::vector<key_group> groups, const order& keys, std::uint8_t* is_new);
  void insert_fixed(std::span<const std::uint64_t> hash64s, std::vector<std::uint32_t> todo,
                    std::vector<std::uint32_t> doubly, std::uint8_t* is_new);
  void insert_doubly(std::span<const std::uint64_t> hash64s, std::span<const std::uint32_t> which,
                     std::uint8_t* is_new);
  void insert_growing(std::span<const std::uint64_t> hash64s, std::vector<std::uint32_t> todo,
                      std::vector<std::uint32_t> doubly, std::uint8_t* is_new);
  const redis_layer& next_layer_of(const redis::shard_view& v);

  struct shard_condition;
  std::vector<shard_condition> examine(std::span<const std::uint64_t> shards);
  void add_begin_repair(const shard_condition& found);
  void add_header(const shard_condition& found);
  void remove_headers_if_dropped();
  std::vector<std::uint64_t> begin_repair(const std::vector<shard_condition>& conditions);

  bool copies_are_old();

  redis::closed_layers closed_layers_{options.closed_layers_bytes};
  std::uint64_t links_of_copies_ = 0;  // value of router::links() when the copies were made
  std::vector<std::uint64_t> cells_;
  std::map<std::vector<std::uint64_t>, redis_layer> next_layers_;  // by the capacities of the layers before
  std::uint64_t restarts_known_ = 0;  // router.possible_restarts() when `reserved` of the views was correct
  double repeats_ = 0;                // recent fraction of keys that were already present
  std::int64_t clock_offset_ = 0;
  std::optional<std::int64_t> clock_read_;  // when the clock was read, in this machine's time
  std::map<std::pair<std::uint64_t, std::int64_t>, std::vector<std::uint8_t>>
      copy_;  // copies of lines, by shard and layer
  std::optional<std::chrono::steady_clock::time_point> copy_checked_;
};

}  // namespace bloomery
