// sliding and sliding64: the layouts of sliding-window filters (sliding_window_filter.hpp). A cell is a byte with one
// bit for each of 8 generations of keys, so one pass over a key's cells looks up all generations.
//
//   bytes:   512 of state | block 0 | block 1 | ...
//   block:   stamp, 4 bytes | cells, a byte each                 sliding: 512 bytes, 508 cells; sliding64: 64 and 60
//   cell:    bit j: a key of the generation with epoch mod 8 = j has this cell
//
//   block = hi64(hash64 * blocks)
//   x = (2 * hash64 + 1) * multiplier  (mod 2^64), which is odd: see probe_sequence.hpp
//   k times:  cell = ((x >> 32) * cells) >> 32;  x = x * step  (mod 2^64)
//
// The stamp is the epoch, mod 2^32, at which the block was last written. It shows which generations have expired since:
// readers ignore their bits, writers clear them. So starting a new generation only changes the epoch number. A block
// may be ahead of the state, after a copy made while a writer was active or a power failure. It keeps its stamp and all
// bits until its epoch is reached.
#pragma once

#include <bloomery/detail/bits.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/detail/geometry.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/detail/key_hash.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/probe_sequence.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

/// Number of generations: the newest, which takes new keys, and 7 full ones, which together cover a window.
inline constexpr std::uint32_t window_generations = 8;
inline constexpr std::uint32_t window_slices = 7;

/// A number for each generation; the index is epoch mod 8.
using keys_by_generation = std::array<std::uint64_t, window_generations>;

/// The generations with which the FPR is highest if at most `capacity` distinct keys come in any window.
///
/// All keys may come in one slice of time. Any seven slices are within a window, so the cells of seven generations are
/// set by `capacity` keys at most, and those of the eighth by as many others: the FPR is at most that of two
/// generations with all keys each. Keys that recur set the same cells again in another generation, which adds nothing.
/// A slice of insertions holds no more keys than its length, and more generations are needed to hold the same number of
/// keys.
///
/// @param slice_insertions  the length of a slice, in insertions; 0 for windows of time
///
/// Example:
///     assert(fullest_generations(7000, 0)[1] == 7000 && fullest_generations(7000, 0)[2] == 0);  // of a day
///     assert(fullest_generations(7000, 1000)[7] == 1000);  // of the last 7,000 insertions
constexpr keys_by_generation fullest_generations(std::uint64_t capacity, std::uint64_t slice_insertions) noexcept {
  const std::uint64_t seventh = capacity / window_slices + (capacity % window_slices != 0 ? 1 : 0);
  const std::uint64_t most = slice_insertions == 0 ? capacity : std::max(seventh, std::min(capacity, slice_insertions));
  keys_by_generation keys{};
  if (most == 0) return keys;
  // Slices of so few insertions that each may be full of keys.
  const bool all = slice_insertions != 0 && most == seventh;
  const std::uint64_t full = all ? window_generations : std::min<std::uint64_t>(2 * ((capacity - 1) / most + 1), 8);
  for (std::uint64_t i = 0; i < full; ++i) keys[i] = most;
  return keys;
}

/// Bytes before the first block: the state of the generations (detail/generations.hpp).
inline constexpr std::uint64_t window_state_bytes = 512;

/// The state before the blocks of a sliding-window filter, in memory and in files.
struct window_state {
  std::uint64_t newest = 0;      ///< epoch of the newest generation
  std::uint64_t insertions = 0;  ///< keys inserted so far, each copy
  keys_by_generation keys{};     ///< keys that were new to their generation when inserted

  static window_state of(const std::uint8_t* bytes) noexcept {
    window_state s;
    std::memcpy(&s, bytes, sizeof s);
    return s;
  }

  /// The state at a later epoch: generations that have expired by then have no keys.
  window_state at(std::uint64_t epoch) const noexcept;

