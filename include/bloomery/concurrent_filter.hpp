// concurrent_filter<>: a lock-free filter for concurrent inserts and lookups by many threads. It has the same bits as
// filter<>, and lookups take about the same time. detail/atomic_words.hpp has the atomic operations.
#pragma once

#include <bloomery/detail/atomic_words.hpp>
#include <bloomery/detail/checks.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/detail/filter_kind.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/params.hpp>
#include <bloomery/sizing.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

namespace BLOOMERY_EXPORT bloomery {

/// A counter split into cache-line-sized shards. A thread that has a shard of its own adds without a locked operation.
class sharded_counter {
 public:
  explicit sharded_counter(std::uint64_t start) noexcept { shards_[0].count.store(start, std::memory_order_relaxed); }

  void add(std::uint64_t count) noexcept {
    const std::size_t number = detail::thread_number();
    if (number < detail::numbered_threads) {
      std::atomic<std::uint64_t>& own = shards_[number].count;
      own.store(own.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
    } else {
      shards_[detail::numbered_threads].count.fetch_add(count, std::memory_order_relaxed);
    }
  }

  /// The sum of all completed additions, and perhaps of some concurrent ones.
  std::uint64_t sum() const noexcept {
    std::uint64_t all = 0;
    for (const shard& some : shards_) all += some.count.load(std::memory_order_relaxed);
    return all;
  }

 private:
  struct alignas(64) shard {  // one cache line
    std::atomic<std::uint64_t> count{0};
  };

  std::array<shard, detail::numbered_threads + 1> shards_;  // the last one is shared by all other threads
};

/// A thread-safe filter<>: any number of threads may call any member except freeze() at the same time.
///
/// **No false negatives.** If insert(key) happens before may_contain(key), may_contain() returns true. Within one
/// thread, each call happens before the calls that follow. Between threads the usual synchronization is needed: join
/// the inserting thread, unlock and then lock a mutex, or store (release) and then read (acquire) a flag. Without it, a
/// lookup on another processor may miss an insert that has just returned, until the write becomes visible there; the
/// insert is never lost.
///
/// Proof: words are written atomically and bits are never cleared, and insert() returns only after it has found or set
/// all bits of the key. By coherence, which relaxed order also guarantees, a read never sees an older state of a word
/// than a read or write that happened before it. Lookups by kernels read several words with one vector load, which is
/// atomic for each byte; bits are independent, so that is enough.
///
/// **A new key is reported at least once.** If several threads insert one new key at the same time, at least one call
/// returns true, unless other keys set all of its bits meanwhile; several calls may return true. Proof: one of these
/// inserts sets a bit of the key that was clear, and the atomic operation that sets it returns the clear bit. An insert
/// that sets another bit of the key first returns true as well. As for filter<>, false means that the key, or keys that
/// share its cells, were inserted before or at the same time.
///
/// @tparam Key     std::string_view (any bytes) or std::uint64_t
/// @tparam Layout  any layout: split_block512 and split_block touch one cache line per key; classic needs least memory
/// @tparam Hash    as for filter<>
///
/// It can be neither copied nor moved, because threads refer to it.
///
/// Example:
///     #include <thread>
///     concurrent_filter<std::uint64_t> seen(1'000'000, 0.01);
///     std::thread other([&] { for (std::uint64_t i = 0; i < 1000; ++i) seen.insert(i); });
///     for (std::uint64_t i = 1000; i < 2000; ++i) seen.insert(i);
///     other.join();  // from here on, its keys are visible
///     assert(seen.may_contain(7) && seen.may_contain(1007));
template <class Key = std::string_view, layout Layout = layouts::split_block,
          class Hash = default_hash_for<Key, Layout>>
  requires hash_of<Hash, Key>
class concurrent_filter {
  static_assert(!layout_with_removal<Layout>,
                "concurrent_filter only sets bits: counters of several threads would get lost; guard a "
                "filter<Key, counting> with a mutex instead");

 public:
  using key_type = Key;
  using plain_filter = filter<Key, Layout, Hash>;

  /// An empty filter that keeps options.fpr up to options.capacity keys.
  /// @throws error  as below
  ///
  /// Example:
  ///     concurrent_filter<> seen({.capacity = 1000, .fpr = 0.001});
  ///     assert(seen.insert("alice") && seen.expected_fpr(1000) <= 0.001);
  explicit concurrent_filter(const filter_options& options, Hash hash = {})
      : concurrent_filter(options.capacity, options.fpr, hash) {}

