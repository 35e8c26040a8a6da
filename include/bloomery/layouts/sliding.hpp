// sliding and sliding64: the cells of filters that forget, sliding_window_filter.hpp. Cells are bytes, a bit for each
// of 8 generations of keys, so that one pass over a key's cells asks all generations at once.
//
//   bytes:   512 of state | block 0 | block 1 | ...
//   block:   stamp, 4 bytes | cells, a byte each                 sliding: 512 bytes, 508 cells; sliding64: 64 and 60
//   cell:    bit j: a key of the generation in lane j, that of the epochs e with e mod 8 = j, has this cell
//
//   block = hi64(hash64 * blocks)
//   x = (2 * hash64 + 1) * multiplier  (mod 2^64), which is odd: see probe_sequence.hpp
//   k times:  cell = ((x >> 32) * cells) >> 32;  x = x * step  (mod 2^64)
//
// The stamp is the epoch, mod 2^32, at which the block was last written. Whoever comes later knows by it which lanes
// have run out since: a reader leaves them out, a writer clears them. So a new generation begins with nothing but its
// number. A block that is ahead (a copy made beside a writer, a power failure) keeps its stamp and all lanes until its
// epoch comes.
#pragma once

#include <bloomery/detail/bits.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/export.hpp>
#include <bloomery/geometry.hpp>
#include <bloomery/key_hash.hpp>
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

/// Generations of keys that are held: the newest, which still takes keys, and 7 full ones, which together are a window.
inline constexpr std::uint32_t window_generations = 8;
inline constexpr std::uint32_t window_parts = 7;

/// Bytes before the first block: what a windowed filter knows of its generations (generations.hpp).
inline constexpr std::uint64_t window_state_bytes = 512;

/// Keys of each generation, by lane.
using keys_by_generation = std::array<std::uint64_t, window_generations>;

/// What stands before the blocks of a windowed filter, in memory and in files.
struct window_state {
  std::uint64_t newest = 0;      ///< epoch of the newest generation
  std::uint64_t insertions = 0;  ///< keys inserted so far, each copy
  keys_by_generation keys{};     ///< keys that were new to their generation when they came, by lane

  static window_state of(const std::uint8_t* bytes) noexcept {
    window_state s;
    std::memcpy(&s, bytes, sizeof s);
    return s;
  }

  /// The same at a later epoch: generations that have run out by then have no keys.
  window_state at(std::uint64_t epoch) const noexcept;

  friend bool operator==(const window_state&, const window_state&) = default;
};
static_assert(sizeof(window_state) == 80);

/// Epochs by which a block may be ahead of who looks at it: a writer of the same file went on meanwhile, or the state
/// is older than the block, because both were copied beside a writer or the power failed.
inline constexpr std::uint32_t epochs_ahead = 1u << 16;

/// The lanes of a block that tell something: all but those of the epochs after `stamp` up to `epoch`. Both are mod
/// 2^32. All of a block that is ahead: what it has forgotten has run out for everybody.
constexpr std::uint8_t live_generations(std::uint32_t stamp, std::uint32_t epoch) noexcept {
  if (stamp - epoch < epochs_ahead) return 0xFF;
  const std::uint32_t passed = epoch - stamp;
  if (passed >= window_generations) return 0;
  const auto run_out = static_cast<std::uint8_t>((1u << passed) - 1);
  return static_cast<std::uint8_t>(~std::rotl(run_out, static_cast<int>((stamp + 1) % window_generations)));
}

/// What came of inserting keys.
struct window_insertions {
  std::uint64_t unseen = 0;             ///< in no generation before: certainly new in the window
  std::uint64_t new_to_generation = 0;  ///< not in the newest generation before

  friend bool operator==(const window_insertions&, const window_insertions&) = default;
};

/// What a pass over the cells of a windowed filter tells, as of an epoch.
struct window_cells {
  keys_by_generation ones{};  ///< cells set, by lane; 0 in lanes that have run out
  double current_fpr = 0;     ///< that a random absent key finds all its cells in one of the generations
};

namespace layouts {

/// Blocks of `Bytes` bytes. An epoch is that of the newest generation, mod 2^32; it never falls.
template <std::uint32_t Bytes>
class sliding_blocks {
 public:
  static constexpr std::uint32_t block_bytes = Bytes;
  static constexpr std::uint32_t block_bits = 8 * Bytes;
  static constexpr std::uint32_t stamp_bytes = 4;
  static constexpr std::uint32_t cells_of_block = Bytes - stamp_bytes;
  static constexpr std::uint64_t max_blocks = std::uint64_t{1} << 40;
  static constexpr std::uint64_t multiplier = probe_sequence::multiplier;
  static constexpr std::uint64_t step = probe_sequence::step;

