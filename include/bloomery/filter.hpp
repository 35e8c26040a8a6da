// filter<>: a Bloom filter whose key type, layout, hash and storage are known at compile time. Calls on single keys are
// inlined.
//
// If they are known at run time only, such as for a file of unknown kind, use any_filter: it has the same bits and
// files.
#pragma once

#include <bloomery/detail/bits.hpp>
#include <bloomery/detail/bulk_insert.hpp>
#include <bloomery/detail/checks.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/detail/filter_core.hpp>
#include <bloomery/detail/filter_kind.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/key.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/blocked.hpp>
#include <bloomery/layouts/blocked_page.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/layouts/split_block512.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/params.hpp>
#include <bloomery/sizing.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// Capacity and target FPR of a filter, by name: filter<> seen({.capacity = 1'000'000, .fpr = 0.01}).
struct filter_options {
  /// Prevents initialization without names: {512, 8} is a geometry.
  struct by_name {
    explicit by_name() = default;
  };
  [[no_unique_address]] by_name names_are_required = by_name();
  std::uint64_t capacity = 0;  ///< n, distinct keys, at least 1
  double fpr = 0.01;           ///< target FPR at capacity, in (0, 1)
};

/// An approximate set of keys. may_contain() has no false negatives. The probability of a false positive is
/// expected_fpr().
///
/// @tparam Key      text (std::string_view or std::string, which give the same filter) or an integer type, see key.hpp;
///                  other types with a Hash that accepts them
/// @tparam Layout   split_block or split_block512 (fastest), blocked, blocked_page, classic (least memory), counting
///                  (keys can be removed), or a user-defined layout
/// @tparam Hash     xxh3_64, xxh3, mix, murmur3, siphash (for keys that an adversary may choose), or a user-defined
///                  hash: hash_of<Hash, Key>
/// @tparam Storage  heap_storage, span_storage or mapped_storage
///
/// Threads: any number may look up while none inserts. A moved-from filter may only be assigned to or destroyed.
///
/// Example:
///     filter<> seen(1'000'000, 0.01);  // a million strings at 1%
///     assert(seen.insert("https://example.org/"));       // certainly new
///     assert(!seen.insert("https://example.org/"));      // inserted before
///     assert(seen.may_contain("https://example.org/"));
///     assert(!seen.may_contain("https://example.net/"));  // certain
///
///     filter<int> numbers({.capacity = 1000, .fpr = 0.001});
///     numbers.insert(std::vector<int>{-1, 2, 3});
///     assert(numbers.may_contain(-1) && !numbers.may_contain(1));
template <class Key = std::string_view, layout Layout = layouts::split_block,
          class Hash = default_hash_for<Key, Layout>, storage Storage = heap_storage>
  requires hash_of<Hash, Key>
class filter : private detail::filter_core<Key, Layout, Hash, Storage> {
 public:
  using key_type = Key;

  /// The parameter type of functions for single keys: std::string_view for all text, otherwise Key.
  using key_view = detail::key_view<Key>;

  /// An empty filter that keeps options.fpr up to options.capacity keys.
  /// @throws error  invalid_argument: the capacity is 0, or the FPR is outside (0, 1); too_large: more than this
  ///                machine's memory
  ///
  /// Example:
  ///     const filter<> seen({.capacity = 1'000'000, .fpr = 0.001});
  ///     assert(seen.capacity() == 1'000'000 && seen.expected_fpr(1'000'000) <= 0.001);
  explicit filter(const filter_options& options, Hash hash = {}) requires std::same_as<Storage, heap_storage>
      : filter(options.capacity, options.fpr, hash) {}

  /// An empty filter that keeps `target_fpr` up to `capacity` keys. The capacity must be an integer, so that the two
  /// arguments cannot be swapped.
  /// @throws error  invalid_argument: capacity is 0, or the FPR is outside (0, 1); too_large: more than this machine's
  ///                memory
  filter(std::uint64_t capacity, double target_fpr, Hash hash = {}) requires std::same_as<Storage, heap_storage>
      : filter(kind::params_for(capacity, target_fpr, hash), hash) {}
  template <std::floating_point Capacity>
  filter(Capacity capacity, double target_fpr, Hash hash = {}) = delete;

