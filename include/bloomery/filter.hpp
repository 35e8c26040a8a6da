// filter<>: a Bloom filter whose key, layout, hash and storage are known to the compiler. Calls on single keys are
// inlined.
//
// Where they are known at run time only (a command line, a file of unknown making), use any_filter: same bits, same
// file.
#pragma once

#include <bloomery/bits.hpp>
#include <bloomery/bulk_insert.hpp>
#include <bloomery/census.hpp>
#include <bloomery/detail/checks.hpp>
#include <bloomery/error.hpp>
#include <bloomery/estimate.hpp>
#include <bloomery/filter_kind.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/key_source.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/layouts/line.hpp>
#include <bloomery/layouts/line_free.hpp>
#include <bloomery/layouts/page.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/params.hpp>
#include <bloomery/sizing.hpp>
#include <bloomery/storage.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace bloomery {

/// A set of keys that forgets which they were: may_contain() never wrongly says no, and wrongly says yes with a
/// probability that false_positive_rate() knows exactly.
///
/// @tparam Key      std::string_view (any bytes) or std::uint64_t
/// @tparam Layout   split_block or line (quickest), line_free, page, classic (least memory), or a type of your own;
///                  counting, if keys are to be removed
/// @tparam Hash     xxh3, mix, murmur3, siphash (for keys that others may choose), or your own: hash_of<Hash, Key>
/// @tparam Storage  heap_storage, span_storage or mapped_storage
///
/// Threads: any number may look up while none inserts. A moved-from filter may only be assigned to or destroyed.
///
/// Example:
///     filter<> seen(1'000'000, 0.01);  // a million strings, 1 %
///     assert(seen.insert("https://example.org/"));       // certainly new
///     assert(!seen.insert("https://example.org/"));      // maybe seen: here, surely
///     assert(seen.may_contain("https://example.org/"));
///     assert(!seen.may_contain("https://example.net/"));  // certain
template <class Key = std::string_view, layout Layout = split_block, class Hash = typename default_hash<Key>::type,
          storage Storage = heap_storage>
  requires hash_of<Hash, Key>
class filter {
 public:
  using key_type = Key;

  /// An empty filter that keeps `false_positive_rate` up to `capacity` keys.
  /// @throws error  invalid_argument: capacity is 0, the rate is outside (0, 1); too_large: more than this machine's
  /// memory
  filter(std::uint64_t capacity, double false_positive_rate,
         Hash hash = {}) requires std::same_as<Storage, heap_storage>
      : filter(kind::promised(capacity, false_positive_rate, hash), hash) {}

  /// An empty filter of a given geometry on the heap.
  /// @throws error  invalid_argument: not a geometry of this layout; too_large
  explicit filter(const geometry& g, std::uint64_t capacity = 0,
                  Hash hash = {}) requires std::same_as<Storage, heap_storage>
      : filter(kind::checked(kind::describe(g, capacity, 0, hash)), hash) {}

  /// A filter in the given storage, whose bytes are taken as they are.
  /// @throws error  invalid_argument: not a geometry of this layout, or the storage is not bytes_for(g.bits) long
  filter(const geometry& g, Storage bytes, std::uint64_t capacity = 0, Hash hash = {})
      : filter(kind::checked(kind::describe(g, capacity, 0, hash)), std::move(bytes), hash) {}

  /// Opens a filter file in place; to insert, open it with access::read_write. After an unclean end, size() is
  /// estimated from the bits for read_write, and out of date for read_only. @throws error as mapped_storage::open;
  /// incompatible: the file has another layout, hash, kind of keys or seed than this type
  static filter open(const std::string& path, access mode = access::read_only, check what = check::header,
                     Hash hash = {}) requires std::same_as<Storage, mapped_storage> {
    mapped_storage bytes = mapped_storage::open(path, mode, what, {}, [&](const params& p) {
      matched(p, hash, path);
      if (mode == access::read_write) refuse_log(p, path);
    });
    const file_info info = bytes.info();
    filter result(matched(info.parameters, hash, path), std::move(bytes), hash);
    if (!info.clean && mode == access::read_write) result.estimate_count();
    return result;
  }

