// any_filter: a filter whose layout or scheme, hash and kind of keys are chosen at run time, by params or by a file.
//
// The same params give the same bytes as filter<>. A batch costs one indirect call. file_edit changes a filter file
// atomically.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/generations.hpp>
#include <bloomery/detail/key_hash.hpp>
#include <bloomery/key.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

class filter_handle;

/// A Bloom filter whose layout, hash and kind of keys are known at run time only.
///
/// Threads: any number may look up while none inserts. A moved-from filter may only be assigned to or destroyed.
///
/// Example:
///     any_filter seen(complete({.layout = "classic", .capacity = 1000, .target_fpr = 0.001}));
///     assert(seen.insert("Madrid"));
///     assert(seen.may_contain("Madrid"));
///     assert(!seen.may_contain("Berlin"));
///
/// A quotient filter that complete() made from "quotient_growing" doubles when a key has no room, until it has room for
/// its capacity. Doubling changes layout and geometry in parameters(): twice as many blocks, slots of one bit less. The
/// filter reports the same keys as before, and its FPR is at most the target FPR at any size.
///
/// Example:
///     any_filter users(complete({.layout = "quotient_growing", .capacity = 1'000'000, .target_fpr = 0.01}));
///     assert(users.parameters().layout == "quotient15" && users.byte_size() == 5120);
///     for (int i = 0; i < 3000; ++i) users.insert("user " + std::to_string(i));
///     assert(users.parameters().layout == "quotient14" && users.byte_size() == 10'240);
class any_filter {
 public:
  /// An empty filter on the heap. Empty fields of `p` are completed as by complete().
  /// @throws error  invalid_argument, too_large: as complete(), or not enough memory
  explicit any_filter(params p);

  /// A plain, counting or quotient filter with existing bits. Its count is estimated.
  /// @throws error  as above; incompatible: the number of bytes differs from the geometry's, or another family
  any_filter(params p, heap_storage bytes);

  /// Opens a filter file in place; see mapped_storage::open. If the last writer was killed, read_write estimates
  /// insert_count() from the bits, and read_only reports the count of the last clean close.
  ///
  /// @throws error  as mapped_storage::open; incompatible: a layout, scheme or hash that this library does not have, a
  ///                secret that is missing, wrong or not needed, a filter with a log for read_write (open it with
  ///                rebuilding_filter), a quotient filter for read_write (file_edit changes it), or options.to_remove
  ///
  /// Example:
  ///     any_filter(complete({.capacity = 1000, .target_fpr = 0.01})).save("open.bloom");
  ///     any_filter file = any_filter::open("open.bloom", {.mode = access::read_write});
  ///     file.insert("Madrid");
  ///     file.close();
  ///     assert(any_filter::open("open.bloom", {.check = file_check::payload}).may_contain("Madrid"));
  static any_filter open(const std::string& path, const open_options& options = {});

  /// Creates an empty filter file, mapped for writing.
  /// @throws error  as mapped_storage::create; incompatible: a quotient filter, which is made in memory and saved
  ///
  /// Example:
  ///     const params p = complete({.capacity = 1000, .target_fpr = 0.01});
  ///     any_filter::create("made.bloom", p, {.metadata = "cities"}).insert("Madrid");
  ///     assert(any_filter::open("made.bloom").opened_from()->metadata == "cities");
  static any_filter create(const std::string& path, params p, const create_options& options = {});

  /// Reads a filter file into the heap and checks every page. Of the options it uses `secret`, `clock` and `to_remove`.
  /// @throws error as open(); damaged
  static any_filter load(const std::string& path, const open_options& options = {});