  friend bool operator==(const window_state&, const window_state&) = default;
};
static_assert(sizeof(window_state) == 80);

/// Maximum number of epochs by which a block may be ahead of a reader: because a writer of the same file has continued,
/// or the state is older than the block, after a copy made while a writer was active or a power failure.
inline constexpr std::uint32_t epochs_ahead = 1u << 16;

/// Bit mask of the generations in a block that have not expired: all but those of the epochs after `stamp` up to
/// `epoch`, both mod 2^32. All generations if the block is ahead: what its writer cleared has expired for all readers.
constexpr std::uint8_t live_generations(std::uint32_t stamp, std::uint32_t epoch) noexcept {
  if (stamp - epoch < epochs_ahead) return 0xFF;
  const std::uint32_t passed = epoch - stamp;
  if (passed >= window_generations) return 0;
  const auto run_out = static_cast<std::uint8_t>((1u << passed) - 1);
  return static_cast<std::uint8_t>(~std::rotl(run_out, static_cast<int>((stamp + 1) % window_generations)));
}

/// The result of inserting keys.
struct window_insertions {
  std::uint64_t unseen = 0;             ///< keys that were in no generation: certainly new in the window
  std::uint64_t new_to_generation = 0;  ///< keys that were not in the newest generation

  friend bool operator==(const window_insertions&, const window_insertions&) = default;
};

/// Statistics of the cells of a sliding-window filter at an epoch.
struct window_cells {
  keys_by_generation ones{};  ///< set cells of each generation; 0 if it has expired
  double current_fpr = 0;     ///< probability that all cells of a random absent key are set in one generation
};

namespace layouts {

/// A layout with blocks of `Bytes` bytes. `epoch` is the epoch of the newest generation, mod 2^32; it never decreases.
template <std::uint32_t Bytes>
class sliding_blocks {
 public:
  static constexpr std::uint32_t block_bytes = Bytes;
  static constexpr std::uint32_t block_bits = 8 * Bytes;
  static constexpr std::uint32_t hash_bits = 64;
  static constexpr std::uint32_t stamp_bytes = 4;
  static constexpr std::uint32_t cells_of_block = Bytes - stamp_bytes;
  static constexpr std::uint64_t max_blocks = std::uint64_t{1} << 40;

  /// Maximum number of probes that geometry_for() chooses.
  static constexpr std::uint32_t most_chosen_probes = 32;

  static constexpr std::uint64_t blocks_of(const geometry& g) noexcept {
    return (g.bits / 8 - window_state_bytes) / Bytes;
  }

  static constexpr geometry of_blocks(std::uint64_t blocks, std::uint32_t probes) noexcept {
    return {8 * (window_state_bytes + blocks * Bytes), probes};
  }

  /// Byte offset of the block of a key.
  static constexpr std::uint64_t block_at(const geometry& g, std::uint64_t hash64) noexcept {
    return window_state_bytes + multiply_high(hash64, blocks_of(g)) * Bytes;
  }

  /// The cell of a probe in its block, for the state x of the probe, as the index of the cell's first bit.
  static constexpr std::uint64_t bit_in_block(std::uint64_t x) noexcept { return std::uint64_t{8} * position(x); }

  /// The k cells of a key, each as the index of its first bit.
  class cells : public probe_sequence::cells_from<bit_in_block> {
   public:
    constexpr cells(const geometry& g, key_hash hash) noexcept
        : cells::cells_from(8 * (block_at(g, hash.hash64) + stamp_bytes), hash.hash64, g.probes) {}
  };

  /// Inserts a key into the newest generation. Returns the bit mask of the generations that had it before.
  static std::uint8_t insert_into(std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes,
                                  std::uint32_t epoch) noexcept {
    bring_to(block, epoch);
    const auto newest = static_cast<std::uint8_t>(1u << epoch % window_generations);
    std::uint8_t* const first = block + stamp_bytes;
    std::uint8_t had = 0xFF;
    each_position(hash64, 0, probes, [&](std::uint32_t at) {
      had &= first[at];
      first[at] |= newest;
    });
    return had;
  }