  /// An empty filter of a given geometry on the heap.
  /// @throws error  invalid_argument: not a geometry of this layout; too_large
  explicit filter(const geometry& g, std::uint64_t capacity = 0,
                  Hash hash = {}) requires std::same_as<Storage, heap_storage>
      : filter(kind::checked(kind::describe(g, capacity, 0, hash)), hash) {}

  /// A filter with existing bytes in the given storage.
  /// @throws error  invalid_argument: not a geometry of this layout, or the storage does not have bytes_for(g.bits)
  ///                bytes
  filter(const geometry& g, Storage bytes, std::uint64_t capacity = 0, Hash hash = {})
      : filter(kind::checked(kind::describe(g, capacity, 0, hash)), std::move(bytes), hash) {}

  /// Opens a filter file in place. Of the options it uses `mode`, `check` and `waiting`; `hash` has the secret of a
  /// keyed filter. If the file was not closed cleanly, read_write estimates insert_count() from the bits, and read_only
  /// reports the count of the last clean close.
  /// @throws error  as mapped_storage::open; incompatible: the file has another layout, hash, kind of keys or seed than
  ///                this type, or a log (for read_write)
  ///
  /// Example:
  ///     using city_file = mapped_filter<std::string, layouts::split_block>;
  ///     city_file made = city_file::create("typed.bloom", {.capacity = 1000, .fpr = 0.01}, {.metadata = "cities"});
  ///     made.insert("Madrid");
  ///     made.close();
  ///     city_file::open("typed.bloom", {.mode = access::read_write}).insert("Berlin");
  ///     assert(city_file::open("typed.bloom", {.check = file_check::payload}).may_contain("Berlin"));
  static filter open(const std::string& path, const open_options& options = {},
                     Hash hash = {}) requires std::same_as<Storage, mapped_storage> {
    const bool writes = options.mode == access::read_write;
    mapped_storage bytes = mapped_storage::open(path, options, [&](const params& p) {
      matched(p, hash, path);
      if (writes) refuse_log(p, path);
    });
    const file_info info = bytes.info();
    filter result(matched(info.parameters, hash, path), std::move(bytes), hash);
    if (!info.clean && writes) result.estimate_count();
    return result;
  }

  /// Creates an empty filter file, mapped for writing, that keeps wanted.fpr up to wanted.capacity keys.
  /// @throws error as the constructor, and mapped_storage::create
  static filter create(const std::string& path, const filter_options& wanted, const create_options& options = {},
                       Hash hash = {}) requires std::same_as<Storage, mapped_storage> {
    const params p = kind::params_for(wanted.capacity, wanted.fpr, hash);
    return filter(p, mapped_storage::create(path, p, options), hash);
  }

  /// The same for a filter of a given geometry.
  static filter create(const std::string& path, const geometry& g, std::uint64_t capacity,
                       const create_options& options = {},
                       Hash hash = {}) requires std::same_as<Storage, mapped_storage> {
    const params p = kind::checked(kind::describe(g, capacity, 0, hash));
    return filter(p, mapped_storage::create(path, p, options), hash);
  }

  /// Reads a filter file into the heap and checks every page. @throws error as load_file; incompatible as open()
  static filter load(const std::string& path, Hash hash = {}) requires std::same_as<Storage, heap_storage> {
    return loaded(load_file(path), hash, path);
  }

  /// Creates a filter from the bytes of a file. The bytes may be hostile: they are checked as load() checks a file, and
  /// cause no larger allocation than their own size. @throws error as load_bytes; incompatible as open()
  static filter from_bytes(std::span<const std::uint8_t> file,
                           Hash hash = {}) requires std::same_as<Storage, heap_storage> {
    return loaded(load_bytes(file), hash, "");
  }