  /// Creates a filter from the bytes of a file. The bytes may be hostile: they are checked as load() checks a file, and
  /// cause no larger allocation than their own size. @throws error as load() and load_bytes()
  ///
  /// Example:
  ///     any_filter cities(complete({.capacity = 1000, .target_fpr = 0.01}));
  ///     cities.insert("Madrid");
  ///     const any_filter received = any_filter::from_bytes(cities.to_bytes());
  ///     assert(received == cities && received.may_contain("Madrid"));
  static any_filter from_bytes(std::span<const std::uint8_t> file, const open_options& options = {});

  /// The bytes of the file that save() writes. @throws error  invalid_argument: the metadata is too long; too_large
  std::vector<std::uint8_t> to_bytes(const std::string& metadata = {}) const;

  /// A copy on the heap, with the same bits, counts and clock. If the file was opened for reading after an unclean end,
  /// the copy's count is estimated from the bits, as by load(). @throws error too_large: not enough memory
  ///
  /// Example:
  ///     any_filter first(complete({.capacity = 1000, .target_fpr = 0.01}));
  ///     any_filter second = first.clone();
  ///     second.insert("Madrid");
  ///     assert(!first.may_contain("Madrid") && !(first == second));
  any_filter clone() const;

  /// Builds a static filter in memory from all its keys, which may be repeated; see static_filter.
  ///
  /// @param hashing    uses `hash`, `keys`, `seed` and `secret`; an empty hash is completed
  /// @param keys       text, integers or hashes; takes 8 bytes per key in addition to the filter
  /// @param width      w, bits of a fingerprint: 1 to 32; the FPR is 2^-w
  /// @param threads    for the build; 0: one per processor
  /// @param structure  fuse: 1.13 w bits per key; ribbon: 1.01 w bits per key, slower lookups
  /// @throws error     as complete() and fuse_build(); incompatible: keys of the other kind
  ///
  /// Example:
  ///     const std::vector<std::string> cities = {"Madrid", "Berlin", "Madrid"};
  ///     const any_filter built = any_filter::build_static({}, cities);
  ///     assert(built.insert_count() == 2 && built.may_contain("Berlin") && !built.is_writable());
  static any_filter build_static(const params& hashing, key_span keys, unsigned width = 8, unsigned threads = 0,
                                 static_structure structure = static_structure::fuse);

  any_filter(any_filter&&) noexcept;
  any_filter& operator=(any_filter&&) noexcept;
  ~any_filter();

  /// Writes the filter as a file, whole or not at all. Metadata of the file that it was opened from is not copied.
  /// @throws error as save_file
  void save(const std::string& path, const std::string& metadata = {}) const;
  void save(const std::string& path, const create_options& options) const;

  /// Closes a file that is mapped for writing: writes checksums, count and clean mark, and syncs. Afterwards the filter
  /// is in the moved-from state. @throws error io
  void close();

  /// Inserts a key. True: the key is certainly new.
  /// @throws error  incompatible: the filter has keys of the other kind; not_permitted: opened for reading only; full:
  ///                a quotient filter has no room for the key; too_large: not enough memory to double it
  bool insert(std::string_view key);
  bool insert(std::uint64_t key);

  /// Inserts keys in order and returns how many were certainly new. `is_new` is empty or receives 1 (certainly new) or
  /// 0 per key.
  ///
  /// Keys may be text, integers, or hashes computed by hash(). Filters of a scheme accept text only.
  /// @throws error  incompatible: keys of the other kind, hashes with a scheme, or hash64s without uses_hash64();
  ///                not_permitted: opened for reading only; invalid_argument: `is_new` has another size. Nothing is
  ///                inserted then. partial_error full: a quotient filter has no room for a key; partial_error
  ///                too_large: not enough memory to double it; the keys before it are in
  ///
  /// Example:
  ///     any_filter seen(complete({.capacity = 1000, .target_fpr = 0.01}));
  ///     const std::vector<std::string> cities = {"Madrid", "Berlin"};
  ///     std::vector<std::uint8_t> is_new(cities.size());
  ///     assert(seen.insert(cities, is_new) == 2 && is_new[1] == 1);
  std::uint64_t insert(key_span keys, std::span<std::uint8_t> is_new = {});
  std::uint64_t insert(std::initializer_list<std::string_view> keys) {
    return insert(key_span(std::span<const std::string_view>(keys.begin(), keys.size())));
  }