  /// The bit mask of the generations that have a key; 0: the key is in no generation.
  static std::uint8_t generations_with(const std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes,
                                       std::uint32_t epoch) noexcept {
    const std::uint8_t* const first = block + stamp_bytes;
    std::uint8_t have = live_generations(stamp_of(block), epoch);
    const auto look_up = [&](std::uint32_t at) { have &= first[at]; };
    // At a fill ratio of 1/2, five cells reject four of five absent keys: one predictable branch instead of nine.
    const std::uint32_t some = probes < 5 ? probes : 5;
    each_position(hash64, 0, some, look_up);
    if (have == 0) return 0;
    each_position(hash64, some, probes, look_up);
    return have;
  }

  /// Inserts keys in order into the generation of `epoch`. is_new is null or receives 1 (certainly not in the window)
  /// or 0 per key.
  static window_insertions insert_keys(std::uint8_t* bytes, const geometry& g, const hash_span& keys,
                                       std::uint32_t epoch, std::uint8_t* is_new) noexcept;

  /// Looks up keys: bit i%64 of bitmap[i/64] is the answer for key i; unused bits of the last word are 0.
  static void look_up_keys(const std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint32_t epoch,
                           std::uint64_t* bitmap) noexcept;

  /// Merges the cells of other bytes of the same geometry, generation by generation, at `epoch`, which is not before
  /// the newest epoch of either. If both versions of a block are ahead, the later stamp stays.
  static void unite(std::uint8_t* bytes, const std::uint8_t* other, const geometry& g, std::uint32_t epoch) noexcept;

  /// Counts the set cells of each generation that has not expired at `epoch`, and computes the current FPR: the mean
  /// over blocks of
  ///
  ///   sum over non-empty sets S of generations of (-1)^(|S|+1) (c_S / cells)^k,   c_S cells have all bits of S
  ///
  /// By inclusion and exclusion this is the probability that k random cells of the block are all set in one generation.
  static window_cells scan_cells(const std::uint8_t* bytes, const geometry& g, std::uint32_t epoch);

  /// As in the concept `layout`, with n keys per window, in the worst case of expected_fpr().
  static geometry geometry_for(std::uint64_t capacity, double target_fpr);

  /// The smallest geometry that keeps the target FPR with these numbers of keys in its generations.
  /// @throws error as geometry_for(capacity, target_fpr)
  static geometry geometry_for(const keys_by_generation& fullest, double target_fpr);

  /// @throws error invalid_argument: bits is not 8 * (512 + blocks * Bytes) with at least one block, or probes is
  ///               outside 1 .. 255; too_large: more than 2^40 blocks
  static void check(const geometry& g);

  /// The exact FPR in the worst case: 8 generations with ceil(keys / 7) distinct keys each.
  static double expected_fpr(const geometry& g, std::uint64_t keys);

  /// The exact FPR if generation j has n_j distinct keys:
  ///
  ///   f = sum over d of D(d) * (1 - product over j of (1 - sum over i of Binomial(i; n_j, 1/B) * A(d, i)))
  ///
  /// D(d): probability that the k probes of a key select d different cells; A(d, i): probability that i keys set d
  /// given cells of a block. All terms are positive. Result 1 - (1 - f) * (1 - 2^-64)^n. Keys in several generations
  /// make the FPR lower.
  static double rate_of(const geometry& g, std::span<const std::uint64_t> keys);

 private:
  static constexpr std::uint32_t position(std::uint64_t x) noexcept {
    return static_cast<std::uint32_t>((x >> 32) * cells_of_block >> 32);
  }