  /// An empty filter that keeps `target_fpr` up to `capacity` keys.
  /// @throws error  invalid_argument: capacity is 0, or the rate is outside (0, 1); too_large: more than this machine's
  ///                memory
  concurrent_filter(std::uint64_t capacity, double target_fpr, Hash hash = {})
      : concurrent_filter(kind::params_for(capacity, target_fpr, hash), hash) {}

  /// An empty filter of a given geometry.
  /// @throws error  invalid_argument: not a geometry of this layout; too_large
  explicit concurrent_filter(const geometry& g, std::uint64_t capacity = 0, Hash hash = {})
      : concurrent_filter(kind::checked(kind::describe(g, capacity, 0, hash)), hash) {}

  /// Takes over the memory and the keys of a filter on the heap.
  ///
  /// Example:
  ///     filter<std::uint64_t, layouts::split_block512> loaded(1000, 0.01);
  ///     loaded.insert(42);
  ///     concurrent_filter<std::uint64_t, layouts::split_block512> seen(std::move(loaded));
  ///     assert(seen.may_contain(42) && seen.insert_count() == 1);
  explicit concurrent_filter(plain_filter&& other)
      : params_(std::move(other.params_)),
        hash_(other.hash_),
        new_keys_(other.insert_count()),
        count_is_estimate_(other.count_is_estimate()),
        storage_(resized(std::move(other.storage_), whole_pairs(params_.geometry.bits))) {}

  concurrent_filter(const concurrent_filter&) = delete;
  concurrent_filter& operator=(const concurrent_filter&) = delete;

  /// Inserts a key. True: the key is certainly new. False: the key, or keys that share its cells, were inserted before
  /// or at the same time. While the process has a single thread, this takes the time of filter<>'s insert().
  bool insert(const Key& key) noexcept {
    const key_hash hash = hash_(key);
    const bool is_new = detail::single_threaded() ? insert_one<Layout>(storage_.data(), params_.geometry, hash)
                                                  : !has_at_once(hash) && set(hash);
    if (is_new) new_keys_.add(1);
    return is_new;
  }

  /// Inserts keys in order; `is_new` is empty or receives 1 or 0 per key. This is the fastest way for large filters,
  /// because the cells of later keys are prefetched.
  /// @throws error invalid_argument: `is_new` has another size; nothing is inserted
  void insert(std::span<const Key> keys, std::span<std::uint8_t> is_new = {}) {
    detail::check_answers("concurrent_filter::insert", keys.size(), is_new.size());
    std::uint64_t all_new = 0;
    kind::each_source(hash_, keys, [&](const hash_span& source, std::size_t first) {
      std::uint8_t* const answers = is_new.empty() ? nullptr : is_new.data() + first;
      all_new += detail::single_threaded() ? insert_batch<Layout>(storage_.data(), params_.geometry, source, answers)
                                           : set_all(source, answers);
    });
    new_keys_.add(all_new);
  }

  /// False: the key was certainly not inserted before. True: it probably was.
  bool may_contain(const Key& key) const noexcept {
    const key_hash hash = hash_(key);
    return by_kernels ? has_at_once(hash) : has(hash);
  }

  /// Looks up keys: bit i%64 of bitmap[i/64] is the answer for keys[i]; unused bits are 0.
  /// `bitmap` has at least ceil(keys.size() / 64) words and is not shared between threads; further words are unchanged.
  /// @throws error invalid_argument: the bitmap is shorter
  void may_contain(std::span<const Key> keys, std::span<std::uint64_t> bitmap) const {
    detail::check_bitmap("concurrent_filter::may_contain", keys.size(), bitmap.size());
    kind::each_source(hash_, keys,
                      [&](const hash_span& source, std::size_t first) { has_all(source, bitmap.data() + first / 64); });
  }

  /// A filter<> with all keys inserted before, and perhaps some that are being inserted: to save it, to merge it, or
  /// for faster lookups. Its count_is_estimate() is true, since a key may have been counted several times.
  ///
  /// Example:
  ///     concurrent_filter<> seen(1000, 0.01);
  ///     seen.insert("alice");
  ///     const filter<> copy = seen.snapshot();
  ///     assert(copy.may_contain("alice") && copy.insert_count() == 1);
  /// @throws error too_large: there is no memory for a second one
  plain_filter snapshot() const {
    heap_storage copy(bytes_for(params_.geometry.bits));
    for (std::uint64_t first = 0; first < copy.size(); first += sizeof(std::uint64_t)) {
      const std::uint64_t word = words().load(first / sizeof(std::uint64_t));
      std::memcpy(copy.data() + first, &word, std::min<std::uint64_t>(sizeof word, copy.size() - first));
    }
    copy.counts().inserted = insert_count();
    copy.counts().is_estimate = true;
    return plain_filter(params_, std::move(copy), hash_);
  }