  /// Inserts keys in the fastest order, with up to `threads` threads (0: one per processor). Returns how many were
  /// certainly new. See filter::insert_all(); classic and schemes insert in order. @throws error as above
  std::uint64_t insert_all(key_span keys, unsigned threads = 0);

  /// Removes one copy of an inserted key from a counting or quotient filter. not_found: the key was certainly absent,
  /// nothing changes, and the filter is tainted() from then on. Removing a key that was never inserted may remove other
  /// keys: see filter::remove(). If the process is killed within this call on a mapped file, the key may stay half
  /// removed; file_edit changes a file atomically.
  ///
  /// @throws error  incompatible: keys of the other kind, or a filter of another layout; not_permitted: opened for
  ///                reading only
  ///
  /// Example:
  ///     any_filter here(complete({.layout = "counting", .capacity = 1000, .target_fpr = 0.01}));
  ///     here.insert("Madrid");
  ///     here.insert("Madrid");  // two copies, to be removed twice
  ///     assert(here.remove("Madrid") == removal::removed && here.may_contain("Madrid"));
  ///     assert(here.remove("Madrid") == removal::removed && !here.may_contain("Madrid"));
  removal remove(std::string_view key);
  removal remove(std::uint64_t key);

  /// Removes keys in order. `results` is empty or receives one result per key. Returns how many were removed.
  /// @throws error  as above; invalid_argument: `results` has another size. Nothing is removed then.
  std::uint64_t remove(key_span keys, std::span<removal> results = {});
  removal remove(std::initializer_list<std::string_view> keys) = delete;  // as may_contain()

  /// False: the key was certainly never inserted. @throws error incompatible: keys of the other kind
  bool may_contain(std::string_view key) const;
  bool may_contain(std::uint64_t key) const;

  /// Looks up keys: bit i % 64 of bitmap[i / 64] is the answer for key i; unused bits are 0. `bitmap` has at least
  /// ceil(keys.size() / 64) words; further words are unchanged.
  /// @throws error  incompatible, as insert(); invalid_argument: the bitmap is too short
  void may_contain(key_span keys, std::span<std::uint64_t> bitmap) const;
  bool may_contain(std::initializer_list<std::string_view> keys) const = delete;  // not one view of two pointers

  /// Whether keys are hashed to 128 bits before their cells are computed: true for all layouts, false for schemes.
  bool uses_hashes() const noexcept;

  /// The cells of a key: parameters().geometry.probes indices of bits, of counters in a counting filter, or of the two
  /// blocks of a quotient filter. Some may be equal.
  /// @throws error incompatible: keys of the other kind
  std::vector<std::uint64_t> cells(std::string_view key) const;
  std::vector<std::uint64_t> cells(std::uint64_t key) const;
  std::vector<std::uint64_t> cells(key_hash hash) const;

  /// Writes the hash of each key to `hashes`. All functions with a key_span accept these hashes instead of the keys, so
  /// hashing can run in other threads. `hashes` has at least keys.size() elements.
  /// @throws error  incompatible: uses_hashes() is false, or keys of the other kind; invalid_argument: too few elements
  ///
  /// Example:
  ///     any_filter seen(complete({.capacity = 1000, .target_fpr = 0.01}));
  ///     const std::vector<std::string> cities = {"Madrid", "Berlin"};
  ///     std::vector<key_hash> hashes(cities.size());
  ///     seen.hash(cities, hashes);
  ///     seen.insert(hashes);
  ///     assert(seen.may_contain("Berlin"));
  void hash(key_span keys, std::span<key_hash> hashes) const;

  /// Whether the layout reads only the `hash64` of a key's hash: split_block, split_block512, blocked, blocked_page.
  bool uses_hash64() const noexcept;