  /// The most probes that geometry_for() chooses.
  static constexpr std::uint32_t most_chosen_probes = 32;

  static constexpr std::uint64_t blocks_of(const geometry& g) noexcept {
    return (g.bits / 8 - window_state_bytes) / Bytes;
  }

  static constexpr geometry of_blocks(std::uint64_t blocks, std::uint32_t probes) noexcept {
    return {8 * (window_state_bytes + blocks * Bytes), probes};
  }

  /// Where the block of a key begins, in bytes.
  static constexpr std::uint64_t block_at(const geometry& g, std::uint64_t hash64) noexcept {
    return window_state_bytes + multiply_high(hash64, blocks_of(g)) * Bytes;
  }

  /// The k cells of a key, each as the number of its first bit; two of them may be equal.
  class cells {
   public:
    constexpr cells(const geometry& g, key_hash hash) noexcept
        : first_(block_at(g, hash.hash64) + stamp_bytes), x_(probe_sequence::first(hash.hash64)), count_(g.probes) {}
    constexpr std::uint32_t count() const noexcept { return count_; }
    constexpr std::uint64_t next() noexcept {
      const std::uint64_t cell = first_ + position(x_);
      x_ *= step;
      return 8 * cell;
    }

   private:
    std::uint64_t first_;
    std::uint64_t x_;
    std::uint32_t count_;
  };

  /// Writes a key to the newest generation, whatever others say of it. Returns the lanes that had it before.
  static std::uint8_t insert_into(std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes,
                                  std::uint32_t epoch) noexcept {
    bring_to(block, epoch);
    const auto lane = static_cast<std::uint8_t>(1u << epoch % window_generations);
    std::uint8_t* const first = block + stamp_bytes;
    std::uint8_t had = 0xFF;
    each_position(hash64, 0, probes, [&](std::uint32_t at) {
      had &= first[at];
      first[at] |= lane;
    });
    return had;
  }

  /// The lanes that have a key; 0: it is in no generation.
  static std::uint8_t generations_with(const std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes,
                                       std::uint32_t epoch) noexcept {
    const std::uint8_t* const first = block + stamp_bytes;
    std::uint8_t have = live_generations(stamp_of(block), epoch);
    const auto ask = [&](std::uint32_t at) { have &= first[at]; };
    // At half fill five cells refuse four of five absent keys: one jump that is seldom taken, and not nine.
    const std::uint32_t some = probes < 5 ? probes : 5;
    each_position(hash64, 0, some, ask);
    if (have == 0) return 0;
    each_position(hash64, some, probes, ask);
    return have;
  }

  /// Inserts keys one after another into the generation of `epoch`. is_new is null or takes a 1 (certainly not in the
  /// window) or 0 for each.
  static window_insertions insert_keys(std::uint8_t* bytes, const geometry& g, const hash_span& keys,
                                       std::uint32_t epoch, std::uint8_t* is_new) noexcept;

  /// Looks keys up; bit i%64 of bitmap[i/64] is the answer for key i, unused bits of the last word are 0.
  static void look_up_keys(const std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint32_t epoch,
                           std::uint64_t* bitmap) noexcept;

  /// Adds the cells of other bytes, of the same geometry, generation by generation: as of `epoch`, not before the
  /// newest of either. Of two blocks that are ahead the stamp that is more so stays.
  static void unite(std::uint8_t* bytes, const std::uint8_t* other, const geometry& g, std::uint32_t epoch) noexcept;

  /// Counts the cells of each generation that lives at `epoch`, and certifies the rate: per block
  ///
  ///   sum over sets S of lanes, not empty, of (-1)^(|S|+1) (c_S / cells)^k,   c_S cells have all lanes of S
  ///
  /// which by inclusion and exclusion is the probability that k random cells of the block are all set in one lane.
  static window_cells look_at_cells(const std::uint8_t* bytes, const geometry& g, std::uint32_t epoch);

  /// The fewest blocks, with the number of probes that allows them, whose exact rate is at most p at the worst moment:
  /// when 8 generations hold ceil(n / 7) distinct keys each.
  ///
  /// @param capacity             n, keys of a window, at least 1
  /// @param target_fpr  p, a probability in (0, 1)
  /// @throws error  invalid_argument: n is 0, p is outside (0, 1) or NaN; too_large: more than 2^40 blocks are needed
  static geometry geometry_for(std::uint64_t capacity, double target_fpr);

