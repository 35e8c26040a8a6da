// sliding_window_filter<>: a filter for "seen in the last 24 hours" or "seen among the last million keys". Old keys
// expire without a pause, and there are no false negatives within the window.
//
// Read detail/generations.hpp for the slices of a window, then layouts/sliding.hpp for the cells.
#pragma once

#include <bloomery/detail/checks.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/detail/filter_kind.hpp>
#include <bloomery/detail/generations.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layouts/sliding.hpp>
#include <bloomery/layouts/split_block512.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/params.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace BLOOMERY_EXPORT bloomery {

/// The window, capacity and target FPR of a sliding-window filter, by name.
struct sliding_window_options {
  window_length window = {};   ///< window_of_time(time) or window_of_keys(insertions)
  std::uint64_t capacity = 0;  ///< n, distinct keys per window; 0 for a window of keys: its length
  double fpr = 0.01;           ///< target FPR while a window has up to `capacity` keys, in (0, 1)
  window_clock clock = {};     ///< empty: the system's clock; unused for windows of keys
};

/// A set of the keys inserted within the last window W. may_contain() returns true for every key inserted within W, and
/// for other keys with probability expected_fpr(). A key has expired if it was last inserted more than 8 ceil(W / 7)
/// ago, about a seventh more than W.
///
/// @tparam Key      std::string_view (any bytes) or std::uint64_t
/// @tparam Layout   sliding (least memory) or sliding64 (one cache line per key)
/// @tparam Hash     xxh3_64, xxh3, mix, murmur3, siphash, or your own: hash_of<Hash, Key>
/// @tparam Storage  heap_storage or mapped_storage
///
/// The target FPR holds however the keys are spread over the window, and however often they recur: each generation of a
/// window of time has room for all `capacity` keys. If keys arrive evenly, the much smaller geometry
/// Layout::geometry_for(capacity, fpr) is enough, which any_filter uses: it has room for a seventh of the keys in each
/// generation.
///
/// Threads: any number may look up while none inserts. A moved-from filter may only be assigned to or destroyed.
///
/// Example:
///     std::uint64_t now = 1'700'000'000'000;  // milliseconds since 1970
///     sliding_window_filter<> seen({.window = window_of_time(std::chrono::hours(24)),
///                                   .capacity = 1'000'000,
///                                   .fpr = 0.01,
///                                   .clock = [&] { return now; }});
///     assert(seen.insert("alice"));       // certainly not seen in the last 24 hours
///     now += 23 * 3'600'000;
///     assert(!seen.insert("alice"));      // seen; the window of this key starts again
///     now += 24 * 3'600'000;
///     assert(seen.may_contain("alice"));
///     now += 24 * 3'600'000;
///     assert(!seen.may_contain("alice"));
template <class Key = std::string_view, sliding_window_layout Layout = layouts::sliding,
          class Hash = default_hash_for<Key, Layout>, storage Storage = heap_storage>
  requires hash_of<Hash, Key>
class sliding_window_filter {
 public:
  using key_type = Key;

  /// An empty filter.
  /// @throws error  invalid_argument: a window without length, capacity 0 for a window of time, or a rate outside
  ///                (0, 1); too_large
  ///
  /// Example:
  ///     sliding_window_filter<std::uint64_t, layouts::sliding64> recent({.window = window_of_keys(700)});
  ///     recent.insert(42);
  ///     for (std::uint64_t key = 1000; key < 1700; ++key) recent.insert(key);
  ///     assert(recent.may_contain(42) && recent.facts().insertions == 701);
  explicit sliding_window_filter(const sliding_window_options& options,
                                 Hash hash = {}) requires std::same_as<Storage, heap_storage>
      : sliding_window_filter(params_for(options, hash), hash, options.clock) {}

  /// Opens a filter file in place. Of the options it uses `mode`, `check`, `waiting` and `clock`; `hash` has the secret
  /// of a keyed filter.
  /// @throws error  as mapped_storage::open; incompatible: the file has another layout, hash, kind of keys or seed;
  ///                damaged: its state is inconsistent
  ///
  /// Example:
  ///     using url_file = sliding_window_filter<std::string_view, layouts::sliding, xxh3_64, mapped_storage>;
  ///     url_file::create("recent.bloom", {.window = window_of_keys(700)}).insert("https://example.org/");
  ///     assert(url_file::open("recent.bloom").may_contain("https://example.org/"));
  static sliding_window_filter open(const std::string& path, const open_options& options = {},
                                    Hash hash = {}) requires std::same_as<Storage, mapped_storage> {
    const bool writes = options.mode == access::read_write;
    mapped_storage bytes = mapped_storage::open(path, options, [&](const params& p) { matched(p, hash, path); });
    const file_info info = bytes.info();
    sliding_window_filter result(matched(info.parameters, hash, path), std::move(bytes), hash, options.clock);
    result.generations_.check(result.bytes(), info.clean || writes, path);
    if (!info.clean && writes) result.storage_.counts().is_estimate = true;
    return result;
  }