  /// The bytes of the file that save() writes. @throws error invalid_argument: the metadata is too long
  ///
  /// Example:
  ///     filter<> cities(1000, 0.01);
  ///     cities.insert("Madrid");
  ///     const std::vector<std::uint8_t> sent = cities.to_bytes();
  ///     assert(filter<>::from_bytes(sent) == cities);
  std::vector<std::uint8_t> to_bytes(const std::string& metadata = {}) const {
    return file_bytes(params_, bytes(), storage_.counts(), metadata);
  }

  /// A copy on the heap of a filter in any storage, with the same bits and counts.
  /// @throws error too_large: not enough memory
  ///
  /// Example:
  ///     filter<int> first(1000, 0.01);
  ///     first.insert(1);
  ///     filter<int> second = first.clone();
  ///     second.insert(2);
  ///     assert(second.may_contain(1) && !first.may_contain(2));
  filter<Key, Layout, Hash> clone() const {
    heap_storage copy(storage_.size());
    std::memcpy(copy.data(), storage_.data(), storage_.size());
    copy.counts() = storage_.counts();
    copy.counts().logged = copy.counts().log_generation = 0;
    return filter<Key, Layout, Hash>(params_.without_log(), std::move(copy), hash_);
  }

  /// Writes the filter as a file, whole or not at all. @throws error as save_file
  void save(const std::string& path, const std::string& metadata = {}) const {
    save_file(path, params_, bytes(), storage_.counts(), metadata);
  }

  /// Inserts a key. True: the key is certainly new. False: the key, or keys that share its cells, were inserted before.
  /// Layout counting adds one copy of the key in both cases.
  /// @throws error not_permitted: mapped storage that was opened for reading only
  bool insert(const key_view& key) noexcept(!may_be_read_only) {
    want_writable();
    const key_hash hash = hash_(plain(key));
    const bool is_new = insert_one<Layout>(storage_.data(), params_.geometry, hash);
    if constexpr (!Storage::tracks_changes && !layout_with_removal<Layout>) {
      storage_.counts().inserted += is_new ? 1 : 0;  // without a branch, which would be mispredicted in a full filter
    } else if (is_new || layout_with_removal<Layout>) {
      on_inserted(hash);
    }
    return is_new;
  }

  /// Inserts keys in order; `is_new` is empty or receives 1 (certainly new) or 0 per key.
  /// @throws error  invalid_argument: `is_new` has another size; not_permitted, as above. Nothing is inserted then.
  void insert(std::span<const Key> keys, std::span<std::uint8_t> is_new = {}) {
    detail::check_answers("filter::insert", keys.size(), is_new.size());
    want_writable();
    std::uint8_t* const out = is_new.empty() ? nullptr : is_new.data();
    const auto insert = [&](const hash_span& some, std::size_t first) {
      insert_source(some, out == nullptr ? nullptr : out + first);
    };
    kind::each_source(hash_, keys, insert, blocks());
  }

  /// The same for any range of keys: a vector, an array, a list or a view, also of another text or integer type.
  ///
  /// Example:
  ///     filter<> seen(1000, 0.01);
  ///     const std::vector<std::string> names{"Ada", "Grace"};
  ///     seen.insert(names);
  ///     assert(seen.may_contain("Ada") && seen.may_contain("Grace"));
  template <detail::key_range<Key> Range>
  void insert(Range&& keys, std::span<std::uint8_t> is_new = {}) {
    if constexpr (std::convertible_to<Range, std::span<const Key>>) {
      insert(std::span<const Key>(keys), is_new);
    } else {
      const std::size_t total = detail::count_of(keys);
      detail::check_answers("filter::insert", total, is_new.size());
      want_writable();
      const auto insert = [&](const hash_span& some, std::size_t first) {
        insert_source(some, is_new.empty() ? nullptr : is_new.data() + first);
      };
      kind::each_source_of(hash_, std::begin(keys), total, insert, blocks());
    }
  }

