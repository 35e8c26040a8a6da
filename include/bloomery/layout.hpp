// Layouts: rules that map a key's hash to cells, with the exact formulas for size and FPR.
//
// A layout is one type of the concept `layout`. Its `cells` is the definition: batches, SIMD kernels and Redis scripts
// are other implementations of it. Read layouts/split_block.hpp first, then layouts/classic.hpp. At run time,
// layout_facts has the properties of a layout: family, block, cells, probes. Code that treats layouts differently tests
// a property and never compares names.
#pragma once

#include <bloomery/detail/bits.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/detail/geometry.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/detail/key_hash.hpp>
#include <bloomery/detail/storage.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// Requirements on a layout L, for a geometry g. The layouts' headers document only what this contract leaves open.
///
/// - L::name  the name of the layout in files and options
/// - L::cells(g, hash)  the cells of a key, a pure function of g and hash: count() of them, returned one by one by
///   next(), all below g.bits. Cells of one key may be equal. A layout whose cells have more than one bit defines
///   L::cell_bits, numbers cells instead of bits, and implements all operations itself.
/// - L::hash_bits  optional: 64 states that the cells depend on hash64 only, which selects the default hash of text
/// - L::geometry_for(n, p)  the smallest geometry whose exact FPR at n keys is at most p. If the number of probes is
///   not fixed, it is chosen so that the size is minimal.
///     n  capacity, keys, at least 1
///     p  target FPR, a probability in (0, 1)
///     throws error  invalid_argument: n is 0, or p is outside (0, 1) or NaN;
///                   too_large: more than L::max_blocks blocks (classic: 2^63 bits) are needed
/// - L::check(g)  throws error unless g is a geometry of this layout
///     throws error  invalid_argument: bits is 0 or not a multiple of L::block_bits, or probes is not the fixed number
///                   of the layout (otherwise: outside 1 .. 255); too_large: more than L::max_blocks blocks
/// - L::expected_fpr(g, n)  the exact FPR at n distinct keys: the probability that a key that was never inserted is
///   reported. For a layout with B blocks, where r(i) is the FPR of a block with i keys:
///
///     f = sum over i of Binomial(i; n, 1/B) * r(i),    FPR = 1 - (1 - f) * (1 - c)^n
///
///   where c is the probability that two keys have equal cells because their hashes collide: 2^-64 unless the layout
///   says otherwise. All terms are positive, so the sum has no cancellation.
/// - L::keys_from_zeros(g, z)  the estimated number of distinct keys if z of C cells are 0; infinity for z = 0:
///
///     n = ln(z / C) / ln(1 - q / B)    q: the probability that a key sets a given cell of its block
template <class L>
concept layout = requires(const geometry& g, key_hash hash, typename L::cells cells, std::uint64_t n, double p) {
  { L::name } -> std::convertible_to<std::string_view>;
  typename L::cells;
  requires std::constructible_from<typename L::cells, const geometry&, key_hash>;
  { cells.count() } -> std::convertible_to<std::uint32_t>;
  { cells.next() } -> std::same_as<std::uint64_t>;
  { L::geometry_for(n, p) } -> std::same_as<geometry>;
  L::check(g);
  { L::expected_fpr(g, n) } -> std::same_as<double>;
  { L::keys_from_zeros(g, n) } -> std::same_as<double>;
};

/// Base of layouts: functions that follow from the contract.
template <class L>
class layout_base {
 public:
  /// geometry_for(n, p).bits
  static std::uint64_t bits_for(std::uint64_t capacity, double target_fpr) {
    return L::geometry_for(capacity, target_fpr).bits;
  }
};

/// Bits per cell of layout L: 1 unless the layout defines cell_bits.
template <class L>
constexpr std::uint32_t cell_bits_in() noexcept {
  if constexpr (requires { L::cell_bits; })
    return L::cell_bits;
  else
    return 1;
}

/// The byte that contains this cell of layout L, or the first byte of a larger cell.
template <class L>
constexpr std::uint64_t byte_of_cell(std::uint64_t cell) noexcept {
  return cell * cell_bits_in<L>() >> 3;
}

