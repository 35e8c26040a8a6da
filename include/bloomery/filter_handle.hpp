// filter_handle: one interface to all kinds of filters, in memory, in a file or on servers.
//
//   open_filter("users.bloom")                 a path: a plain, counting, sliding-window, static or rebuilding filter
//   redis::open_filter("redis://cache/users")  an address: a shared filter or a Guava chain; also accepts a path
//   make_handle(...)                           a filter in memory
//
// Code above the library (commands, views, bindings) uses handles and tests capabilities() where not every filter
// supports an operation. If the kind of filter is known at compile time and single keys must be fast, use filter<>.
#pragma once

#include <bloomery/cells.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/detail/generations.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/key.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/params.hpp>
#include <bloomery/partial_error.hpp>
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

class any_filter;
class rebuilding_filter;

/// The operations that a filter supports. A call whose capability is false throws an error: not_permitted for a change
/// of a static filter or of a filter opened for reading, otherwise incompatible.
struct capabilities {
  bool can_insert = true;           ///< insert(); false: a static filter, or a filter opened for reading
  bool can_remove = false;          ///< remove()
  bool can_merge = false;           ///< merge(): accepts filters with equal parameters
  bool can_clear = false;           ///< clear()
  bool counts_copies = false;       ///< a key that was inserted twice must be removed twice
  bool has_window = false;          ///< keys expire: tick() sets the time
  bool grows = false;               ///< accepts more keys than its first capacity and keeps its target FPR
  bool is_remote = false;           ///< calls are exchanges with servers, and may throw errc::unavailable
  bool commits_whole = false;       ///< changes become visible in commit(); without it, they are discarded
  bool lookups_in_parallel = true;  ///< any number of threads may call contains() while no thread changes the filter
  bool has_cells = true;            ///< explain()
  bool can_look_up = true;          ///< contains(); false: a keyed filter opened without its secret
};

/// The capabilities of a filter with these parameters in memory. A filter that is opened for reading, or is on servers,
/// may have fewer: see filter_handle::capabilities().
///
/// Example:
///     assert(capabilities_of({.layout = "counting"}).can_remove);
///     assert(!capabilities_of({.layout = "classic"}).can_remove);
///     assert(capabilities_of({.layout = "sliding"}).has_window && !capabilities_of({.layout = "fuse8"}).can_insert);
capabilities capabilities_of(const params& p) noexcept;

/// Facts that a filter reports quickly: from its counters, or in one exchange with its servers. Unknown values are
/// empty.
struct filter_summary {
  std::optional<std::uint64_t> insert_count;  ///< keys that were certainly new; counting filters in a file: copies
  bool count_is_estimate = false;             ///< insert_count was estimated from the bits
  std::uint64_t capacity = 0;                 ///< keys; 0: unknown, or it grows without a limit
  std::optional<double> fill_ratio;           ///< expected fraction of bits set, 0 to 1
  std::optional<double> fpr;                  ///< expected FPR of the inserted keys, or exact FPR of the present bits
  bool is_overfull = false;                   ///< `fpr` exceeds the target FPR beyond chance: judge_fpr()
  std::optional<window_facts> window;         ///< generations of a sliding-window filter
  std::optional<std::uint64_t> refused_removals;  ///< counting filters in a file: removals of absent keys
  std::optional<std::uint64_t> rebuilds;          ///< number of rebuilds of a rebuilding filter since it was opened
  std::optional<std::uint64_t> growths;           ///< number of bitmaps of a Guava chain minus one
};

/// Limits of calls on many keys. They are checked before every `keys_of_a_call` keys.
struct call_limits {
  std::optional<std::chrono::steady_clock::time_point> deadline = {};  ///< after this, calls throw errc::unavailable
  std::function<bool()> cancelled = {};  ///< if it returns true, calls throw errc::unavailable
};

/// Any filter.
///
/// Threads: if capabilities().lookups_in_parallel, any number may call contains() and prepare() while no other call
/// runs. All other calls: one thread at a time.
///
/// Example:
///     const std::unique_ptr<filter_handle> seen =
///         make_handle(any_filter(complete({.capacity = 1000, .target_fpr = 0.01})));
///     const std::vector<std::string> cities = {"Madrid", "Berlin"};
///     assert(seen->insert(cities).changed == 2);
///     assert(seen->contains("Madrid") && !seen->contains("Lima"));
///     assert(seen->capabilities().can_merge && !seen->capabilities().can_remove);
class filter_handle {
 public:
  /// Maximum number of keys between two checks of the limits, and of one exchange with servers.
  static constexpr std::size_t keys_of_a_call = 32'768;