  /// Inserts keys in the fastest order, with up to `threads` threads (0: one per processor), and returns how many were
  /// certainly new. The bits are the same as after insert(keys). It is faster than insert(keys) for at least some
  /// hundred thousand keys and a filter larger than the caches. It temporarily takes up to 64 MiB of memory, or half
  /// the filter's size if that is more. Keys are inserted in order by layout classic, which has no blocks, and into a
  /// file with more pages than there are keys. @throws error not_permitted, as above
  ///
  /// Example:
  ///     filter<std::uint64_t> seen(1000, 0.01);
  ///     const std::vector<std::uint64_t> keys{1, 2, 3};
  ///     assert(seen.insert_all(keys) == 3);
  ///     assert(seen.may_contain(2));
  std::uint64_t insert_all(std::span<const Key> keys, unsigned threads = 0) {
    want_writable();
    if constexpr (layout_by_hash64<Layout>) {
      const bulk_target target = bulk_target_of<Layout>(storage_.data(), params_.geometry);
      if (Storage::tracks_changes && keys.size() < storage_.size() / 4096) return insert_counting(keys);
      if (!bulk_insert_pays(target, keys.size(), threads)) return insert_counting(keys);
      changed_everywhere();
      const auto write_hash64s = [&](std::size_t begin, std::size_t count, std::uint64_t* hash64s) {
        kind::each_source(hash_, keys.subspan(begin, count),
                          [&](const hash_span& some, std::size_t first) { hash64s_of(some, hash64s + first); });
      };
      const std::uint64_t all_new = bulk_insert(target, keys.size(), write_hash64s, threads);
      storage_.counts().inserted += all_new;
      return all_new;
    } else {
      return insert_counting(keys);
    }
  }

  /// Removes one copy of an inserted key from a counting filter. A key that was inserted twice must be removed twice.
  ///
  /// Remove only keys that were inserted. Removing an absent key has one of two results:
  ///
  /// - not_found: the key was certainly absent. Nothing changes, but the filter is tainted() from then on, because this
  ///   proves misuse: either this key was never inserted, or an earlier removal of another absent key decremented its
  ///   counters.
  /// - removed: the key was a false positive. Its counters are decremented, which may cause false negatives for other
  ///   keys. The filter cannot detect this; unnoticed_removals() estimates how often it happened.
  ///
  /// A counter that has reached 15, through copies of keys or by chance (about 1e-15 of all counters at capacity), is
  /// never decremented. A key with only such counters stays in the filter, however often it is removed.
  ///
  /// @throws error not_permitted: mapped storage that was opened for reading only
  ///
  /// Example:
  ///     filter<std::string_view, layouts::counting> here(1000, 0.01);
  ///     here.insert("Madrid");
  ///     assert(here.remove("Madrid") == removal::removed);
  ///     assert(!here.may_contain("Madrid") && !here.tainted());
  ///     assert(here.remove("Madrid") == removal::not_found && here.tainted());
  removal remove(const key_view& key) noexcept(!may_be_read_only) requires layout_with_removal<Layout> {
    want_writable();
    const key_hash hash = hash_(plain(key));
    const removal result = Layout::remove_one(storage_.data(), params_.geometry, hash);
    on_removed(hash, result);
    return result;
  }

  /// Removes keys in order; `results` is empty or receives one result per key. Returns how many were removed.
  /// @throws error  invalid_argument: `results` has another size; not_permitted, as above. Nothing is removed then.
  std::uint64_t remove(std::span<const Key> keys,
                       std::span<removal> results = {}) requires layout_with_removal<Layout> {
    detail::check_answers("filter::remove", keys.size(), results.size());
    want_writable();
    std::array<removal, batch> done;
    std::uint64_t all_removed = 0;
    kind::each_source(hash_, keys, [&](const hash_span& many, std::size_t begin) {
      for (std::size_t first = 0; first < many.size(); first += batch) {
        const hash_span some = many.part(first, of_a_batch(many.size() - first));
        all_removed += Layout::remove_batch(storage_.data(), params_.geometry, some, done.data());
        for (std::size_t i = 0; i < some.size(); ++i) on_removed(some.hash(i), done[i]);
        if (!results.empty()) std::memcpy(results.data() + begin + first, done.data(), some.size() * sizeof(removal));
      }
    });
    return all_removed;
  }

  /// Number of removals that were refused because the key was absent. Only clear() resets it.
  std::uint64_t refused_removals() const noexcept { return storage_.counts().refused_removals; }