  // multiplier * step^i mod 2^64: multiplied by 2 hash64 + 1 this is x of the i-th cell, without computing the others.
  static constexpr auto powers = [] {
    std::array<std::uint64_t, 16> result{probe_sequence::multiplier};
    for (std::size_t i = 1; i < result.size(); ++i) result[i] = result[i - 1] * probe_sequence::step;
    return result;
  }();

  template <class Work>
  static void each_position(std::uint64_t hash64, std::uint32_t from, std::uint32_t to, Work work) noexcept {
    const std::uint64_t odd = probe_sequence::odd_of(hash64);
    std::uint32_t i = from;
    for (; i < to && i < powers.size(); ++i) work(position(odd * powers[i]));
    if (i >= to) [[likely]]
      return;
    std::uint64_t x = odd * powers.back();
    for (std::uint32_t reached = powers.size() - 1; reached < i; ++reached) x *= probe_sequence::step;
    for (; i < to; ++i, x *= probe_sequence::step) work(position(x));
  }

  static std::uint32_t stamp_of(const std::uint8_t* block) noexcept {
    std::uint32_t stamp;
    std::memcpy(&stamp, block, sizeof stamp);
    return stamp;
  }

  // Clears the expired generations, then updates the stamp; a process killed in between leaves a valid block. A block
  // that is ahead is left unchanged: its keys are kept, and keys inserted now expire with their generation after the
  // stamp.
  static void bring_to(std::uint8_t* block, std::uint32_t epoch) noexcept {
    const std::uint32_t stamp = stamp_of(block);
    if (stamp == epoch || is_ahead(block, epoch)) [[likely]]
      return;
    keep_generations(block, live_generations(stamp, epoch));
    std::atomic_signal_fence(std::memory_order_seq_cst);
    std::memcpy(block, &epoch, sizeof epoch);
  }

  // A block without set cells is never ahead: shortly before epoch 2^32 a new block would only seem to be.
  static bool is_ahead(const std::uint8_t* block, std::uint32_t epoch) noexcept {
    const std::uint32_t ahead = stamp_of(block) - epoch;
    return ahead != 0 && ahead < epochs_ahead &&
           std::any_of(block + stamp_bytes, block + Bytes, [](std::uint8_t cell) { return cell != 0; });
  }

  static void keep_generations(std::uint8_t* block, std::uint8_t generations) noexcept {
    const std::uint64_t kept = std::uint64_t{0x0101010101010101} * generations;
    std::uint64_t mask = kept | 0xFFFFFFFF;  // the first word contains the stamp
    for (std::uint32_t at = 0; at < Bytes; at += 8, mask = kept) {
      std::uint64_t word;
      std::memcpy(&word, block + at, sizeof word);
      word &= mask;
      std::memcpy(block + at, &word, sizeof word);
    }
  }
};

extern template class sliding_blocks<512>;
extern template class sliding_blocks<64>;

/// Blocks of 512 bytes, that is 8 cache lines of one page: least memory, 17.5 bits per key of a window at 1%.
///
/// Example:
///     const geometry g = layouts::sliding::geometry_for(1'000'000, 0.01);
///     assert(g.bits < 17'600'000);
///     assert(layouts::sliding::expected_fpr(g, 1'000'000) <= 0.01);
class sliding : public sliding_blocks<512> {
 public:
  static constexpr std::string_view name = "sliding";
};

/// Blocks of one cache line: a lookup reads a single cache line, with 1.5 times the memory of sliding.
///
/// Example:
///     const geometry g = layouts::sliding64::geometry_for(1'000'000, 0.01);
///     assert(g.bits > layouts::sliding::geometry_for(1'000'000, 0.01).bits);
class sliding64 : public sliding_blocks<64> {
 public:
  static constexpr std::string_view name = "sliding64";
};

}  // namespace layouts

/// A layout whose cells have one bit per generation: sliding or sliding64.
template <class L>
concept sliding_window_layout = std::derived_from<L, layouts::sliding_blocks<L::block_bytes>>;

}  // namespace bloomery