  filter_handle(const filter_handle&) = delete;
  filter_handle& operator=(const filter_handle&) = delete;
  virtual ~filter_handle();

  // ---- keys ---------------------------------------------------------------------------------------------------------

  /// Inserts keys in order. `is_new` is empty or receives per key 1 if it is certainly new, maybe_new (redis.hpp) if a
  /// lost connection to a server left that open, otherwise 0.
  ///
  /// @throws partial_error  any failure, with the number of keys processed. Its code is incompatible: the filter
  ///                        accepts no keys, or only keys of the other kind; not_permitted: opened for reading;
  ///                        unavailable: a server, the deadline, or canceled; too_large, damaged, not_found, io
  /// @throws error          invalid_argument: `is_new` has another size than `keys`
  change_result insert(key_span keys, std::span<std::uint8_t> is_new = {});

  change_result insert(std::initializer_list<std::string_view> keys) {
    return insert(key_span(std::span(keys.begin(), keys.size())));
  }

  /// Inserts one key and returns whether it is certainly new; false also if a lost connection to a server left that
  /// open. @throws error  codes as above; filters on servers and filters that grow throw partial_error
  bool insert(std::string_view key);
  bool insert(std::uint64_t key);

  /// Inserts keys in the fastest order, with up to `threads` threads (0: one per processor), and returns how many were
  /// certainly new. Filters that grow or are on servers insert in order. The limits do not apply while a filter in
  /// memory or in a mapped file inserts. @throws partial_error, error  as insert()
  ///
  /// Example:
  ///     const auto seen = make_handle(any_filter(complete({.capacity = 1000, .target_fpr = 0.01})));
  ///     assert(seen->insert_all(std::vector<std::string>{"Madrid", "Berlin", "Madrid"}) == 2);
  std::uint64_t insert_all(key_span keys, unsigned threads = 0);

  /// Looks up keys: bit i % 64 of bitmap[i / 64] is the answer for key i; false: certainly never inserted. Unused bits
  /// of the last word are 0.
  /// @throws error  invalid_argument: fewer than (keys.size() + 63) / 64 words; incompatible, unavailable, damaged
  void contains(key_span keys, std::span<std::uint64_t> bitmap);
  bool contains(std::string_view key);
  bool contains(std::uint64_t key);

  /// Removes one copy of each key. `results` is empty or receives one result per key. Remove only inserted keys: see
  /// filter::remove(). @throws partial_error, error  as insert()
  change_result remove(key_span keys, std::span<removal> results = {});

  /// Converts keys to the form that this filter processes fastest: hashes, which are stored in `room`, or the keys as
  /// they are. May run in other threads, also while keys are inserted.
  virtual key_span prepare(key_span keys, std::vector<key_hash>& room) const;

  /// Sets the limits of calls on many keys. Empty fields: no limit.
  void set_limits(call_limits limits) { limits_ = std::move(limits); }

  // ---- the whole filter ---------------------------------------------------------------------------------------------

  virtual bloomery::capabilities capabilities() const = 0;

  /// The parameters of the filter; for a filter that grows, of its present state.
  virtual const params& parameters() const noexcept = 0;

  /// Facts that are available quickly. For counting filters, `fpr` and `is_overfull` are up to date after settle()
  /// only.
  /// @throws error  remote: unavailable, damaged, not_found
  virtual filter_summary summary() = 0;

  /// Whether the expected FPR of the inserted keys breaks the target FPR, by judge_fpr() and the filter's counters.
  /// Takes almost no time below capacity. Counting filters and filters on servers report this in summary() only.
  virtual bool is_overfull() const;

  /// Everything that the filter reports about itself. @throws error  remote: unavailable, damaged, not_found
  virtual filter_facts info(info_depth depth) = 0;

  /// A copy in memory with the same bits and parameters. A filter in a file can be copied without its secret. After an
  /// unclean end, the count of the copy is estimated from the bits, as by any_filter::load().
  /// @throws error  incompatible: a filter of several layers, or a sliding-window filter on servers; too_large; remote:
  ///                unavailable, damaged, not_found, locked
  ///
  /// Example:
  ///     any_filter(complete({.capacity = 1000, .target_fpr = 0.01})).save("cities.bloom");
  ///     any_filter copy = open_filter("cities.bloom")->copy();
  ///     assert(copy.insert("Madrid") && !open_filter("cities.bloom")->contains("Madrid"));
  virtual any_filter copy();

