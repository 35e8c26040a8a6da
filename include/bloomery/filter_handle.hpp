// filter_handle: one interface to every kind of filter, in memory, in a file or on servers.
//
//   open_filter("users.bloom")                 a path: a plain, counting, sliding-window, static or rebuilding filter
//   redis::open_filter("redis://cache/users")  an address: a shared filter or a Guava chain; a path works, too
//   make_handle(...)                           a filter in memory
//
// Code above the library (commands, views, bindings) talks to handles and asks capabilities() where a filter cannot do
// everything. Where the kind of filter is known at compile time and single keys count, use filter<> instead.
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

class any_filter;
class rebuilding_filter;

/// What a filter can do. A call whose capability is false throws an error: not_permitted for a change of a static
/// filter or of a filter that was opened for reading, else incompatible.
struct capabilities {
  bool can_insert = true;      ///< insert(); false: a static filter, or a filter opened for reading
  bool can_remove = false;     ///< remove()
  bool can_merge = false;      ///< merge(): its bits can be united with those of a filter of equal parameters
  bool can_clear = false;      ///< clear()
  bool counts_copies = false;  ///< inserting a key twice needs two removals
  bool has_window = false;     ///< old keys expire: tick() has a meaning
  bool grows = false;          ///< it takes more keys than its first capacity and keeps its target FPR
  bool is_remote = false;      ///< calls are exchanges with servers, and may throw errc::unavailable
  bool commits_whole = false;  ///< others see nothing of the changes before commit(); without it, nothing is changed
  bool lookups_in_parallel = true;  ///< any number of threads may call contains() while none changes the filter
  bool has_cells = true;            ///< explain()
  bool can_look_up = true;          ///< contains(); false: a keyed filter opened without its secret
};

/// What a filter with these parameters can do in memory. Opened for reading or on servers a filter can do less:
/// filter_handle::capabilities().
///
/// Example:
///     assert(capabilities_of({.layout = "counting"}).can_remove && !capabilities_of({.layout = "classic"}).can_remove);
///     assert(capabilities_of({.layout = "sliding"}).has_window && !capabilities_of({.layout = "fuse8"}).can_insert);
capabilities capabilities_of(const params& p) noexcept;

/// What a filter tells quickly: from its counters, or in one exchange with its servers. What is unknown is empty.
struct filter_summary {
  std::optional<std::uint64_t> insert_count;  ///< keys that were certainly new; counting: copies in a file
  bool count_is_estimate = false;             ///< insert_count was estimated from the bits
  std::uint64_t capacity = 0;                 ///< keys; 0: unknown, or it grows without a limit
  std::optional<double> fill_ratio;           ///< expected share of bits set, 0 to 1
  std::optional<double> fpr;                  ///< exact FPR, expected for the keys that are in or of the present bits
  bool is_overfull = false;  ///< `fpr` breaks the target FPR: judge_fpr(). More than `capacity` keys were inserted
  std::optional<window_facts> window;             ///< generations of a sliding-window filter
  std::optional<std::uint64_t> refused_removals;  ///< counting in a file: keys to be removed that were not there
  std::optional<std::uint64_t> rebuilds;          ///< times a rebuilding filter grew since it was opened
  std::optional<std::uint64_t> growths;           ///< times a Guava chain grew: its bitmaps, less one
};

/// What insert() or remove() did.
struct change_result {
  std::uint64_t keys = 0;     ///< keys that are done
  std::uint64_t changed = 0;  ///< of these: certainly new, or removed
};

/// insert() or remove() ended before all keys were done: the error that ended it, and how far it came.
///
/// Example:
///     const auto insert_some = [](filter_handle& filter, key_span keys) {
///       try {
///         return filter.insert(keys).keys;
///       } catch (const partial_error& e) {
///         return e.done().keys;  // keys[0] to keys[e.done().keys - 1] are in
///       }
///     };
///     static_cast<void>(insert_some);
class partial_error : public error {
 public:
  partial_error(const error& why, change_result done, std::uint64_t undecided)
      : error(why), done_(done), undecided_(undecided) {}

  /// The keys before the failure: they are done.
  const change_result& done() const noexcept { return done_; }

  /// The keys of the exchange that failed, right behind: done or not, which cannot be known. 0: they are not done.
  std::uint64_t undecided() const noexcept { return undecided_; }

 private:
  change_result done_;
  std::uint64_t undecided_;
};

/// When calls on many keys give up. Both are looked at before every `keys_of_a_call` keys.
struct call_limits {
  std::optional<std::chrono::steady_clock::time_point> deadline = {};  ///< then they throw errc::unavailable
  std::function<bool()> cancelled = {};                                ///< true: they throw errc::unavailable
};