  /// Creates an empty filter file, mapped for writing. @throws error as the constructor, and mapped_storage::create
  static sliding_window_filter create(const std::string& path, const sliding_window_options& wanted,
                                      const create_options& options = {},
                                      Hash hash = {}) requires std::same_as<Storage, mapped_storage> {
    const params p = params_for(wanted, hash);
    return sliding_window_filter(p, mapped_storage::create(path, p, options), hash, wanted.clock);
  }

  /// Reads a filter file into the heap and checks every page. Of the options it uses `clock`.
  /// @throws error as load_file and open()
  static sliding_window_filter load(const std::string& path, const open_options& options = {},
                                    Hash hash = {}) requires std::same_as<Storage, heap_storage> {
    loaded_file file = load_file(path);
    sliding_window_filter result(matched(file.info.parameters, hash, path), std::move(file.bytes), hash, options.clock);
    result.generations_.check(result.bytes(), file.info.clean, path);
    if (!file.info.clean) result.storage_.counts().is_estimate = true;
    return result;
  }

  /// Writes the filter to a file atomically. @throws error as save_file
  void save(const std::string& path, const std::string& metadata = {}) const {
    save_file(path, params_, bytes(), storage_.counts(), metadata);
  }

  /// Inserts a key; its window starts now. True: it was certainly not seen in the window.
  /// @throws error not_permitted: mapped storage that was opened for reading only
  bool insert(const Key& key) {
    want_writable();
    const std::uint64_t hash64 = hash_(key).hash64;
    const std::uint64_t unseen =
        generations_.each_run(storage_.data(), 1, [&](std::uint32_t epoch, std::size_t, std::size_t) {
          const std::uint64_t at = Layout::block_at(params_.geometry, hash64);
          const std::uint8_t had = Layout::insert_into(storage_.data() + at, hash64, params_.geometry.probes, epoch);
          changed(at);
          return window_insertions{had == 0 ? 1u : 0u, (had >> epoch % window_generations & 1) != 0 ? 0u : 1u};
        });
    storage_.counts().inserted += unseen;
    return unseen != 0;
  }

  /// Inserts keys in order; `is_new` is empty or receives 1 or 0 per key. In windows of time, up to 256 keys share one
  /// reading of the clock.
  /// @throws error  invalid_argument: `is_new` has another size; not_permitted, as above; nothing is inserted
  void insert(std::span<const Key> keys, std::span<std::uint8_t> is_new = {}) {
    detail::check_answers("sliding_window_filter::insert", keys.size(), is_new.size());
    want_writable();
    std::uint8_t* const out = is_new.empty() ? nullptr : is_new.data();
    kind::each_source(hash_, keys, [&](const hash_span& some, std::size_t first) {
      insert_source(some, out == nullptr ? nullptr : out + first);
    });
  }

  /// False: the key was certainly not seen in the window. True: it probably was seen in the window or shortly before.
  bool may_contain(const Key& key) const {
    const std::uint64_t hash64 = hash_(key).hash64;
    const std::uint8_t* const block = storage_.data() + Layout::block_at(params_.geometry, hash64);
    return Layout::generations_with(block, hash64, params_.geometry.probes, epoch32()) != 0;
  }

  /// Looks up keys, all at the same time: bit i%64 of bitmap[i/64] is the answer for keys[i]; unused bits are 0.
  /// `bitmap` has at least ceil(keys.size() / 64) words; further words are unchanged.
  /// @throws error invalid_argument: the bitmap is shorter
  void may_contain(std::span<const Key> keys, std::span<std::uint64_t> bitmap) const {
    detail::check_bitmap("sliding_window_filter::may_contain", keys.size(), bitmap.size());
    const std::uint32_t epoch = epoch32();
    kind::each_source(hash_, keys, [&](const hash_span& some, std::size_t first) {
      Layout::look_up_keys(storage_.data(), params_.geometry, some, epoch, bitmap.data() + first / 64);
    });
  }

  /// Merges the keys of another filter into this one, each into its own generation. Only for windows of time: two
  /// streams of insertions have no common order.
  /// @throws error  incompatible: a window of keys, or a field differs (named with both values); too_large: more than
  ///                2^62 insertions together; not_permitted: this filter was opened for reading only
  template <class OtherStorage>
  void merge(const sliding_window_filter<Key, Layout, Hash, OtherStorage>& other) {
    const std::string reason = difference(params_, other.parameters());
    if (!reason.empty()) detail::refuse(errc::incompatible, {"filters cannot be merged", "", "", reason, ""});
    want_writable();
    merge_windows(params_, {storage_.data(), storage_.size()}, other.bytes());
    storage_.counts().inserted += other.insert_count();
    storage_.counts().is_estimate = true;
    changed_everywhere();
  }

  /// Removes all keys and resets the epoch. @throws error not_permitted: mapped storage opened for reading only
  void clear() noexcept(!storage_with_access<Storage>) {
    want_writable();
    std::fill_n(storage_.data(), storage_.size(), std::uint8_t{0});
    storage_.counts().inserted = 0;
    storage_.counts().is_estimate = false;
    changed_everywhere();
  }