  /// Merges the keys of `other` into this filter (union). The count becomes an estimate. Counting filters add their
  /// counters, each up to 15, and their counts; quotient filters add their copies. @throws error  incompatible: names
  /// the field that differs and both values; full: a quotient filter has no room for all copies, and keeps
  /// its own
  void merge(const any_filter& other);

  /// Replaces this filter by the intersection. It reports every key that was in both filters, and has more false
  /// positives than a filter of those keys alone (see current_fpr()). The count becomes an estimate.
  /// @throws error as merge; incompatible: counting filters
  void intersect(const any_filter& other);
  bool compatible_with(const any_filter& other) const;

  /// merge() and intersect() as operators, with the same errors.
  any_filter& operator|=(const any_filter& other);
  any_filter& operator&=(const any_filter& other);

  /// Whether both filters have the same bits, and the same parameters except for capacity and target FPR. Such filters
  /// give the same answers. Their counts may differ.
  bool operator==(const any_filter& other) const;

  /// Removes all keys.
  void clear();

  /// Whether keys can be inserted: false for a static filter, and for a file opened for reading.
  bool is_writable() const noexcept;

  const params& parameters() const noexcept;
  std::span<const std::uint8_t> bytes() const noexcept;  ///< for file_check::on_use, call verify() first

  /// Compares the pages that file_check::on_use has not compared with their checksums yet. Functions that read all bits
  /// call this first. `go_on` is called with the fraction done, from 0 to 1; if it returns false, verify() stops early.
  /// @throws error  damaged
  ///
  /// Example:
  ///     any_filter(complete({.capacity = 1000, .target_fpr = 0.01})).save("all.bloom");
  ///     any_filter::open("all.bloom", {.check = file_check::on_use}).verify();
  void verify(const function_ref<bool(double share)>& go_on = {}) const;

  std::uint64_t capacity() const noexcept;      ///< keys
  std::uint64_t bit_size() const noexcept;      ///< bits
  std::uint64_t byte_size() const noexcept;     ///< bytes
  std::uint64_t insert_count() const noexcept;  ///< keys that were certainly new; with removal: present copies
  bool count_is_estimate() const noexcept;    ///< insert_count() includes an estimate: after merge() or a killed writer
  const key_counts& counts() const noexcept;  ///< all counters
  bool tainted() const noexcept;              ///< with removal: the removal of an absent key was refused
  double fill_ratio() const;                  ///< fraction of bits set, non-zero counters or used slots; reads all bits
  double approximate_size() const;            ///< distinct keys, estimated from the bits; reads all bits
  estimate estimated_keys() const;            ///< the same with its standard deviation
  double current_fpr() const;                 ///< exact FPR of the present bits (measure_fill()); reads all bits

  double expected_fpr(std::uint64_t keys) const;  ///< expected FPR with `keys` distinct keys
  double expected_fpr() const;                    ///< expected FPR now, with estimate_distinct() of insert_count()

  /// The present generations of a sliding-window filter; empty for other filters. For sliding-window filters,
  /// insert_count() counts all keys that were ever certainly new, and window_facts::keys_held() counts those that have
  /// not expired.
  ///
  /// Example:
  ///     any_filter seen(complete({.layout = "sliding", .target_fpr = 0.01, .extra = window_of_keys(7000)}));
  ///     assert(seen.capacity() == 7000 && seen.window()->slice == 1000);
  std::optional<window_facts> window() const;

  /// The epoch of the newest generation, without the cost of window(). 0 without a window.
  std::uint64_t epoch() const;

  /// Sets the clock of a window of time, in milliseconds since 1970. Empty: the system's clock. Other filters ignore
  /// it.
  void set_clock(window_clock clock);

  /// The contents of the header when the file was opened or loaded, without the secret; null for a filter made in
  /// memory.
  const file_info* opened_from() const noexcept;