  /// Whether a removal was ever refused: then keys may be missing. See unnoticed_removals().
  bool tainted() const noexcept { return refused_removals() > 0; }

  /// False: the key was certainly never inserted. True: it probably was.
  bool may_contain(const key_view& key) const noexcept {
    return has_one<Layout>(storage_.data(), params_.geometry, hash_(plain(key)));
  }

  /// Looks up keys: bit i%64 of bitmap[i/64] is the answer for keys[i]; unused bits are 0. `bitmap` has at least
  /// ceil(keys.size() / 64) words; further words are unchanged.
  /// @throws error invalid_argument: the bitmap is too short
  void may_contain(std::span<const Key> keys, std::span<std::uint64_t> bitmap) const {
    detail::check_bitmap("filter::may_contain", keys.size(), bitmap.size());
    const auto look_up = [&](const hash_span& some, std::size_t first) {
      has_batch<Layout>(storage_.data(), params_.geometry, some, bitmap.data() + first / 64);
    };
    kind::each_source(hash_, keys, look_up, blocks());
  }

  /// The same for any range of keys, see insert().
  template <detail::key_range<Key> Range>
  void may_contain(Range&& keys, std::span<std::uint64_t> bitmap) const {
    if constexpr (std::convertible_to<Range, std::span<const Key>>) {
      may_contain(std::span<const Key>(keys), bitmap);
    } else {
      const std::size_t total = detail::count_of(keys);
      detail::check_bitmap("filter::may_contain", total, bitmap.size());
      const auto look_up = [&](const hash_span& some, std::size_t first) {
        has_batch<Layout>(storage_.data(), params_.geometry, some, bitmap.data() + first / 64);
      };
      kind::each_source_of(hash_, std::begin(keys), total, look_up, blocks());
    }
  }

  /// Looks up a range of keys and calls answer(i, found) for each of them in order; i counts from 0.
  ///
  /// Example:
  ///     filter<> seen(1000, 0.01);
  ///     seen.insert("Ada");
  ///     const std::vector<std::string> names{"Ada", "Grace"};
  ///     std::vector<std::string> known;
  ///     seen.may_contain(names, [&](std::size_t i, bool found) { if (found) known.push_back(names[i]); });
  ///     assert(known == std::vector<std::string>{"Ada"});
  template <detail::key_range<Key> Range, std::invocable<std::size_t, bool> Answer>
  void may_contain(Range&& keys, Answer&& answer) const {
    const auto look_up = [&](const hash_span& some, std::size_t first) {
      std::array<std::uint64_t, 64> bitmap;  // for 4096 keys at a time
      for (std::size_t begin = 0; begin < some.size(); begin += 64 * bitmap.size()) {
        const std::size_t rest = some.size() - begin;
        const hash_span part = some.part(begin, rest < 64 * bitmap.size() ? rest : 64 * bitmap.size());
        has_batch<Layout>(storage_.data(), params_.geometry, part, bitmap.data());
        for (std::size_t i = 0; i < part.size(); ++i) answer(first + begin + i, (bitmap[i / 64] >> i % 64 & 1) != 0);
      }
    };
    kind::each_source_of(hash_, std::begin(keys), detail::count_of(keys), look_up, blocks());
  }

  /// Looks up a range of keys: found[i] is the answer for key i.
  /// @throws error invalid_argument: `found` does not have one element per key
  ///
  /// Example:
  ///     filter<int> seen(1000, 0.01);
  ///     seen.insert(7);
  ///     std::array<bool, 2> found;
  ///     seen.may_contain(std::array{7, 8}, found);
  ///     assert(found[0] && !found[1]);
  template <detail::key_range<Key> Range>
  void may_contain(Range&& keys, std::span<bool> found) const {
    detail::check_all_answers("filter::may_contain", detail::count_of(keys), found.size());
    may_contain(keys, [&](std::size_t i, bool is_found) { found[i] = is_found; });
  }