  void set_clock(window_clock clock) { generations_.set_clock(std::move(clock)); }

  const params& parameters() const noexcept { return params_; }
  std::span<const std::uint8_t> bytes() const noexcept { return {storage_.data(), storage_.size()}; }

  std::uint64_t capacity() const noexcept { return params_.capacity; }       ///< keys per window
  std::uint64_t bit_size() const noexcept { return params_.geometry.bits; }  ///< bits
  std::uint64_t byte_size() const noexcept { return storage_.size(); }       ///< bytes

  /// Keys that were certainly not seen in the window when inserted, since the filter was created or cleared.
  std::uint64_t insert_count() const noexcept { return storage_.counts().inserted; }

  /// The generations at the present time.
  window_facts facts() const { return facts_of_window(params_, bytes(), generations_.epoch(storage_.data())); }

  /// Expected FPR now, from the key counts of the generations, assuming that all keys are distinct. At most the target
  /// FPR unless a generation is overfull.
  double expected_fpr() const { return facts().rate; }

  /// Expected FPR in the worst case with `keys` distinct keys per window.
  double expected_fpr(std::uint64_t keys) const {
    return Layout::rate_of(params_.geometry, fullest_in(params_.window(), keys));
  }

  /// Exact FPR of the present cells, at the epoch of the newest generation. Reads all bytes.
  double current_fpr() const { return measure_window_fill(params_, bytes()).current_fpr; }

  /// For mapped storage: writes checksums, counts and the clean mark, and unmaps; the filter is then moved-from.
  /// @throws error io
  void close() requires std::same_as<Storage, mapped_storage> { storage_.close(); }

 private:
  using kind = filter_kind<Key, layouts::split_block512, Hash>;  // for hashing only; any layout would do

  static keys_by_generation fullest_in(const window_length& length, std::uint64_t keys) noexcept {
    return fullest_generations(keys, length.by_time() ? 0 : length.slice_length());
  }

  static params describe(const geometry& g, std::uint64_t capacity, double rate, const Hash& hash) {
    params p = kind::describe(g, capacity, rate, hash);
    p.layout = Layout::name;
    return p;
  }

  static params params_for(const sliding_window_options& wanted, const Hash& hash) {
    const std::uint64_t capacity = wanted.capacity == 0 ? wanted.window.keys() : wanted.capacity;
    const keys_by_generation fullest = fullest_in(wanted.window, capacity);
    params p = describe(Layout::geometry_for(fullest, wanted.fpr), capacity, wanted.fpr, hash);
    p.extra = wanted.window;
    static_cast<void>(generations(p));  // refuses a wrong length before a file is created
    return p;
  }

  static params matched(const params& file, const Hash& hash, const std::string& path) {
    params own = describe(file.geometry, file.capacity, file.target_fpr, hash);
    own.extra = file.extra;
    detail::check_same_kind(path, difference(file, own));
    Layout::check(own.geometry);
    return own;
  }

  sliding_window_filter(params p, Hash hash, window_clock clock)
      : sliding_window_filter(p, Storage(bytes_for(p.geometry.bits)), hash, std::move(clock)) {}
  sliding_window_filter(params p, Storage bytes, Hash hash, window_clock clock)
      : params_(std::move(p)), hash_(hash), generations_(params_, std::move(clock)), storage_(std::move(bytes)) {}

  void insert_source(const hash_span& keys, std::uint8_t* is_new) {
    storage_.counts().inserted += generations_.each_run(
        storage_.data(), keys.size(), [&](std::uint32_t epoch, std::size_t first, std::size_t count) {
          const hash_span some = keys.part(first, count);
          const window_insertions done = Layout::insert_keys(storage_.data(), params_.geometry, some, epoch,
                                                             is_new == nullptr ? nullptr : is_new + first);
          if constexpr (Storage::tracks_changes) {
            for (std::size_t i = 0; i < count; ++i) changed(Layout::block_at(params_.geometry, some.hash64(i)));
          }
          return done;
        });
  }

  // Writing to a read-only mapping would cause SIGSEGV.
  void want_writable() const noexcept(!storage_with_access<Storage>) {
    if constexpr (storage_with_access<Storage>) {
      if (!storage_.writable()) [[unlikely]]
        detail::refuse_writing();
    }
  }

  // An insert changes the key's block and the state before the blocks.
  void changed(std::uint64_t block_at) noexcept {
    if constexpr (Storage::tracks_changes) {
      storage_.changed(block_at);
      storage_.changed(0);
    }
  }

  void changed_everywhere() noexcept {
    if constexpr (Storage::tracks_changes) storage_.changed_all();
  }

  std::uint32_t epoch32() const { return static_cast<std::uint32_t>(generations_.epoch(storage_.data())); }

  params params_;
  Hash hash_;
  generations generations_;
  Storage storage_;
};

}  // namespace bloomery