  /// Makes an empty filter file and opens it for writing. @throws error as mapped_storage::create
  static filter create(const std::string& path, const geometry& g, std::uint64_t capacity, Hash hash = {},
                       creation how = {}) requires std::same_as<Storage, mapped_storage> {
    const params p = kind::checked(kind::describe(g, capacity, 0, hash));
    return filter(p, mapped_storage::create(path, p, {}, how), hash);
  }

  /// Reads a filter file into the heap, every page checked. @throws error as load_file; incompatible as open()
  static filter load(const std::string& path, Hash hash = {}) requires std::same_as<Storage, heap_storage> {
    loaded_file file = load_file(path);
    filter result(matched(file.info.parameters, hash, path), std::move(file.bytes), hash);
    if (!file.info.clean) result.estimate_count();
    return result;
  }

  /// Writes the filter as a file, whole or not at all. @throws error as save_file
  void save(const std::string& path, const std::string& metadata = {}) const {
    save_file(path, params_, bytes(), storage_.counts(), metadata);
  }

  /// Adds a key. True: it is certainly new. False: it, or keys that share its cells, came before.
  /// (Layout counting takes each insertion for one copy more, whatever the answer.)
  /// @throws error not_permitted: mapped storage that was opened for reading only
  bool insert(const Key& key) noexcept(!may_be_read_only) {
    want_writable();
    const key_hash hash = hash_(key);
    const bool is_new = insert_one<Layout>(storage_.data(), params_.geometry, hash);
    if (is_new || layout_with_removal<Layout>) took_new(hash);
    return is_new;
  }

  /// Adds keys one after another; `is_new` is empty or takes 1 or 0 for each key.
  /// @throws error  invalid_argument: another size of `is_new`; not_permitted, as above. Then nothing is inserted.
  void insert(std::span<const Key> keys, std::span<std::uint8_t> is_new = {}) {
    detail::check_answers("filter::insert", keys.size(), is_new.size());
    want_writable();
    std::uint8_t* const out = is_new.empty() ? nullptr : is_new.data();
    kind::each_source(hash_, keys, [&](const key_source& some, std::size_t first) {
      insert_source(some, out == nullptr ? nullptr : out + first);
    });
  }

  /// Adds keys in whatever order is quickest, with up to `threads` threads (0: one a processor); returns how many were
  /// certainly new. The bits are the same as after insert(keys). It pays for filters larger than the caches and some
  /// hundred thousand keys; up to twice the filter's memory is taken meanwhile. Layout classic, which has no blocks,
  /// inserts in order; so does a file that gets fewer keys than it has pages. @throws error not_permitted, as above
  ///
  /// Example:
  ///     filter<std::uint64_t> seen(1000, 0.01);
  ///     const std::vector<std::uint64_t> keys{1, 2, 3};
  ///     assert(seen.insert_all(keys) == 3);
  ///     assert(seen.may_contain(2));
  std::uint64_t insert_all(std::span<const Key> keys, unsigned threads = 0) {
    want_writable();
    if constexpr (layout_by_halves<Layout>) {
      const bulk_target target = bulk_target_of<Layout>(storage_.data(), params_.geometry);
      if (Storage::tracks_changes && keys.size() < storage_.size() / 4096) return insert_counting(keys);
      if (!bulk_insert_pays(target, keys.size(), threads)) return insert_counting(keys);
      changed_everywhere();
      const auto halves = [&](std::size_t begin, std::size_t count, std::uint64_t* los) {
        kind::each_source(hash_, keys.subspan(begin, count),
                          [&](const key_source& some, std::size_t first) { halves_of(some, los + first); });
      };
      const std::uint64_t all_new = bulk_insert(target, keys.size(), halves, threads);
      storage_.counts().inserted += all_new;
      return all_new;
    } else {
      return insert_counting(keys);
    }
  }

  /// Takes out one copy of a key that was inserted: a key that was inserted twice is to be removed twice. Only with
  /// layout counting.
  ///
  /// not_found: the key was certainly not there, and nothing is changed. That proves a mistake: either it was never
  /// inserted, or others' cells were taken by removing what never was. It is counted, and the filter is tainted() from
  /// then on. The other side of the same mistake shows nowhere: a key that never was in, and is taken for one that was
  /// (with the probability of a false positive), is "removed", and with it others may vanish. No small filter can tell.
  ///
  /// Counters that have reached 15, by many copies of a key or by chance (some 1e-15 of them at capacity), stay so: keys
  /// that only have such stay for good, and are "removed" as often as one likes.
  ///
  /// @throws error not_permitted: mapped storage that was opened for reading only
  ///
  /// Example:
  ///     filter<std::string_view, counting> here(1000, 0.01);
  ///     here.insert("Madrid");
  ///     assert(here.remove("Madrid") == removal::removed);
  ///     assert(!here.may_contain("Madrid") && !here.tainted());
  ///     assert(here.remove("Madrid") == removal::not_found && here.tainted());
  removal remove(const Key& key) noexcept(!may_be_read_only) requires layout_with_removal<Layout> {
    want_writable();
    const key_hash hash = hash_(key);
    const removal result = Layout::remove_one(storage_.data(), params_.geometry, hash);
    took_out(hash, result);
    return result;
  }

