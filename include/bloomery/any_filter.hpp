// any_filter: the same filter as filter<>, with layout or scheme, hash and keys chosen at run time, from params or a
// file.
//
// Batches cost one indirect call. The same params give the same bytes as filter<>.
#pragma once

#include <bloomery/estimate.hpp>
#include <bloomery/export.hpp>
#include <bloomery/generations.hpp>
#include <bloomery/key_hash.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/params.hpp>
#include <bloomery/secret.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

class filter_handle;
struct open_options;

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

  /// A filter file in place; see mapped_storage::open. After an unclean end, size() is estimated from the bits for
  /// read_write, and out of date for read_only.
  ///
  /// @param secret  the key of a filter that is keyed with one, and nothing for all others
  /// @throws error  as mapped_storage::open; incompatible: a layout, scheme or hash that this library does not have, or
  ///                the secret is missing, another one, or not asked for; or the filter keeps a log, and is to be
  ///                written: that is what rebuilding_filter is for
  ///
  /// Example:
  ///     const secret_key key = random_secret();
  ///     any_filter keyed(complete({.capacity = 1000, .target_fpr = 0.01, .secret = key}));
  ///     keyed.insert("Madrid");
  ///     keyed.save("keyed.bloom");
  ///     assert(any_filter::open("keyed.bloom", access::read_only, file_check::header, {}, key).may_contain("Madrid"));
  static any_filter open(const std::string& path, access mode = access::read_only, file_check what = file_check::header,
                         const mapped_storage::on_wait& waiting = {}, const std::optional<secret_key>& secret = {});

  /// A new empty filter file, mapped for writing; see mapped_storage::create.
  static any_filter create(const std::string& path, params p, const std::string& metadata = {}, creation how = {});

  /// A filter file read into the heap, every page checked. @throws error as open(); damaged
  static any_filter load(const std::string& path, const std::optional<secret_key>& secret = {});

  /// A filter out of the bytes of a file, which may come from anywhere: they are checked as load() checks a file, and
  /// take no more memory than they are. @throws error as load() and load_bytes()
  ///
  /// Example:
  ///     any_filter cities(complete({.capacity = 1000, .target_fpr = 0.01}));
  ///     cities.insert("Madrid");
  ///     const any_filter received = any_filter::from_bytes(cities.to_bytes());
  ///     assert(received == cities && received.may_contain("Madrid"));
  static any_filter from_bytes(std::span<const std::uint8_t> file, const std::optional<secret_key>& secret = {});

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

  /// Adds keys one after another; `is_new` is empty or takes 1 or 0 for each key.
  /// @throws error  as above; invalid_argument: another size of `is_new`. Then nothing is inserted.
  void insert(std::span<const std::string_view> keys, std::span<std::uint8_t> is_new = {});
  void insert(std::span<const std::uint64_t> keys, std::span<std::uint8_t> is_new = {});

  /// Adds keys in whatever order is quickest, with up to `threads` threads (0: one a processor); returns how many were
  /// certainly new. See filter::insert_all(); classic and schemes insert in order. @throws error as above
  std::uint64_t insert_all(std::span<const std::string_view> keys, unsigned threads = 0);
  std::uint64_t insert_all(std::span<const std::uint64_t> keys, unsigned threads = 0);

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
  std::uint64_t remove(std::span<const std::string_view> keys, std::span<removal> results = {});
  std::uint64_t remove(std::span<const std::uint64_t> keys, std::span<removal> results = {});

  /// False: certainly never inserted. @throws error incompatible
  bool may_contain(std::string_view key) const;
  bool may_contain(std::uint64_t key) const;

  /// Bit i%64 of bitmap[i/64] is the answer for keys[i]; unused bits are 0. `bitmap` has at least ceil(keys.size() /
  /// 64) words; further words are left as they are.
  /// @throws error  incompatible; invalid_argument: the bitmap is shorter
  void may_contain(std::span<const std::string_view> keys, std::span<std::uint64_t> bitmap) const;
  void may_contain(std::span<const std::uint64_t> keys, std::span<std::uint64_t> bitmap) const;

  /// Whether keys go through a 128-bit hash, as with every layout; schemes read the key itself.
  bool uses_hashes() const noexcept;

  /// The cells of a key: parameters().geometry.probes numbers of bits, of a counting filter of counters, which may
  /// repeat.
  /// @throws error incompatible
  std::vector<std::uint64_t> cells(std::string_view key) const;
  std::vector<std::uint64_t> cells(std::uint64_t key) const;
  std::vector<std::uint64_t> cells(key_hash hash) const;

  /// The hashes of keys, to be used with the calls below, perhaps in another thread. `hashes` has at least keys.size()
  /// elements; outputs of the other calls are sized as those of the calls on keys.
  /// @throws error  incompatible: not uses_hashes(), or keys of the other kind; invalid_argument: the size of an
  ///                output;
  ///                not_permitted: a change of a filter that was opened for reading only
  void hash(std::span<const std::string_view> keys, std::span<key_hash> hashes) const;
  void hash(std::span<const std::uint64_t> keys, std::span<key_hash> hashes) const;
  void insert_hashes(std::span<const key_hash> hashes, std::span<std::uint8_t> is_new = {});
  std::uint64_t insert_all_hashes(std::span<const key_hash> hashes, unsigned threads = 0);
  std::uint64_t remove_hashes(std::span<const key_hash> hashes, std::span<removal> results = {});
  void may_contain_hashes(std::span<const key_hash> hashes, std::span<std::uint64_t> bitmap) const;

  /// Adds keys of which only the half `hash64` of their hashes is known, as a log has them. Returns how
  /// many were certainly new. @throws error  not_permitted; incompatible: not uses_hash64()
  std::uint64_t insert_hash64s(std::span<const std::uint64_t> hash64s);

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

  std::uint64_t capacity() const noexcept;    ///< keys it was made for
  std::uint64_t bit_size() const noexcept;    ///< bits
  std::uint64_t byte_size() const noexcept;   ///< bytes
  std::uint64_t size() const noexcept;        ///< keys that were certainly new when they came; counting: copies in
  bool count_is_estimate() const noexcept;    ///< size() was once estimated from the bits: merge(), a killed writer
  const key_counts& counts() const noexcept;  ///< all that is counted
  bool tainted() const noexcept;              ///< counting: something was to be removed that was not there
  double fill_ratio() const noexcept;         ///< share of bits set, or of counters that are not 0; reads all bits
  double approximate_size() const noexcept;   ///< distinct keys, estimated from the bits; reads all bits
  estimate estimated_keys() const;            ///< the same with its standard deviation
  double current_fpr() const;                 ///< the rate of these very bits, measure_fill(); reads all bits

  double expected_fpr(std::uint64_t keys) const;  ///< once `keys` distinct keys are in
  double expected_fpr() const;  ///< now, at the distinct keys that leave size() new ones: estimate_distinct()

  /// The generations of a filter that forgets (layout sliding or sliding64) as they are now; nothing for others. Of
  /// such a filter size() counts the keys that were certainly new when they came, ever, and keys_held() those it has.
  ///
  /// Example:
  ///     any_filter seen(complete({.layout = "sliding", .target_fpr = 0.01, .window_keys = 7000}));
  ///     assert(seen.capacity() == 7000 && seen.window()->part == 1000);
  std::optional<window_facts> window() const;

  /// window()->epoch, quickly: the newest generation. 0 without a window.
  std::uint64_t epoch() const;

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
  // `suits` hears what the header says before a file that is opened for writing is marked as dirty. With `facts_only` a
  // keyed filter opens without its secret and refuses all keys.
  static any_filter open_any(const std::string& path, access mode, file_check what,
                             const mapped_storage::on_wait& waiting, const std::optional<secret_key>& secret,
                             const mapped_storage::on_header& suits, bool facts_only = false);
  static any_filter loaded(loaded_file file, const std::optional<secret_key>& secret, const std::string& path);
  mapped_storage* mapped() noexcept;  // null for a filter on the heap
  explicit any_filter(std::unique_ptr<impl> b) noexcept;
  template <class Key>
  std::uint64_t insert_all_of(std::span<const Key> keys, unsigned threads);
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