  /// Converts it to a filter<>, when no thread uses it any more. It gives up its memory and may only be destroyed.
  ///
  /// Example:
  ///     concurrent_filter<std::uint64_t, layouts::split_block512> seen(1000, 0.01);
  ///     seen.insert(42);
  ///     const filter<std::uint64_t, layouts::split_block512> all = std::move(seen).freeze();
  ///     assert(all.may_contain(42));
  /// @throws error too_large: not enough memory for a copy, which layouts need whose bits are not a multiple of 128
  plain_filter freeze() && {
    const std::uint64_t counted = insert_count();
    heap_storage bytes = resized(std::move(storage_), bytes_for(params_.geometry.bits));
    bytes.counts().inserted = counted;
    bytes.counts().is_estimate = true;
    return plain_filter(std::move(params_), std::move(bytes), hash_);
  }

  const params& parameters() const noexcept { return params_; }

  std::uint64_t capacity() const noexcept { return params_.capacity; }                   ///< keys
  std::uint64_t bit_size() const noexcept { return params_.geometry.bits; }              ///< bits
  std::uint64_t byte_size() const noexcept { return bytes_for(params_.geometry.bits); }  ///< bytes

  /// Number of inserts that returned true. A key that several threads inserted at the same time may be counted several
  /// times. Keys that were false positives when inserted are not counted.
  std::uint64_t insert_count() const noexcept { return new_keys_.sum(); }

  /// Whether insert_count() includes an estimate: that of the filter passed to the constructor.
  bool count_is_estimate() const noexcept { return count_is_estimate_; }

  /// Fraction of bits set, 0 to 1. Reads all bits.
  double fill_ratio() const noexcept { return static_cast<double>(ones()) / static_cast<double>(bit_size()); }

  /// Distinct keys, estimated from the bits. Reads all bits. Infinity if all are set.
  double approximate_size() const noexcept { return Layout::keys_from_zeros(params_.geometry, bit_size() - ones()); }

  /// Expected FPR with `keys` distinct keys.
  double expected_fpr(std::uint64_t keys) const { return Layout::expected_fpr(params_.geometry, keys); }

  /// The expected FPR now, with estimate_distinct() of insert_count().
  double expected_fpr() const {
    const auto rate = [this](std::uint64_t keys) { return expected_fpr(keys); };
    return rate(estimate_distinct(insert_count(), rate));
  }

 private:
  using kind = filter_kind<Key, Layout, Hash>;

  static constexpr std::size_t fetched_ahead = 64;  // keys, at most 64
  // ThreadSanitizer takes the vector loads of kernels for data races; for it, words are read one by one.
  static constexpr bool by_kernels = layout_with_kernels<Layout> && !detail::under_thread_sanitizer;

  concurrent_filter(params p, Hash hash)
      : params_(std::move(p)), hash_(hash), new_keys_(0), storage_(whole_pairs(params_.geometry.bits)) {}

  static std::uint64_t whole_pairs(std::uint64_t bits) noexcept {
    return (bytes_for(bits) + sizeof(detail::word_pair) - 1) / sizeof(detail::word_pair) * sizeof(detail::word_pair);
  }

  // A storage of another size with the same bytes.
  static heap_storage resized(heap_storage from, std::uint64_t bytes) {
    if (from.size() == bytes) return from;
    heap_storage to(bytes);
    std::memcpy(to.data(), from.data(), std::min(bytes, from.size()));
    return to;
  }

  detail::atomic_words words() const noexcept {
    return detail::atomic_words(const_cast<std::uint8_t*>(storage_.data()));
  }

  // Calls visit(first cell of a pair of words, bits in the pair) for the key's pairs until a call returns false;
  // consecutive cells in one pair share a call. Cells are in words as in bytes: cell x is bit x & 7 of byte x >> 3.
  template <class Visit>
  bool each_pair(key_hash hash, Visit visit) const noexcept {
    typename Layout::cells cells(params_.geometry, hash);
    std::uint64_t cell = cells.next();
    detail::word_pair bits{};
    detail::add_cell(&bits, cell % 128);
    for (std::uint32_t i = 1; i < cells.count(); ++i) {
      const std::uint64_t next = cells.next();
      if (next / 128 != cell / 128) {
        if (!visit(cell / 128, bits)) return false;
        bits = {};
      }
      detail::add_cell(&bits, next % 128);
      cell = next;
    }
    return visit(cell / 128, bits);
  }