  /// Removes keys one after another; `results` is empty or takes the answer for each key. Returns how many were removed.
  /// @throws error  invalid_argument: another size of `results`; not_permitted, as above. Then nothing is removed.
  std::uint64_t remove(std::span<const Key> keys,
                       std::span<removal> results = {}) requires layout_with_removal<Layout> {
    detail::check_answers("filter::remove", keys.size(), results.size());
    want_writable();
    std::array<removal, batch> done;
    std::uint64_t all_removed = 0;
    kind::each_source(hash_, keys, [&](const key_source& many, std::size_t begin) {
      for (std::size_t first = 0; first < many.size(); first += batch) {
        const key_source some = many.part(first, std::min(batch, many.size() - first));
        all_removed += Layout::remove_batch(storage_.data(), params_.geometry, some, done.data());
        for (std::size_t i = 0; i < some.size(); ++i) took_out(some.hash(i), done[i]);
        if (!results.empty()) std::copy_n(done.begin(), some.size(), results.data() + begin + first);
      }
    });
    return all_removed;
  }

  /// Keys that were to be removed and were not there; only clear() forgets them.
  std::uint64_t refused_removals() const noexcept { return storage_.counts().refused_removals; }

  /// Whether such a mistake was ever made with this filter: then keys may be missing. See unnoticed_removals().
  bool tainted() const noexcept { return refused_removals() > 0; }

  /// False: the key was certainly never inserted. True: it probably was.
  bool may_contain(const Key& key) const noexcept {
    return has_one<Layout>(storage_.data(), params_.geometry, hash_(key));
  }

  /// Looks keys up: bit i%64 of bitmap[i/64] is the answer for keys[i]; unused bits are 0.
  /// `bitmap` has at least ceil(keys.size() / 64) words; further words are left as they are.
  /// @throws error invalid_argument: the bitmap is shorter
  void may_contain(std::span<const Key> keys, std::span<std::uint64_t> bitmap) const {
    detail::check_bitmap("filter::may_contain", keys.size(), bitmap.size());
    kind::each_source(hash_, keys, [&](const key_source& some, std::size_t first) {
      has_batch<Layout>(storage_.data(), params_.geometry, some, bitmap.data() + first / 64);
    });
  }