/// Sets the cells of one key; true if at least one was clear, so the key is certainly new.
template <layout L>
bool insert_cells(std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept {
  typename L::cells cells(g, hash);
  bool is_new = false;
  for (std::uint32_t i = 0; i < cells.count(); ++i) is_new |= set_bit(bytes, cells.next());
  return is_new;
}

/// Whether all cells of one key are set. False: the key is certainly absent.
template <layout L>
bool has_cells(const std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept {
  typename L::cells cells(g, hash);
  for (std::uint32_t i = 0; i < cells.count(); ++i) {
    if (!test_bit(bytes, cells.next())) return false;
  }
  return true;
}

/// How a layout maps hash64 to a block number.
enum class block_rule {
  upper_half,     ///< ((hash64 >> 32) * blocks) >> 32, as Apache Parquet does
  multiply_high,  ///< hi64(hash64 * blocks)
};

/// Base of layouts with blocks of `BlockBits` bits that are selected by block_rule::multiply_high.
template <std::uint32_t BlockBits>
class multiply_high_blocks {
 public:
  static constexpr std::uint32_t block_bits = BlockBits;
  static constexpr std::uint64_t max_blocks = std::uint64_t{1} << 40;

  /// The block of a key: hi64(hash64 * blocks), below `blocks`.
  static constexpr std::uint64_t block_of(std::uint64_t hash64, std::uint64_t blocks) noexcept {
    return multiply_high(hash64, blocks);
  }
};

/// A layout with `static constexpr block_rule blocks_by`. It reads hash64 only, and all cells of a key are in the block
/// that the rule selects; a block has block_bits bits, a whole number of bytes. So keys can be partitioned by block
/// before they are inserted.
template <class L>
concept layout_by_hash64 = layout<L> && requires {
  { L::blocks_by } -> std::convertible_to<block_rule>;
  { L::block_bits } -> std::convertible_to<std::uint32_t>;
};

/// A layout with its own kernels. Other layouts use the generic loops below.
template <class L>
concept layout_with_kernels = layout<L> &&
    requires(std::uint8_t* bytes, const geometry& g, key_hash hash, const hash_span& keys, std::uint8_t* is_new,
             std::uint64_t* bitmap) {
  { L::insert_one(bytes, g, hash) } -> std::same_as<bool>;
  { L::has_one(bytes, g, hash) } -> std::same_as<bool>;
  { L::insert_batch(bytes, g, keys, is_new) } -> std::same_as<std::uint64_t>;
  L::has_batch(bytes, g, keys, bitmap);
};

/// The result of removing a key.
enum class removal : std::uint8_t {
  not_found,  ///< the key was certainly absent; nothing changed
  removed,    ///< one copy of the key was removed, or of keys with the same cells
};

/// Updates the counts after one removal: one copy less, or one refusal. More copies may be removed than were inserted:
/// false positives, and keys whose counters are saturated.
inline void count_removal(key_counts& counts, removal result) noexcept {
  if (result == removal::not_found)
    ++counts.refused_removals;
  else if (counts.inserted > 0)
    --counts.inserted;
}

/// A layout that supports removal. It counts the copies of keys, so every insert changes bytes.
template <class L>
concept layout_with_removal = layout_with_kernels<L> &&
    requires(std::uint8_t* bytes, std::span<std::uint8_t> into, std::span<const std::uint8_t> from, const geometry& g,
             key_hash hash, const hash_span& keys, removal* results) {
  { L::remove_one(bytes, g, hash) } -> std::same_as<removal>;
  { L::remove_batch(bytes, g, keys, results) } -> std::same_as<std::uint64_t>;
  { L::cells_used(from) } -> std::same_as<std::uint64_t>;
  { L::copies_in(g, from) } -> std::same_as<double>;
  L::merge_bytes(into, from);
};

/// Inserts one key. True: the key is certainly new.
template <layout L>
bool insert_one(std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept {
  if constexpr (layout_with_kernels<L>) return L::insert_one(bytes, g, hash);
  return insert_cells<L>(bytes, g, hash);
}

/// Looks up one key. False: the key is certainly absent.
template <layout L>
bool has_one(const std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept {
  if constexpr (layout_with_kernels<L>) return L::has_one(bytes, g, hash);
  return has_cells<L>(bytes, g, hash);
}

/// Keys whose cells are prefetched while the same number of earlier keys is processed.
inline constexpr std::size_t fetched_together = 16;

/// Cells per key that a lookup reads first. At a fill ratio of 1/2, they reject seven of eight absent keys.
inline constexpr std::uint32_t cells_looked_ahead = 3;

/// Filters up to this size (512 KiB) fit into a core's private cache on most processors. Layouts without kernels
/// prefetch from twice this size on, because loads from the caches overlap enough.
inline constexpr std::uint64_t near_bits = std::uint64_t{8} << 19;

/// Consecutive keys of a batch, with their first cells prefetched.
template <layout L>
class fetched_group {
 public:
  /// Calls work(i, hash) for each key i, prefetching the cells of the next group while processing one.
  template <class Work>
  static void each(const std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint32_t most_cells,
                   Work work) noexcept {
    if (g.bits <= 2 * near_bits) {
      for (std::size_t i = 0; i < keys.size(); ++i) work(i, keys.hash(i));
      return;
    }
    if (keys.size() == 0) return;
    fetched_group groups[2];
    groups[0].fetch(bytes, g, keys, 0, most_cells);
    for (std::size_t first = 0, turn = 0; first < keys.size(); first += fetched_together, turn = 1 - turn) {
      const std::size_t next = first + fetched_together;
      if (next < keys.size()) groups[1 - turn].fetch(bytes, g, keys, next, most_cells);
      const fetched_group& here = groups[turn];
      for (std::size_t i = 0; i < here.size_; ++i) work(first + i, here.hashes_[i]);
    }
  }

 private:
  // Takes up to fetched_together keys from `first` on and prefetches at most `most_cells` cells of each.
  void fetch(const std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::size_t first,
             std::uint32_t most_cells) noexcept {
    size_ = keys.size() - first < fetched_together ? keys.size() - first : fetched_together;
    for (std::size_t i = 0; i < size_; ++i) {
      hashes_[i] = keys.hash(first + i);
      typename L::cells cells(g, hashes_[i]);
      const std::uint32_t ahead = cells.count() < most_cells ? cells.count() : most_cells;
      for (std::uint32_t c = 0; c < ahead; ++c) __builtin_prefetch(bytes + byte_of_cell<L>(cells.next()), 0, 3);
    }
  }

  std::array<key_hash, fetched_together> hashes_;
  std::size_t size_ = 0;
};

/// Lookups of 64 keys, which is one word of answers, in steps that hardly branch on the outcome of a probe:
///
///   stage   hash the keys; in a large filter, prefetch the first cells of each
///   sift    read the first cells of each key, which rejects most absent keys
///   answer  read the other cells of the remaining keys, prefetched if the filter is large
template <layout L>
class staged_lookups {
 public:
  staged_lookups(const std::uint8_t* bytes, const geometry& g) noexcept
      : bytes_(bytes), geometry_(g), large_(g.bits > 2 * near_bits) {}

  /// Takes up to 64 keys from `first` on.
  void stage(const hash_span& keys, std::size_t first) noexcept {
    size_ = keys.size() - first < hashes_.size() ? keys.size() - first : hashes_.size();
    for (std::size_t i = 0; i < size_; ++i) hashes_[i] = keys.hash(first + i);
    if (!large_) return;
    for (std::size_t i = 0; i < size_; ++i) prefetch(hashes_[i], 0, cells_looked_ahead);
  }

  /// Bit i: whether key i may be present.
  std::uint64_t answers() const noexcept {
    std::array<std::uint8_t, 64> remaining;
    std::size_t count = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      remaining[count] = static_cast<std::uint8_t>(i);
      typename L::cells cells(geometry_, hashes_[i]);
      count += first_set(cells) ? 1u : 0u;
    }
    if (large_) {
      for (std::size_t i = 0; i < count; ++i) prefetch(hashes_[remaining[i]], cells_looked_ahead, most_prefetched);
    }
    std::uint64_t answers = 0;
    for (std::size_t i = 0; i < count; ++i) {
      answers |= std::uint64_t{others_set(hashes_[remaining[i]])} << remaining[i];
    }
    return answers;
  }

 private:
  static constexpr std::uint32_t at_once = 8;           // probes between two branches
  static constexpr std::uint32_t most_prefetched = 16;  // cells per key

  static std::uint32_t lesser(std::uint32_t a, std::uint32_t b) noexcept { return a < b ? a : b; }

  // Skips cells, and prefetches those that follow up to number `end`.
  void prefetch(key_hash hash, std::uint32_t skipped, std::uint32_t end) const noexcept {
    typename L::cells cells(geometry_, hash);
    const std::uint32_t last = lesser(cells.count(), end);
    for (std::uint32_t c = 0; c < last; ++c) {
      const std::uint64_t cell = cells.next();
      if (c >= skipped) __builtin_prefetch(bytes_ + byte_of_cell<L>(cell), 0, 3);
    }
  }

  // Whether the next `count` cells are set.
  bool next_set(typename L::cells& cells, std::uint32_t count) const noexcept {
    std::uint32_t all = 1;
    for (std::uint32_t c = 0; c < count; ++c) {
      const std::uint64_t cell = cells.next();
      // Atomic for concurrent_filter, where other threads may insert meanwhile; it costs nothing.
      all &= std::uint32_t{__atomic_load_n(bytes_ + (cell >> 3), __ATOMIC_RELAXED)} >> (cell & 7);
    }
    return (all & 1) != 0;
  }

  // A constant number of cells, unless a key has fewer: then the compiler unrolls the loop.
  bool first_set(typename L::cells& cells) const noexcept {
    if (cells.count() < cells_looked_ahead) [[unlikely]]
      return next_set(cells, cells.count());
    return next_set(cells, cells_looked_ahead);
  }

  // Whether the cells after the first ones are set.
  bool others_set(key_hash hash) const noexcept {
    typename L::cells cells(geometry_, hash);
    const std::uint32_t count = cells.count();
    if (count <= cells_looked_ahead) [[unlikely]]
      return true;
    for (std::uint32_t c = 0; c < cells_looked_ahead; ++c) cells.next();
    for (std::uint32_t read = cells_looked_ahead; read < count; read += at_once) {
      if (!next_set(cells, lesser(count - read, at_once))) return false;
    }
    return true;
  }

  const std::uint8_t* bytes_;
  geometry geometry_;
  bool large_;
  std::size_t size_ = 0;
  std::array<key_hash, 64> hashes_;
};

/// Inserts keys in order. is_new is null or receives 1 (certainly new) or 0 per key. Returns the number of new keys.
template <layout L>
std::uint64_t insert_batch(std::uint8_t* bytes, const geometry& g, const hash_span& keys,
                           std::uint8_t* is_new) noexcept {
  if constexpr (layout_with_kernels<L>) {
    return L::insert_batch(bytes, g, keys, is_new);
  } else {
    std::uint64_t all_new = 0;
    fetched_group<L>::each(bytes, g, keys, max_probes, [&](std::size_t i, key_hash hash) {
      const bool fresh = insert_cells<L>(bytes, g, hash);
      if (is_new != nullptr) is_new[i] = fresh ? 1 : 0;
      all_new += fresh ? 1 : 0;
    });
    return all_new;
  }
}

/// Looks up keys: bit i%64 of bitmap[i/64] is the answer for key i; unused bits of the last word are 0.
template <layout L>
void has_batch(const std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint64_t* bitmap) noexcept {
  if constexpr (layout_with_kernels<L>) {
    L::has_batch(bytes, g, keys, bitmap);
  } else {
    std::array<staged_lookups<L>, 2> groups{staged_lookups<L>(bytes, g), staged_lookups<L>(bytes, g)};
    if (keys.size() > 0) groups[0].stage(keys, 0);
    for (std::size_t word = 0; 64 * word < keys.size(); ++word) {
      if (64 * (word + 1) < keys.size()) groups[(word + 1) % 2].stage(keys, 64 * (word + 1));
      bitmap[word] = groups[word % 2].answers();
    }
  }
}

/// The target of a bulk insert, with the layout erased.
struct bulk_target {
  std::uint8_t* bytes;
  bloomery::geometry geometry;
  std::uint32_t block_bits;
  block_rule blocks_by;
  std::uint64_t (*insert)(std::uint8_t* bytes, const bloomery::geometry& g, const hash_span& keys,
                          std::uint8_t* is_new);
};

/// The bulk target of a filter of layout L.
template <layout_by_hash64 L>
bulk_target bulk_target_of(std::uint8_t* bytes, const geometry& g) {
  return {bytes, g, L::block_bits, L::blocks_by, insert_batch<L>};
}

/// Families of filters by the operations that they support.
enum class family : std::uint8_t {
  plain,           ///< insert and look up; the layouts of layout_names(), and all schemes
  counting,        ///< also remove: layout "counting"
  sliding_window,  ///< sliding-window filters: layouts "sliding" and "sliding64"
  static_set,      ///< static filters, built once from all keys: layouts "fuse1" to "fuse32", "ribbon1" to "ribbon32"
  quotient,        ///< also remove, with a limited number of keys: layouts "quotient4" to "quotient24"
};

/// "plain", "counting", "windowed", "sealed" or "quotient".
const char* name_of(bloomery::family f) noexcept;

/// The structures of static filters.
enum class static_structure : std::uint8_t {
  fuse,    ///< layouts fuse1 to fuse32: 1.13 w bits per key, faster lookups
  ribbon,  ///< layouts ribbon1 to ribbon32: 1.01 w bits per key
};

/// The properties shared by all filters of a layout.
struct layout_facts {
  std::string_view name;
  bloomery::family family = bloomery::family::plain;
  std::uint32_t block_bits = 0;          ///< bits of the block that contains all cells of a key; 0: no blocks
  std::uint64_t max_blocks = 0;          ///< maximum number of blocks; without blocks the maximum number of bits
  std::uint32_t cell_bits = 1;           ///< bits of a cell
  std::uint32_t lanes = 0;               ///< words of a block, one probe in each; 0: probes are independent
  std::uint32_t fingerprint_bits = 0;    ///< of static filters; of the remainders of quotient filters
  std::uint32_t most_lines = 0;          ///< cache lines that a lookup in these usually reads at most
  std::uint32_t fixed_probes = 0;        ///< probes of every filter of the layout; 0: the user chooses k
  std::uint32_t most_chosen_probes = 0;  ///< maximum number of probes that geometry_for() chooses
  std::uint32_t hash_bits = 64;          ///< bits of a key's hash that the layout reads: 64 or 128
  bool may_be_shared = false;            ///< supported by redis_filter: all cells of a key in one block of 64 bytes

  /// Sizes of filters are multiples of this number of bits.
  constexpr std::uint64_t unit_bits() const noexcept { return block_bits == 0 ? 1 : block_bits; }
  constexpr bool user_chooses_probes() const noexcept { return fixed_probes == 0; }

  friend bool operator==(const layout_facts&, const layout_facts&) = default;
};

/// The facts of the layout with this name, of any family; null if there is none.
///
/// Example:
///     assert(find_layout_facts("split_block512")->fixed_probes == 8);
///     assert(find_layout_facts("classic")->user_chooses_probes());
///     assert(find_layout_facts("split_block512")->hash_bits == 64 && find_layout_facts("classic")->hash_bits == 128);
///     assert(find_layout_facts("") == nullptr);
const layout_facts* find_layout_facts(std::string_view name) noexcept;

/// The layouts of a family: plain ones from the fastest to the slowest, in other families the default first.
///
/// Example:
///     assert(layouts_of(family::plain).front().name == "split_block");
///     assert(layouts_of(family::sliding_window).front().name == "sliding");
std::vector<layout_facts> layouts_of(bloomery::family f);

}  // namespace bloomery