  /// Whether another process has opened the file for writing since this filter mapped it for reading: then the count of
  /// keys is out of date.
  bool has_changed() const noexcept;

 private:
  friend class rebuilding_filter;  // opens a filter that has a log, and keeps its counts
  friend class file_edit;          // loads a file that is already open
  friend class sliced_filter;      // computes the cells of keys without the bytes
  friend std::unique_ptr<filter_handle> open_filter(const std::string& path, const open_options& options);
  friend any_filter import_filter(const std::string& path, std::string_view format);
  struct impl;
  // Also opens filters with a log. A file is refused before it is marked as dirty.
  static any_filter open_any(const std::string& path, const open_options& options);
  [[gnu::visibility("hidden")]] static any_filter open_any(const std::string& path, const open_options& options,
                                                           format::open_file file);
  static any_filter loaded(loaded_file file, const open_options& options, const std::string& path);
  // For hash() and cells() only. Not for static filters.
  static any_filter without_bytes(params p, const open_options& options, const std::string& path);
  // The file was not closed cleanly and was opened for reading: its bits may contain more keys than its count.
  bool count_is_out_of_date() const noexcept;
  mapped_storage* mapped() noexcept;  // null for a filter on the heap
  explicit any_filter(std::unique_ptr<impl> b) noexcept;
  std::unique_ptr<impl> impl_;
};

/// An atomic change of a filter file: if the process is killed, the file is the old one or the new one. The filter is
/// read into memory while the file is locked: other writers wait, and readers see the old file. This takes memory of
/// the filter's size, and the same disk space until the old file is replaced.
///
/// Filters of bits can also be changed in place, which is faster and safe: bits only change from 0 to 1, and inserting
/// a key again changes nothing. Filters with removal need file_edit: a half removed key is damaged, and removing it
/// again would remove other keys.
///
/// Example:
///     any_filter(complete({.layout = "counting", .capacity = 1000, .target_fpr = 0.01})).save("here.bloom");
///     file_edit edit("here.bloom");
///     edit.filter().insert("Madrid");
///     assert(!any_filter::open("here.bloom").may_contain("Madrid"));
///     edit.commit();
///     assert(any_filter::open("here.bloom").may_contain("Madrid"));
class file_edit {
 public:
  /// Locks and loads the file. If the last writer was killed, the count is estimated. Of the options it uses `waiting`,
  /// `secret`, `clock`, `to_remove` and `no_lock`.
  ///
  /// @throws error  as any_filter::load; locked; incompatible: the filter has a log, which would lack the new keys
  explicit file_edit(const std::string& path, const open_options& options = {});
  file_edit(file_edit&&) noexcept;
  file_edit& operator=(file_edit&&) noexcept;

  /// Without commit(), all changes are discarded and the file is unchanged.
  ~file_edit();

  /// The loaded filter. Change it, then call commit().
  any_filter& filter() noexcept;

  /// Replaces the file by the changed filter, with the same metadata: syncs, then renames. Must be the last call on
  /// this object.
  /// @throws error  not_permitted, io: the file is unchanged; already_exists: the name now belongs to another file
  void commit();

 private:
  friend std::unique_ptr<filter_handle> open_filter(const std::string& path, const open_options& options);
  struct state;
  [[gnu::visibility("hidden")]] file_edit(const std::string& path, format::open_file locked,
                                          const open_options& options);
  std::unique_ptr<state> state_;
};

/// Refuses parameters that any_filter does not support, without needing the secret. A hook for mapped_storage::open,
/// for callers that inspect the bits of a file without looking up keys.
/// @throws error  incompatible: this library does not have the layout, scheme or hash; damaged: inconsistent parameters
///
/// Example:
///     check_known(complete({.capacity = 1000, .target_fpr = 0.01}), "some.bloom");
void check_known(const params& p, const std::string& path);

}  // namespace bloomery