  /// Writes a copy of the filter as a file, whole or not at all: any_filter::save() or layered_filter::save(). A filter
  /// on servers is read first, as by copy(). @throws error  as save_file() and copy()
  ///
  /// Example:
  ///     const std::unique_ptr<filter_handle> seen = make_scalable_handle({.target_fpr = 0.01});
  ///     assert(seen->insert(std::vector<std::string>{"Madrid"}).changed == 1);
  ///     seen->save("seen.layers");
  ///     assert(open_filter("seen.layers")->contains("Madrid"));
  virtual void save(const std::string& path, const create_options& options = {});

  /// Merges the keys of another filter with equal parameters into this one. Only the sizes of quotient filters that
  /// grow may differ. @throws error incompatible, full, unavailable
  virtual void merge(filter_handle& other);

  /// Removes all keys. @throws error incompatible, not_permitted, unavailable
  virtual void clear();

  /// Sets the time of a sliding-window filter, in milliseconds since 1970; other filters ignore it.
  virtual void tick(std::uint64_t now);

  /// Waits for background work, such as the rebuild of a filter that grows, and reads the bits of a counting filter to
  /// compute `fpr` of summary(). @throws error as rebuilding_filter::settle(); the filter has all keys
  virtual void settle();

  /// Makes all changes durable and, with capabilities().commits_whole, visible. Must be the last call: afterwards the
  /// filter may only be destroyed. Without commit(), the destructor closes a file and ignores errors.
  /// @throws error  io, not_permitted: inserted keys may be lost; as rebuilding_filter::settle(), unless settle() has
  ///                thrown that error before: all keys are durable
  virtual void commit();

  /// Looks up one key and reports the values of its cells. A sliding-window filter answers as of its newest generation.
  /// A copy of a shared filter with a window answers as of its clock, without the slices that have expired.
  /// @throws error  incompatible: keys of the other kind, or no cells (capabilities().has_cells); unavailable, damaged
  virtual key_explanation explain(key_span one_key);

  /// The cells of a filter in memory or in a file; of a sliding-window filter at the time of its clock. Valid until the
  /// filter changes. @throws error incompatible: a filter on servers
  virtual cell_view cells() const;

  /// The filter in memory or in a mapped file behind this handle, for callers that inspect its bits; null on servers
  /// and for filters of several layers.
  virtual const any_filter* local() const noexcept;

 protected:
  filter_handle() = default;

  /// The filter behind this handle if any_filter's own functions insert its keys; otherwise null.
  virtual any_filter* in_place() noexcept;

  /// Inserts at most keys_of_a_call keys and returns how many were certainly new. If this throws, all of these keys
  /// count as undecided, except for errors that refuse keys: incompatible, invalid_argument, and for local filters
  /// not_permitted.
  virtual std::uint64_t insert_some(key_span keys, std::uint8_t* is_new) = 0;
  virtual std::uint64_t remove_some(key_span keys, removal* results);
  virtual void look_up_some(key_span keys, std::uint64_t* bitmap) = 0;

 private:
  void check_limits() const;
  template <class Some>
  change_result in_calls(key_span keys, Some some);

  call_limits limits_;
};

/// Opens the filter in a file of any kind.
///
/// @param path  a file; redis::open_filter() also accepts addresses
/// @throws error  as any_filter::open, file_edit and rebuilding_filter::open
///
/// Example:
///     any_filter(complete({.layout = "counting", .capacity = 1000, .target_fpr = 0.01})).save("here.bloom");
///     {
///       const std::unique_ptr<filter_handle> here = open_filter("here.bloom", {.mode = access::read_write});
///       const std::uint64_t before = here->insert(std::vector<std::string>{"Madrid"}).changed;
///       assert(before == 1);
///       here->commit();
///     }
///     assert(open_filter("here.bloom")->contains("Madrid"));
std::unique_ptr<filter_handle> open_filter(const std::string& path, const open_options& options = {});

/// A handle for a filter in memory or a mapped file; commit() closes the file.
std::unique_ptr<filter_handle> make_handle(any_filter filter);

/// A handle for a rebuilding filter that is open for writing. @param path  the path of its file
std::unique_ptr<filter_handle> make_handle(rebuilding_filter filter, std::string path);

/// An empty scalable filter in memory, for an unknown number of keys. It keeps p.target_fpr. Its first layer has
/// capacity p.capacity (0: scalable_layers::usual_first_layer).
/// @param p  uses hash, keys, seed, secret, target_fpr and capacity; the layout is that of scalable_layers
/// @throws error as complete(); too_large
std::unique_ptr<filter_handle> make_scalable_handle(params p);

}  // namespace bloomery
