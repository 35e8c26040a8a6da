// any_filter: the same filter as filter<>, with layout or scheme, hash and keys chosen at run time, from params or a
// file.
//
// Batches cost one indirect call. The same params give the same bytes as filter<>.
#pragma once

#include <bloomery/estimate.hpp>
#include <bloomery/export.hpp>
#include <bloomery/generations.hpp>
#include <bloomery/key_hash.hpp>
#include <bloomery/key_span.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/open_options.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

class filter_handle;

/// A Bloom filter whose kind is known at run time.
///
/// Threads: any number may look up while none inserts. A moved-from filter may only be assigned to or destroyed.
///
/// Example:
///     any_filter seen(complete({.layout = "classic", .capacity = 1000, .target_fpr = 0.001}));
///     assert(seen.insert("Madrid"));
///     assert(seen.may_contain("Madrid"));
///     assert(!seen.may_contain("Berlin"));
class any_filter {
 public:
  /// An empty filter on the heap. Empty fields of `p` are completed as by complete().
  /// @throws error  invalid_argument, too_large
  explicit any_filter(params p);

  /// A filter of bits that come from elsewhere, with an estimated count. Plain or counting.
  /// @throws error  as above; incompatible: not as many bytes as the geometry has, or a filter of another family
  any_filter(params p, heap_storage bytes);

  /// A filter file in place; see mapped_storage::open. After an unclean end, insert_count() is estimated from the bits for
  /// read_write, and out of date for read_only.
  ///
  /// @throws error  as mapped_storage::open; incompatible: a layout, scheme or hash that this library does not have, a
  ///                secret that is missing, wrong or not needed, a filter with a log for read_write (open it with
  ///                rebuilding_filter), or options.to_remove
  ///
  /// Example:
  ///     any_filter(complete({.capacity = 1000, .target_fpr = 0.01})).save("open.bloom");
  ///     any_filter file = any_filter::open("open.bloom", {.mode = access::read_write});
  ///     file.insert("Madrid");
  ///     file.close();
  ///     assert(any_filter::open("open.bloom", {.check = file_check::payload}).may_contain("Madrid"));
  static any_filter open(const std::string& path, const open_options& options = {});

  /// A new empty filter file, mapped for writing. @throws error  as mapped_storage::create
  ///
  /// Example:
  ///     const params p = complete({.capacity = 1000, .target_fpr = 0.01});
  ///     any_filter::create("made.bloom", p, {.metadata = "cities"}).insert("Madrid");
  ///     assert(any_filter::open("made.bloom").opened_from()->metadata == "cities");
  static any_filter create(const std::string& path, params p, const create_options& options = {});

  /// A filter file read into the heap, every page checked. Of the options it takes `secret`, `clock` and `to_remove`.
  /// @throws error as open(); damaged
  static any_filter load(const std::string& path, const open_options& options = {});

  /// A filter out of the bytes of a file, which may come from anywhere: they are checked as load() checks a file, and
  /// take no more memory than they are. @throws error as load() and load_bytes()
  ///
  /// Example:
  ///     any_filter cities(complete({.capacity = 1000, .target_fpr = 0.01}));
  ///     cities.insert("Madrid");
  ///     const any_filter received = any_filter::from_bytes(cities.to_bytes());
  ///     assert(received == cities && received.may_contain("Madrid"));
  static any_filter from_bytes(std::span<const std::uint8_t> file, const open_options& options = {});

  /// The bytes of the file that save() writes. @throws error  invalid_argument: the metadata is too long; too_large
  std::vector<std::uint8_t> to_bytes(const std::string& metadata = {}) const;

  /// A copy on the heap, wherever the bits are: same bits, same counts, same clock.
  /// @throws error too_large: there is no memory for it
  ///
  /// Example:
  ///     any_filter first(complete({.capacity = 1000, .target_fpr = 0.01}));
  ///     any_filter second = first.clone();
  ///     second.insert("Madrid");
  ///     assert(!first.may_contain("Madrid") && !(first == second));
  any_filter clone() const;

  any_filter(any_filter&&) noexcept;
  any_filter& operator=(any_filter&&) noexcept;
  ~any_filter();