  // Sets the key's bits; returns whether this call set at least one. Words that already have the bits are not written:
  // a cache line that threads only read stays in all their caches.
  bool set(key_hash hash) noexcept {
    const detail::atomic_words all = words();
    bool is_new = false;
    if constexpr (layout_by_hash64<Layout> && layout_with_kernels<Layout>) {
      // All words of the block at once. In a filter of one block, the numbers of cells start at 0, so with a fixed
      // number of probes the compiler knows each cell's word.
      std::array<detail::word_pair, Layout::block_bits / 128> bits{};
      typename Layout::cells cells({Layout::block_bits, params_.geometry.probes}, hash);
      for (std::uint32_t i = 0; i < cells.count(); ++i) detail::add_cell(bits.data(), cells.next());
      const std::uint64_t first = Layout::block_of(hash.hash64, bit_size() / Layout::block_bits) * bits.size();
      for (std::size_t i = 0; i < bits.size(); ++i) is_new |= all.set(first + i, bits[i]);
    } else {
      each_pair(hash, [&](std::uint64_t pair, detail::word_pair bits) {
        is_new |= all.set(pair, bits);
        return true;
      });
    }
    return is_new;
  }

  bool has(key_hash hash) const noexcept {
    const detail::atomic_words all = words();
    return each_pair(hash, [&](std::uint64_t pair, detail::word_pair bits) { return all.missing(pair, bits) == 0; });
  }

  // Whether a kernel finds all bits of the key set; false if it has to be tested word by word.
  bool has_at_once(key_hash hash) const noexcept {
    if constexpr (by_kernels) {
      // The compiler must not reuse an earlier answer: other threads insert.
      std::atomic_signal_fence(std::memory_order_seq_cst);
      return has_one<Layout>(storage_.data(), params_.geometry, hash);
    }
    return false;
  }

  void has_all(const hash_span& keys, std::uint64_t* bitmap) const noexcept {
    if constexpr (by_kernels || !layout_with_kernels<Layout>) {
      has_batch<Layout>(storage_.data(), params_.geometry, keys, bitmap);
    } else {
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (i % 64 == 0) bitmap[i / 64] = 0;
        bitmap[i / 64] |= std::uint64_t{has(keys.hash(i))} << (i % 64);
      }
    }
  }

  // Inserts keys in order. is_new is null or receives 1 or 0 per key. Returns the number of new keys.
  std::uint64_t set_all(const hash_span& keys, std::uint8_t* is_new) noexcept {
    std::uint64_t all_new = 0;
    for (std::size_t first = 0; first < keys.size(); first += fetched_ahead) {
      const hash_span group = keys.part(first, std::min(fetched_ahead, keys.size() - first));
      // Kernels fetch the cells of these keys and find those that need no write.
      std::uint64_t present = 0;
      if constexpr (by_kernels)
        has_all(group, &present);
      else
        prefetch(group);
      for (std::size_t i = 0; i < group.size(); ++i) {
        const bool fresh = (present >> i & 1) == 0 && set(group.hash(i));
        if (is_new != nullptr) is_new[first + i] = fresh ? 1 : 0;
        all_new += fresh ? 1 : 0;
      }
    }
    return all_new;
  }

  // Always inline: gcc drops a separate function, because prefetching has no effect that it sees.
  [[gnu::always_inline]] void prefetch(const hash_span& keys) const noexcept {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      typename Layout::cells cells(params_.geometry, keys.hash(i));
      std::uint64_t line = ~std::uint64_t{0};
      for (std::uint32_t c = 0; c < cells.count(); ++c) {
        const std::uint64_t cell = cells.next();
        if (cell / 512 != line) __builtin_prefetch(storage_.data() + cell / 8);
        line = cell / 512;
      }
    }
  }

  // In an untrusted file unused bits of the last byte may be set, so the count is limited to all bits.
  std::uint64_t ones() const noexcept {
    std::uint64_t all = 0;
    for (std::uint64_t i = 0; i < storage_.size() / sizeof(std::uint64_t); ++i) {
      all += static_cast<std::uint64_t>(std::popcount(words().load(i)));
    }
    return std::min(all, bit_size());
  }

  params params_;
  Hash hash_;
  sharded_counter new_keys_;
  bool count_is_estimate_ = false;
  heap_storage storage_;
};

}  // namespace bloomery