  /// @throws error invalid_argument: bits are not those of some blocks, probes is outside 1 .. 255; too_large
  static void check(const geometry& g);

  /// Exact rate while 8 generations hold ceil(keys / 7) distinct keys each.
  static double expected_fpr(const geometry& g, std::uint64_t keys);

  /// Exact rate of generations of so many distinct keys, n_j in lane j:
  ///
  ///   f = sum over d of D(d) * (1 - product over j of (1 - sum over i of Binomial(i; n_j, 1/B) * A(d, i)))
  ///
  /// D(d): the k probes of a key fall on d different cells; A(d, i): d given cells of a block are all set by i keys.
  /// All terms are positive. Result 1 - (1 - f) * (1 - 2^-64)^n. Keys that are in several generations make it smaller.
  static double rate_of(const geometry& g, std::span<const std::uint64_t> keys);

 private:
  static constexpr std::uint32_t position(std::uint64_t x) noexcept {
    return static_cast<std::uint32_t>((x >> 32) * cells_of_block >> 32);
  }

  // multiplier * step^i mod 2^64: times 2 hash64 + 1, x of the i-th cell without the i - 1 before it.
  static constexpr auto powers = [] {
    std::array<std::uint64_t, 16> result{multiplier};
    for (std::size_t i = 1; i < result.size(); ++i) result[i] = result[i - 1] * step;
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
    for (std::uint32_t reached = powers.size() - 1; reached < i; ++reached) x *= step;
    for (; i < to; ++i, x *= step) work(position(x));
  }

  static std::uint32_t stamp_of(const std::uint8_t* block) noexcept {
    std::uint32_t stamp;
    std::memcpy(&stamp, block, sizeof stamp);
    return stamp;
  }

  // Clears the lanes that have run out, then says so: who is killed in between has cleared them for nothing. A block
  // that is ahead stays as it is: its keys are not lost, and what is written now goes when its lane runs out after the
  // stamp.
  static void bring_to(std::uint8_t* block, std::uint32_t epoch) noexcept {
    const std::uint32_t stamp = stamp_of(block);
    if (stamp == epoch || is_ahead(block, epoch)) [[likely]]
      return;
    keep_generations(block, live_generations(stamp, epoch));
    std::atomic_signal_fence(std::memory_order_seq_cst);
    std::memcpy(block, &epoch, sizeof epoch);
  }

  // Without cells there is nothing to keep: just before an epoch of 2^32 a new block only seems to be ahead.
  static bool is_ahead(const std::uint8_t* block, std::uint32_t epoch) noexcept {
    const std::uint32_t ahead = stamp_of(block) - epoch;
    return ahead != 0 && ahead < epochs_ahead &&
           std::any_of(block + stamp_bytes, block + Bytes, [](std::uint8_t cell) { return cell != 0; });
  }

  static void keep_generations(std::uint8_t* block, std::uint8_t lanes) noexcept {
    const std::uint64_t kept = std::uint64_t{0x0101010101010101} * lanes;
    std::uint64_t mask = kept | 0xFFFFFFFF;  // the first word has the stamp in it
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

/// Blocks of 512 bytes, that is 8 lines of one page: the least memory, 17.5 bits for each key of a window at 1 %.
///
/// Example:
///     const geometry g = layouts::sliding::geometry_for(1'000'000, 0.01);
///     assert(g.bits < 17'600'000);
///     assert(layouts::sliding::expected_fpr(g, 1'000'000) <= 0.01);
class sliding : public sliding_blocks<512> {
 public:
  static constexpr std::string_view name = "sliding";
};

/// Blocks of one cache line: a lookup reads that line and nothing else, at the price of half as much memory again.
///
/// Example:
///     const geometry g = layouts::sliding64::geometry_for(1'000'000, 0.01);
///     assert(g.bits > layouts::sliding::geometry_for(1'000'000, 0.01).bits);
class sliding64 : public sliding_blocks<64> {
 public:
  static constexpr std::string_view name = "sliding64";
};

}  // namespace layouts

/// A layout whose cells have a bit for each generation: sliding or sliding64.
template <class L>
concept sliding_window_layout = std::derived_from<L, layouts::sliding_blocks<L::block_bytes>>;

}  // namespace bloomery