  /// Writes the filter as a file, whole or not at all. The metadata of the file it came from is not kept unless given
  /// again. @throws error as save_file
  void save(const std::string& path, const std::string& metadata = {}) const;

  /// For a file mapped for writing: checksums, count, clean mark, sync; the filter is then as moved from.
  /// Nothing else for the others. @throws error io
  void close();

  /// Adds a key; true: certainly new.
  /// @throws error  incompatible: the filter has keys of the other kind; not_permitted: opened for reading only
  bool insert(std::string_view key);
  bool insert(std::uint64_t key);

  /// Adds keys one after another and returns how many were certainly new. `is_new` is empty or takes 1 or 0 for each
  /// key.
  ///
  /// Keys may be text, integers, or ready hashes of hash(); filters of a scheme take text only.
  /// @throws error  incompatible: keys of the other kind, hashes with a scheme, or hash64s without uses_hash64();
  ///                not_permitted: opened for reading only; invalid_argument: another size of `is_new`. Then nothing
  ///                is inserted.
  ///
  /// Example:
  ///     any_filter seen(complete({.capacity = 1000, .target_fpr = 0.01}));
  ///     const std::vector<std::string> cities = {"Madrid", "Berlin"};
  ///     std::vector<std::uint8_t> is_new(cities.size());
  ///     assert(seen.insert(cities, is_new) == 2 && is_new[1] == 1);
  std::uint64_t insert(key_span keys, std::span<std::uint8_t> is_new = {});

  /// Adds keys in whatever order is quickest, with up to `threads` threads (0: one per processor); returns how many
  /// were certainly new. See filter::insert_all(); classic and schemes insert in order. @throws error as above
  std::uint64_t insert_all(key_span keys, unsigned threads = 0);

  /// Takes out one copy of a key that was inserted, from a filter of layout counting. not_found: it was certainly not
  /// there, nothing is changed, and the filter is tainted() from then on. Removing what never was inserted may make
  /// other keys vanish: see filter::remove(). A process that is killed within this call on a file opened for writing
  /// may leave the key half removed; file_edit.hpp changes a file as a whole.
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

  /// Removes keys one after another; `results` is empty or takes the answer for each key. Returns how many were
  /// removed.
  /// @throws error  as above; invalid_argument: another size of `results`. Then nothing is removed.
  std::uint64_t remove(key_span keys, std::span<removal> results = {});

  /// False: certainly never inserted. @throws error incompatible
  bool may_contain(std::string_view key) const;
  bool may_contain(std::uint64_t key) const;

  /// Bit i % 64 of bitmap[i / 64] is the answer for key i; unused bits are 0. `bitmap` has at least
  /// ceil(keys.size() / 64) words; further words are left as they are.
  /// @throws error  incompatible, as insert(); invalid_argument: the bitmap is shorter
  void may_contain(key_span keys, std::span<std::uint64_t> bitmap) const;

  /// Whether keys go through a 128-bit hash, as with every layout; schemes read the key itself.
  bool uses_hashes() const noexcept;

  /// The cells of a key: parameters().geometry.probes numbers of bits, of a counting filter of counters, which may
  /// repeat.
  /// @throws error incompatible
  std::vector<std::uint64_t> cells(std::string_view key) const;
  std::vector<std::uint64_t> cells(std::uint64_t key) const;
  std::vector<std::uint64_t> cells(key_hash hash) const;

  /// Writes the hashes of keys, which all calls on a key_span take in place of the keys: hashing may run in other
  /// threads. `hashes` has at least keys.size() elements.
  /// @throws error  incompatible: not uses_hashes(), or keys of the other kind; invalid_argument: too few elements
  ///
  /// Example:
  ///     any_filter seen(complete({.capacity = 1000, .target_fpr = 0.01}));
  ///     const std::vector<std::string> cities = {"Madrid", "Berlin"};
  ///     std::vector<key_hash> hashes(cities.size());
  ///     seen.hash(cities, hashes);
  ///     seen.insert(hashes);
  ///     assert(seen.may_contain("Berlin"));
  void hash(key_span keys, std::span<key_hash> hashes) const;

  /// Whether the layout reads no more of a key's hash than `hash64`: split_block, split_block512, blocked,
  /// blocked_page.
  bool uses_hash64() const noexcept;