  /// Merges the keys of `other` into this filter (union). The count becomes an estimate; counting filters add their
  /// counters and counts.
  /// @throws error  incompatible: names the field that differs and both values; not_permitted: this filter was opened
  ///                for reading only
  template <class OtherStorage>
  void merge(const filter<Key, Layout, Hash, OtherStorage>& other) {
    const std::string reason = difference(params_, other.parameters());
    if (!reason.empty())
      detail::refuse(errc::incompatible, {"filters cannot be merged", "", "", reason, hint::merge_like_filters});
    want_writable();
    if constexpr (layout_with_removal<Layout>) {
      Layout::merge_bytes({storage_.data(), storage_.size()}, other.bytes());
      storage_.counts() = sum_of_counts(storage_.counts(), other.counts());
      changed_everywhere();
      return;
    }
    unite_bits({storage_.data(), storage_.size()}, other.bytes());
    changed_everywhere();
    estimate_count();
  }

  /// Replaces this filter by the intersection. It reports every key that was in both filters, and has more false
  /// positives than a filter of those keys alone (see current_fpr()). The count becomes an estimate.
  /// @throws error  incompatible and not_permitted, as merge(); invalid_argument: a user-defined layout
  template <class OtherStorage>
  void intersect(const filter<Key, Layout, Hash, OtherStorage>& other) {
    static_assert(!layout_with_removal<Layout> || sizeof(OtherStorage) == 0,
                  "counting filters have no intersection: counters do not show which copies are in both filters");
    const std::string reason = difference(params_, other.parameters());
    if (!reason.empty()) detail::refuse(errc::incompatible, {"filters cannot be intersected", "", "", reason, ""});
    want_writable();
    const estimate keys = estimate_overlap(params_, count_shared(bytes(), other.bytes())).keys_both;
    intersect_bits({storage_.data(), storage_.size()}, other.bytes());
    changed_everywhere();
    storage_.counts().inserted = 0;
    if (keys.sigma < std::numeric_limits<double>::infinity())
      set_estimated_count(keys.value);
    else
      estimate_count();  // all bits of the union are set, so the overlap is unknown
  }

  /// merge() and intersect() as operators, with the same errors.
  ///
  /// Example:
  ///     filter<int> odd(1000, 0.01), even(1000, 0.01);
  ///     odd.insert(1);
  ///     even.insert(2);
  ///     odd |= even;
  ///     assert(odd.may_contain(1) && odd.may_contain(2));
  ///     odd &= even;
  ///     assert(odd == even);
  template <class OtherStorage>
  filter& operator|=(const filter<Key, Layout, Hash, OtherStorage>& other) {
    merge(other);
    return *this;
  }
  template <class OtherStorage>
  filter& operator&=(const filter<Key, Layout, Hash, OtherStorage>& other) {
    intersect(other);
    return *this;
  }

  /// Whether both filters have the same geometry, hash, seed and secret, and the same bits. Such filters give the same
  /// answers. Counts, capacity and target FPR may differ.
  template <class OtherStorage>
  bool operator==(const filter<Key, Layout, Hash, OtherStorage>& other) const {
    return difference(params_, other.parameters()).empty() &&
           std::memcmp(storage_.data(), other.bytes().data(), storage_.size()) == 0;
  }

  /// Whether merge() would accept `other`.
  template <class OtherStorage>
  bool compatible_with(const filter<Key, Layout, Hash, OtherStorage>& other) const {
    return difference(params_, other.parameters()).empty();
  }

  /// Removes all keys. @throws error not_permitted: mapped storage that was opened for reading only
  void clear() noexcept(!may_be_read_only) {
    want_writable();
    std::memset(storage_.data(), 0, storage_.size());
    storage_.counts().inserted = 0;
    storage_.counts().is_estimate = false;
    storage_.counts().refused_removals = 0;
    changed_everywhere();
  }

  const params& parameters() const noexcept { return params_; }
  std::span<const std::uint8_t> bytes() const noexcept { return {storage_.data(), storage_.size()}; }

  std::uint64_t capacity() const noexcept { return params_.capacity; }       ///< keys
  std::uint64_t bit_size() const noexcept { return params_.geometry.bits; }  ///< bits
  std::uint64_t byte_size() const noexcept { return storage_.size(); }       ///< bytes