/// Any filter. Threads: contains() and prepare() from any number of threads if capabilities().lookups_in_parallel,
/// while no other call runs; all other calls from one thread at a time.
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
  /// The most keys between two looks at the limits, and of one exchange with servers.
  static constexpr std::size_t keys_of_a_call = 32'768;

  filter_handle(const filter_handle&) = delete;
  filter_handle& operator=(const filter_handle&) = delete;
  virtual ~filter_handle();

  // ---- keys ---------------------------------------------------------------------------------------------------------

  /// Inserts keys one after another. `is_new` is empty or takes 1 for each key that is certainly new, else 0. If a
  /// lost connection to a server left that open, it takes maybe_new (redis.hpp).
  ///
  /// @throws partial_error  any failure, with the number of keys that are in; its code is: incompatible: the filter
  ///                        takes no keys, or keys of the other kind; not_permitted: opened for reading;
  ///                        unavailable: a server, the deadline, or cancelled; too_large, damaged, not_found, io
  /// @throws error          invalid_argument: is_new has another size than keys
  change_result insert(key_span keys, std::span<std::uint8_t> is_new = {});

  /// Bit i % 64 of bitmap[i / 64] becomes the answer for key i; false: certainly never inserted. Unused bits of the
  /// last word become 0.
  /// @throws error  invalid_argument: fewer than (keys.size() + 63) / 64 words; incompatible, unavailable, damaged
  void contains(key_span keys, std::span<std::uint64_t> bitmap);
  bool contains(std::string_view key);
  bool contains(std::uint64_t key);

  /// Removes one copy of each key. `results` is empty or takes the answer for each. Only keys that were inserted may be
  /// removed: see filter::remove(). @throws partial_error, error  as insert()
  change_result remove(key_span keys, std::span<removal> results = {});

  /// The same keys in the form that this filter takes fastest, hashed into `room` if it takes hashes. May run in other
  /// threads, also while keys are inserted.
  virtual key_span prepare(key_span keys, std::vector<key_hash>& room) const;

  /// When calls on many keys give up; nothing: never.
  void set_limits(call_limits limits) { limits_ = std::move(limits); }

  // ---- the whole filter ---------------------------------------------------------------------------------------------

  virtual bloomery::capabilities capabilities() const = 0;

  /// What the filter was made with. The parameters of a filter that grows are those of its present state.
  virtual const params& parameters() const noexcept = 0;

  /// What is known quickly. Of a counting filter `fpr` and `is_overfull` are up to date after settle() only.
  /// @throws error  remote: unavailable, damaged, not_found
  virtual filter_summary summary() = 0;

  /// Whether the expected FPR of the inserted keys breaks the target FPR, by judge_fpr() and the filter's counters. Takes
  /// no time while there is room. Counting filters and filters on servers answer in summary() only.
  virtual bool is_overfull() const;

  /// Everything that the filter reports about itself. @throws error  remote: unavailable, damaged, not_found
  virtual filter_facts info(info_depth depth) = 0;

  /// A copy in memory with the same bits and parameters, of a filter in a file also without its secret. After an
  /// unclean end the count of the copy is estimated from the bits, as any_filter::load() does.
  /// @throws error  incompatible: a filter of several layers, or a sliding-window filter on servers; too_large; remote:
  ///                unavailable, damaged, not_found, locked
  ///
  /// Example:
  ///     any_filter(complete({.capacity = 1000, .target_fpr = 0.01})).save("cities.bloom");
  ///     any_filter copy = open_filter("cities.bloom")->copy();
  ///     assert(copy.insert("Madrid") && !open_filter("cities.bloom")->contains("Madrid"));
  virtual any_filter copy();

  /// Takes in the keys of another filter of equal parameters. @throws error incompatible, unavailable
  virtual void merge(filter_handle& other);

  /// Removes all keys. @throws error incompatible, not_permitted, unavailable
  virtual void clear();

  /// Sets the time of a sliding-window filter, in milliseconds since 1970; other filters ignore it.
  virtual void tick(std::uint64_t now);

  /// Waits for work in the background, such as the rebuild of a filter that grows, and measures what the counters of a
  /// counting filter alone do not tell. @throws error as rebuilding_filter::settle(); the filter has all keys
  virtual void settle();

  /// Makes all changes durable and, with capabilities().commits_whole, visible. The last call on the filter: afterwards
  /// it may only be destroyed. Without it a file is closed by the destructor, which reports no failure.
  /// @throws error  io, not_permitted: what was inserted may be lost; as rebuilding_filter::settle(), if that did not
  ///                throw it: all keys are durable
  virtual void commit();

  /// Looks one key up and tells what its cells hold. A sliding-window filter answers as of its newest generation; a
  /// copy of a shared filter with a window as its clock says, without the slices that have expired.
  /// @throws error  incompatible: keys of the other kind, or no cells (capabilities().has_cells); unavailable, damaged
  virtual key_explanation explain(key_span one_key);

  /// The cells of a filter in memory or in a file; of a sliding-window filter as its clock says. Valid until the filter
  /// is changed. @throws error incompatible: a filter on servers
  virtual cell_view cells() const;

  /// The filter in memory or in a mapped file behind this handle, for callers that inspect its bits; null on servers
  /// and for filters of several layers.
  virtual const any_filter* local() const noexcept;

 protected:
  filter_handle() = default;

  /// Some keys, at most keys_of_a_call. Returns how many changed the filter. An error thrown here counts all of them as
  /// undecided, but those that refuse keys: incompatible, invalid_argument, and locally not_permitted.
  virtual std::uint64_t insert_some(key_span keys, std::uint8_t* is_new) = 0;
  virtual std::uint64_t remove_some(key_span keys, removal* results);
  virtual void look_up_some(key_span keys, std::uint64_t* bitmap) = 0;

 private:
  void check_limits() const;
  template <class Some>
  change_result in_calls(key_span keys, Some some);

  call_limits limits_;
};

/// Opens the filter in a file, of whatever kind it is.
///
/// @param path  a file; redis::open_filter() takes addresses, too
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

/// A handle of a filter in memory or of a file that is open already; commit() closes it.
std::unique_ptr<filter_handle> make_handle(any_filter filter);

/// A handle of a rebuilding filter that is open for writing. @param path  of its file
std::unique_ptr<filter_handle> make_handle(rebuilding_filter filter, std::string path);

/// An empty scalable filter in memory, for an unknown number of keys: scalable layers that keep p.target_fpr, whose
/// first is for p.capacity keys (0: scalable_layers::usual_first_layer).
/// @param p  hash, keys, seed, secret, target_fpr, capacity; the layout is that of scalable_layers
/// @throws error as complete(); too_large
std::unique_ptr<filter_handle> make_scalable_handle(params p);

}  // namespace bloomery