  /// Makes this filter the union of both; the count becomes an estimate. Counters of counting filters are added, up to
  /// 15, and so are their counts.
  /// @throws error incompatible: names the field that differs and both values
  void merge(const any_filter& other);

  /// Makes this filter the intersection: it still answers yes for every key that was in both, and for others more often
  /// than a filter made of those keys would (see current_fpr()). The count becomes an estimate.
  /// @throws error as merge; incompatible: counting filters
  void intersect(const any_filter& other);
  bool compatible_with(const any_filter& other) const;

  /// merge() and intersect() as operators, with the same errors.
  any_filter& operator|=(const any_filter& other);
  any_filter& operator&=(const any_filter& other);

  /// Whether both have the same bits, and the same parameters but for capacity and target rate: then they give the same
  /// answers. What they count may differ.
  bool operator==(const any_filter& other) const;

  /// Forgets all keys.
  void clear();

  /// Whether it takes keys: false for a static filter, and for a file opened for reading.
  bool is_writable() const noexcept;

  const params& parameters() const noexcept;
  std::span<const std::uint8_t> bytes() const noexcept;

  std::uint64_t capacity() const noexcept;      ///< keys it was made for
  std::uint64_t bit_size() const noexcept;      ///< bits
  std::uint64_t byte_size() const noexcept;     ///< bytes
  std::uint64_t insert_count() const noexcept;  ///< keys that were certainly new when they came; counting: copies in
  bool count_is_estimate()
      const noexcept;  ///< insert_count() was once estimated from the bits: merge(), a killed writer
  const key_counts& counts() const noexcept;  ///< all that is counted
  bool tainted() const noexcept;              ///< counting: something was to be removed that was not there
  double fill_ratio() const noexcept;         ///< share of bits set, or of counters that are not 0; reads all bits
  double approximate_size() const noexcept;   ///< distinct keys, estimated from the bits; reads all bits
  estimate estimated_keys() const;            ///< the same with its standard deviation
  double current_fpr() const;                 ///< the rate of these very bits, measure_fill(); reads all bits

  double expected_fpr(std::uint64_t keys) const;  ///< once `keys` distinct keys are in
  double expected_fpr() const;  ///< now, at the distinct keys that leave insert_count() new ones: estimate_distinct()

  /// The generations of a filter that forgets (layout sliding or sliding64) as they are now; nothing for others. Of
  /// such a filter insert_count() counts the keys that were certainly new when they came, ever, and keys_held() those it has.
  ///
  /// Example:
  ///     any_filter seen(complete({.layout = "sliding", .target_fpr = 0.01, .window_keys = 7000}));
  ///     assert(seen.capacity() == 7000 && seen.window()->part == 1000);
  std::optional<window_facts> window() const;

  /// Tells a filter whose window goes by time what time it is, in milliseconds since 1970; empty: the system's clock.
  /// For others nothing.
  void set_clock(window_clock clock);

  /// What the header said when the filter was opened or loaded, so without a secret; null for one that was made in
  /// memory.
  const file_info* opened_from() const noexcept;

 private:
  friend class rebuilding_filter;  // opens a filter that has a log, and keeps its counts
  friend std::unique_ptr<filter_handle> open_filter(const std::string& path, const open_options& options);
  struct impl;
  // `suits` hears what the header says before a file that is opened for writing is marked as dirty.
  static any_filter open_any(const std::string& path, const open_options& options,
                             const mapped_storage::on_header& suits = {});
  static any_filter loaded(loaded_file file, const open_options& options, const std::string& path);
  mapped_storage* mapped() noexcept;  // null for a filter on the heap
  explicit any_filter(std::unique_ptr<impl> b) noexcept;
  std::unique_ptr<impl> impl_;
};

/// Refuses what any_filter cannot make a filter of, whatever its secret: for who looks at a file's bits and asks for no
/// key, which takes no secret. A hook for mapped_storage::open.
/// @throws error  incompatible: a layout, scheme or hash that this library does not have; damaged: a contradiction
///
/// Example:
///     check_known(complete({.capacity = 1000, .target_fpr = 0.01}), "some.bloom");
void check_known(const params& p, const std::string& path);

}  // namespace bloomery