  /// Keys that were certainly new when inserted. Keys that were false positives then are not counted: few up to
  /// capacity(), but most keys far beyond it. Counting filters: copies that were inserted and not removed.
  std::uint64_t insert_count() const noexcept { return storage_.counts().inserted; }

  /// Whether insert_count() includes an estimate from the bits: after merge(), or after a writer was killed.
  bool count_is_estimate() const noexcept { return storage_.counts().is_estimate; }

  /// All counters, as they are stored.
  const key_counts& counts() const noexcept { return storage_.counts(); }

  /// Fraction of bits set, or of non-zero counters, 0 to 1. Reads all bits.
  double fill_ratio() const noexcept { return static_cast<double>(ones()) / static_cast<double>(cells()); }

  /// Distinct keys, estimated from the bits. Reads all bits. Infinity if all are set.
  double approximate_size() const noexcept { return Layout::keys_from_zeros(params_.geometry, cells() - ones()); }

  /// The same with its standard deviation. @throws error invalid_argument: a user-defined layout
  estimate estimated_keys() const { return bloomery::estimated_keys(params_, ones()); }

  /// Exact FPR of the present bits: measure_fill(). Reads all bits.
  /// @throws error invalid_argument: a user-defined layout
  double current_fpr() const { return measure_fill(params_, bytes()).current_fpr; }

  /// Expected FPR with `keys` distinct keys.
  double expected_fpr(std::uint64_t keys) const { return Layout::expected_fpr(params_.geometry, keys); }

  /// The expected FPR now, with estimate_distinct() of insert_count(). Counting filters use insert_count() itself,
  /// which gives an upper bound unless counters are saturated.
  double expected_fpr() const {
    if (has_slow_rates() || layout_with_removal<Layout>) return expected_fpr(insert_count());
    const auto rate = [this](std::uint64_t keys) { return expected_fpr(keys); };
    return rate(estimate_distinct(insert_count(), rate));
  }

  /// For mapped storage: writes checksums, count and clean mark, and unmaps. Afterwards the filter is in the moved-from
  /// state.
  /// @throws error io
  void close() requires std::same_as<Storage, mapped_storage> { storage_.close(); }

 private:
  template <class K, layout L, class H>
    requires hash_of<H, K>
  friend class concurrent_filter;  // takes over a filter's bytes
  template <class K, layout L, class H, storage S>
    requires hash_of<H, K>
  friend class filter;  // creates its clone

  using core = detail::filter_core<Key, Layout, Hash, Storage>;
  using kind = typename core::kind;
  using core::batch;
  using core::blocks;
  using core::cells;
  using core::changed_everywhere;
  using core::estimate_count;
  using core::has_slow_rates;
  using core::hash_;
  using core::insert_counting;
  using core::insert_source;
  using core::matched;
  using core::may_be_read_only;
  using core::of_a_batch;
  using core::on_inserted;
  using core::on_removed;
  using core::ones;
  using core::params_;
  using core::plain;
  using core::set_estimated_count;
  using core::storage_;
  using core::want_writable;

  static filter loaded(loaded_file file, const Hash& hash, const std::string& path) {
    filter result(matched(file.info.parameters, hash, path), std::move(file.bytes), hash);
    if (!file.info.clean) result.estimate_count();
    return result;
  }

  filter(params p, Hash hash) : filter(p, Storage(bytes_for(p.geometry.bits)), hash) {}
  filter(params p, Storage bytes, Hash hash) : core(std::move(p), std::move(bytes), hash) {}
};

/// A filter in a mapped file.
///
/// Example:
///     mapped_filter<std::uint64_t>::create("ids.bloom", {.capacity = 1000, .fpr = 0.01}).insert(17);
///     assert(mapped_filter<std::uint64_t>::open("ids.bloom").may_contain(17));
template <class Key = std::string_view, layout Layout = layouts::split_block,
          class Hash = default_hash_for<Key, Layout>>
using mapped_filter = filter<Key, Layout, Hash, mapped_storage>;

}  // namespace bloomery