  /// Makes this filter the union: it then answers yes for every key of either. The count becomes an estimate; with
  /// layout counting copies are added, and so are counts.
  /// @throws error  incompatible: names the field that differs and both values; not_permitted: this filter was opened for
  ///                reading only
  template <class OtherStorage>
  void merge(const filter<Key, Layout, Hash, OtherStorage>& other) {
    const std::string reason = difference(params_, other.parameters());
    if (!reason.empty()) throw error(errc::incompatible, {"filters cannot be merged", "", "", reason, ""});
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

  /// Makes this filter the intersection: it still answers yes for every key that was in both, and for others more often
  /// than a filter made of those keys would (see certified_rate()). The count becomes an estimate.
  /// @throws error  incompatible and not_permitted, as merge(); invalid_argument: a layout of your own
  template <class OtherStorage>
  void intersect(const filter<Key, Layout, Hash, OtherStorage>& other) {
    static_assert(!layout_with_removal<Layout> || sizeof(OtherStorage) == 0,
                  "counting filters have no intersection: which copies are in both, counters do not tell");
    const std::string reason = difference(params_, other.parameters());
    if (!reason.empty()) throw error(errc::incompatible, {"filters cannot be intersected", "", "", reason, ""});
    want_writable();
    const estimate keys = estimate_overlap(params_, count_shared(bytes(), other.bytes())).keys_both;
    intersect_bits({storage_.data(), storage_.size()}, other.bytes());
    changed_everywhere();
    storage_.counts().inserted = 0;
    if (std::isfinite(keys.sigma))
      set_estimated_count(keys.value);
    else
      estimate_count();  // together they are full, which tells nothing of what they share
  }

  /// Whether merge() would accept `other`.
  template <class OtherStorage>
  bool compatible_with(const filter<Key, Layout, Hash, OtherStorage>& other) const {
    return difference(params_, other.parameters()).empty();
  }

  /// Removes all keys. @throws error not_permitted: mapped storage that was opened for reading only
  void clear() noexcept(!may_be_read_only) {
    want_writable();
    std::fill_n(storage_.data(), storage_.size(), std::uint8_t{0});
    storage_.counts().inserted = 0;
    storage_.counts().is_estimate = false;
    storage_.counts().refused_removals = 0;
    changed_everywhere();
  }

  const params& parameters() const noexcept { return params_; }
  std::span<const std::uint8_t> bytes() const noexcept { return {storage_.data(), storage_.size()}; }

  std::uint64_t capacity() const noexcept { return params_.capacity; }       ///< keys it was made for
  std::uint64_t bit_size() const noexcept { return params_.geometry.bits; }  ///< bits
  std::uint64_t byte_size() const noexcept { return storage_.size(); }       ///< bytes

  /// Keys that were certainly new when they came. Those that came as false positives are not among them: few up to
  /// capacity(), most of them far beyond. With layout counting: copies that were inserted and not yet removed.
  std::uint64_t size() const noexcept { return storage_.counts().inserted; }

  /// Whether size() was estimated from the bits at some time: after merge(), or after a writer of its file was killed.
  bool count_is_estimate() const noexcept { return storage_.counts().is_estimate; }

  /// What is counted, as it is stored.
  const key_counts& counts() const noexcept { return storage_.counts(); }

  /// Share of bits set, or of counters that are not 0; 0 to 1. Reads all bits.
  double fill_ratio() const noexcept { return static_cast<double>(ones()) / static_cast<double>(cells()); }

  /// Distinct keys, estimated from the bits. Reads all bits. Infinity if all are set.
  double approximate_size() const noexcept { return Layout::keys_from_zeros(params_.geometry, cells() - ones()); }

  /// The same with its standard deviation. @throws error invalid_argument: a layout of your own
  estimate estimated_keys() const { return bloomery::estimated_keys(params_, ones()); }

  /// The rate of these very bits, whatever was done to them: take_census(). Reads all bits.
  /// @throws error invalid_argument: a layout of your own
  double certified_rate() const { return take_census(params_, bytes()).certified_rate; }

  /// Exact rate once `keys` distinct keys are in.
  double false_positive_rate(std::uint64_t keys) const { return Layout::false_positive_rate(params_.geometry, keys); }

  /// The rate now: at the number of distinct keys that leaves size() certainly new ones. See distinct_keys().
  /// With layout counting at size() keys, as if all were different: at most that, unless counters are full and stay so.
  double false_positive_rate() const {
    if (has_slow_rates() || layout_with_removal<Layout>) return false_positive_rate(size());
    const auto rate = [this](std::uint64_t keys) { return false_positive_rate(keys); };
    return rate(distinct_keys(size(), rate));
  }

  /// For mapped storage: writes checksums, count and clean mark, and unmaps; the filter is then as moved from.
  /// @throws error io
  void close() requires std::same_as<Storage, mapped_storage> { storage_.close(); }

 private:
  template <class K, layout L, class H>
    requires hash_of<H, K>
  friend class concurrent_filter;  // passes a filter's bytes on

  using kind = filter_kind<Key, Layout, Hash>;
  static constexpr std::size_t batch = kind::batch;
  static constexpr bool may_be_read_only = storage_with_access<Storage>;

  std::uint64_t insert_counting(std::span<const Key> keys) noexcept {
    std::uint64_t all_new = 0;
    kind::each_source(hash_, keys,
                      [&](const key_source& some, std::size_t) { all_new += insert_source(some, nullptr); });
    return all_new;
  }

  // Returns how many were certainly new.
  std::uint64_t insert_source(const key_source& keys, std::uint8_t* is_new) noexcept {
    std::uint64_t all_new = 0;
    if constexpr (!Storage::tracks_changes) {
      all_new = insert_batch<Layout>(storage_.data(), params_.geometry, keys, is_new);
      storage_.counts().inserted += layout_with_removal<Layout> ? keys.size() : all_new;
    } else {
      std::array<std::uint8_t, batch> fresh;
      for (std::size_t first = 0; first < keys.size(); first += batch) {
        const key_source some = keys.part(first, std::min(batch, keys.size() - first));
        all_new += insert_batch<Layout>(storage_.data(), params_.geometry, some, fresh.data());
        for (std::size_t i = 0; i < some.size(); ++i) {
          if (fresh[i] != 0 || layout_with_removal<Layout>) took_new(some.hash(i));
        }
        if (is_new != nullptr) std::copy_n(fresh.begin(), some.size(), is_new + first);
      }
    }
    return all_new;
  }

  static params matched(const params& file, const Hash& hash, const std::string& path) {
    params own = kind::describe(file.geometry, file.capacity, file.target_rate, hash);
    const std::string reason = difference(file, own);
    if (!reason.empty()) {
      throw error(errc::incompatible,
                  {"the file is a filter of another kind than this program's", path, "", reason, ""});
    }
    Layout::check(own.geometry);
    return own;
  }

  filter(params p, Hash hash) : filter(p, Storage(bytes_for(p.geometry.bits)), hash) {}
  filter(params p, Storage bytes, Hash hash) : params_(std::move(p)), hash_(hash), storage_(std::move(bytes)) {
    if (storage_.size() != bytes_for(params_.geometry.bits)) {
      throw error(errc::invalid_argument,
                  {"bytes given to a filter", "storage", std::to_string(bytes_for(params_.geometry.bits)) + " bytes",
                   std::to_string(storage_.size()), ""});
    }
  }

  std::uint64_t cells() const noexcept { return bit_size() / cell_bits_in<Layout>(); }

  // Cells that are not 0. In a stranger's file the last byte's unused bits may be set: never more than all.
  std::uint64_t ones() const noexcept {
    if constexpr (layout_with_removal<Layout>)
      return Layout::cells_used(bytes());
    else
      return std::min(count_ones(bytes()), bit_size());
  }

  void took_new(key_hash hash) noexcept {
    ++storage_.counts().inserted;
    changed_cells(hash);
  }

  void took_out(key_hash hash, removal result) noexcept {
    count_removal(storage_.counts(), result);
    if (result == removal::removed) changed_cells(hash);
  }

  void changed_cells(key_hash hash) noexcept {
    if constexpr (Storage::tracks_changes) {
      typename Layout::cells cells(params_.geometry, hash);
      for (std::uint32_t i = 0; i < cells.count(); ++i) storage_.changed(byte_of_cell<Layout>(cells.next()));
    }
  }

  // Writing to a read-only mapping would end the process. Storages without writable() can always be written.
  void want_writable() const noexcept(!may_be_read_only) {
    if constexpr (may_be_read_only) {
      if (!storage_.writable()) [[unlikely]]
        detail::refuse_writing();
    }
  }

  void changed_everywhere() noexcept {
    if constexpr (Storage::tracks_changes) storage_.changed_all();
  }

  // Rates of very many probes take a second each: what needs many of them does without.
  bool has_slow_rates() const noexcept { return params_.geometry.probes > classic::most_chosen_probes; }

  void estimate_count() {
    if constexpr (layout_with_removal<Layout>) {
      storage_.counts().inserted =
          static_cast<std::uint64_t>(std::llround(Layout::copies_in(params_.geometry, bytes())));
      storage_.counts().is_estimate = true;
      return;
    }
    // With all bits set there are at least as many keys as leave one clear, and one.
    const std::uint64_t zeros = bit_size() - ones();
    const double keys = Layout::keys_from_zeros(params_.geometry, std::max<std::uint64_t>(zeros, 1));
    set_estimated_count(zeros == 0 ? std::max(keys, 1.0) : keys);
  }

  // At least as many as were counted.
  void set_estimated_count(double keys) {
    const auto rate = [this](std::uint64_t n) { return has_slow_rates() ? 0 : false_positive_rate(n); };
    storage_.counts().inserted = std::max(storage_.counts().inserted, certainly_new_keys(keys, rate));
    storage_.counts().is_estimate = true;
  }

  params params_;
  Hash hash_;
  Storage storage_;
};

}  // namespace bloomery
