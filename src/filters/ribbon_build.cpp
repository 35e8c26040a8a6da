// Construction of ribbon filters. partitioned_build.hpp distributes the keys; a partition is built layer by layer:
//
//   sort       the hashes are sorted, and thus by their starts
//   eliminate  bucket by bucket, in each from the last start to the first: each equation is reduced by those before it
//              until it has a slot of its own. If one cannot be solved, the bucket gets a threshold above its start,
//              and the keys of the bucket below the threshold go to the next layer
//   solve      from the last slot to the first, by back substitution
//   verify     look up every key in the finished words
#include <bloomery/detail/cascade.hpp>
#include <bloomery/detail/ribbon.hpp>

#include "filters/partitioned_build.hpp"
#include "filters/partitioned_stream.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace bloomery {
namespace {

using namespace ribbon;

// A layer with thresholds has 2% fewer slots than keys. About 2.3% of its keys go to the next layer, in clusters, so
// their number varies more than that of independent keys would. Small layers have no thresholds and some free slots.
constexpr double slots_per_key = 0.98;
constexpr double share_of_next_layer = 0.0235;
constexpr std::uint64_t most_keys_of_last_layer = 2'000;

std::uint64_t keys_of_next_layer(std::uint64_t keys) {
  const double expected = share_of_next_layer * static_cast<double>(keys);
  return static_cast<std::uint64_t>(expected + 12 * std::sqrt(expected) + 8);
}

std::uint32_t blocks_for(double slots) {
  const double blocks = std::ceil((slots + slots_of_block) / slots_of_block);
  if (blocks > std::numeric_limits<std::uint32_t>::max()) {
    throw error(errc::too_large, {"the hashes of a static filter's keys are too similar", "hash", "",
                                  std::to_string(static_cast<std::uint64_t>(slots)) + " slots in one partition",
                                  hint::use_another_hash});
  }
  return std::max(2u, static_cast<std::uint32_t>(blocks));
}

// Each step of `growth` adds a thirtieth.
ribbon_partition sized(std::uint64_t keys, std::uint32_t growth) {
  ribbon_partition p;
  p.keys = keys;
  const double more = 1 + growth / 30.0;
  for (std::size_t i = 0; keys > 0; ++i) {
    const bool is_last = keys <= most_keys_of_last_layer || i + 1 == p.blocks.size();
    const auto slots = static_cast<double>(keys) * more;
    p.blocks[i] =
        is_last ? blocks_for(1.1 * slots + 2 * std::sqrt(slots)) : blocks_for(slots_per_key * slots - slots_of_block);
    keys = is_last ? 0 : keys_of_next_layer(keys);
  }
  return p;
}

struct structure {
  using partition = ribbon_partition;
  static constexpr bool finds_copies = false;  // an equation that repeats another one is not noticed

  unsigned width_;
  bool is_given_ =
      false;  // the lowest bit of a hash is not part of the hash, but the bit to be combined from the slots

  // The bits of a hash that determine places.
  std::uint64_t used() const { return is_given_ ? cascade::place_bits : ~std::uint64_t{0}; }

  // The hash of a key in the first layer and in the layer after that of h. A given bit remains.
  std::uint64_t first_layer(std::uint64_t hash64, std::uint64_t seed) const {
    return (mix64((hash64 & used()) ^ seed) & used()) | (hash64 & ~used());
  }
  std::uint64_t layer_after(std::uint64_t h) const { return (next_layer(h & used()) & used()) | (h & ~used()); }

  equation equation_of(std::uint64_t h, std::uint32_t blocks) const {
    equation e(h & used(), blocks, width_);
    if (is_given_) e.fingerprint = h & 1;
    return e;
  }

  unsigned width() const { return width_; }
  partition sized(std::uint64_t keys, std::uint32_t growth) const { return bloomery::sized(keys, growth); }
  std::uint64_t begin(std::uint64_t partitions) const { return first_word(partitions); }
  std::uint64_t place(partition& p, std::uint64_t end) const {
    p.first = end;
    return end + words_of(p, width_);
  }
  std::uint64_t payload_bytes(std::uint64_t end) const { return ribbon::payload_bytes(end); }
  std::uint64_t offset_of(const partition& p) const { return 8 * p.first; }
  std::uint64_t bytes_of(const partition& p) const { return 8 * words_of(p, width_); }

  class worker;
};

class structure::worker {
 public:
  bool build(const structure& s, const partition& p, const partitioned::pieces& some, std::uint8_t* payload) {
    const std::span<std::uint64_t> hashes = hashes_.of<std::uint64_t>(p.keys);
    std::uint64_t* to = hashes.data();
    for (const auto& piece : some) {
      for (const std::uint64_t hash64 : piece) *to++ = s.first_layer(hash64, p.seed);
    }
    std::span<std::uint64_t> left = hashes;
    std::uint64_t word = p.first;
    const std::size_t layers = layers_of(p);
    for (std::size_t i = 0; i < layers; ++i) {
      std::uint8_t* const begin = payload + 8 * word;
      left = build_layer(s, p.blocks[i], i + 1 == layers, left, begin);
      if (i + 1 < layers && left.size() > most_keys_in(p.blocks[i + 1])) break;
      word += words_of(p, i, s.width_);
    }
    if (left.empty() && all_there(s, p, some, payload)) return true;
    std::fill_n(payload + s.offset_of(p), s.bytes_of(p), std::uint8_t{0});
    return false;
  }

 private:
  // A reduced equation. Its first coefficient is that of its own slot; 0: the slot is free.
  struct row {
    std::uint64_t coefficients;
    std::uint32_t fingerprint;
  };

  // A slot that was taken in the present bucket, and the place of the start of its key in the bucket.
  struct taken {
    std::uint32_t start;
    std::uint64_t slot;
  };

  // More keys would not fit, so the attempt would fail at the end.
  static std::uint64_t most_keys_in(std::uint32_t blocks) { return 2 * std::uint64_t{slots_of_block} * blocks; }

  // Writes a layer and returns the hashes of the keys for the next layer. The last layer: none, or all if it failed.
  std::span<std::uint64_t> build_layer(const structure& s, std::uint32_t blocks, bool is_last,
                                       std::span<std::uint64_t> hashes, std::uint8_t* to) {
    const unsigned width = s.width_;
    const auto start_of = [&](std::uint64_t h) { return multiply_high(h & s.used(), starts_of(blocks)); };
    partitioned::sort(hashes);
    const std::span<row> rows = rows_.of<row>(std::uint64_t{slots_of_block} * blocks);
    std::fill(rows.begin(), rows.end(), row{0, 0});
    std::uint8_t* const threshold_bytes = to + 8 * std::uint64_t{blocks} * width;
    std::size_t bumped = 0;  // they are moved to the beginning
    for (std::size_t begin = 0, end = 0; begin < hashes.size(); begin = end) {
      const std::uint64_t bucket = start_of(hashes[begin]) / starts_of_bucket;
      for (end = begin + 1; end < hashes.size(); ++end) {
        if (start_of(hashes[end]) / starts_of_bucket != bucket) break;
      }
      const std::uint32_t below = eliminate(s, blocks, hashes.subspan(begin, end - begin), rows);
      if (below == 0) continue;
      if (is_last) return hashes;
      const auto code =
          static_cast<std::uint64_t>(std::find(thresholds.begin(), thresholds.end(), below) - thresholds.begin());
      threshold_bytes[bucket / 4] = static_cast<std::uint8_t>(threshold_bytes[bucket / 4] | code << 2 * (bucket % 4));
      for (std::size_t i = begin; i < end; ++i) {
        if (start_of(hashes[i]) % starts_of_bucket >= below) break;  // sorted by start
        hashes[bumped++] = s.layer_after(hashes[i]);
      }
    }
    solve(s, rows, to);
    return hashes.first(bumped);
  }

  // Places the keys of a bucket. Returns the threshold below which they are not placed, or 0.
  std::uint32_t eliminate(const structure& s, std::uint32_t blocks, std::span<const std::uint64_t> hashes,
                          std::span<row> rows) {
    taken_.clear();
    for (std::size_t i = hashes.size(); i-- > 0;) {
      const equation e = s.equation_of(hashes[i], blocks);
      const auto start = static_cast<std::uint32_t>(e.start % starts_of_bucket);
      std::uint64_t slot = e.start;
      row left{e.coefficients, e.fingerprint};
      while (left.coefficients != 0 && rows[slot].coefficients != 0) {
        left.coefficients ^= rows[slot].coefficients;
        left.fingerprint ^= rows[slot].fingerprint;
        if (left.coefficients == 0) break;
        const auto zeros = static_cast<unsigned>(std::countr_zero(left.coefficients));
        slot += zeros;
        left.coefficients >>= zeros;
      }
      if (left.coefficients != 0) {
        rows[slot] = left;
        taken_.push_back({start, slot});
        continue;
      }
      const std::uint32_t below = *std::upper_bound(thresholds.begin(), thresholds.end(), start);
      for (; !taken_.empty() && taken_.back().start < below; taken_.pop_back()) rows[taken_.back().slot] = {0, 0};
      return below;
    }
    return 0;
  }

  // Back substitution. Bit j of bits[i] is bit i of slot j after the present one. Free slots are 0, or with given bits
  // random, so that the bit of any other key is 1 with probability 1/2.
  static void solve(const structure& s, std::span<const row> rows, std::uint8_t* to) {
    const unsigned width = s.width_;
    std::array<std::uint64_t, sealed::most_width> bits{};
    for (std::uint64_t slot = rows.size(); slot-- > 0;) {
      const row& r = rows[slot];
      for (unsigned i = 0; i < width; ++i) {
        const std::uint64_t later = bits[i] << 1;
        const std::uint64_t own =
            r.coefficients == 0
                ? (s.is_given_ ? mix64(slot) & 1 : 0)
                : (r.fingerprint >> i & 1) ^ static_cast<std::uint64_t>(__builtin_parityll(later & r.coefficients));
        bits[i] = later | own;
      }
      if (slot % slots_of_block == 0) std::memcpy(to + slot / slots_of_block * width * 8, bits.data(), 8 * width);
    }
  }

  static bool all_there(const structure& s, const partition& p, const partitioned::pieces& some,
                        const std::uint8_t* payload) {
    for (const auto& piece : some) {
      for (const std::uint64_t hash64 : piece) {
        const ribbon::place at = place_of(
            p, payload, hash64, s.width_, [](std::uint64_t) {}, s.used());
        if (combined(payload, at, s.width_) != (s.is_given_ ? hash64 & 1 : at.fingerprint)) return false;
      }
    }
    return true;
  }

  partitioned::scratch_buffer hashes_, rows_;
  std::vector<taken> taken_;
};

}  // namespace

geometry ribbon_geometry(unsigned width, std::uint64_t keys) {
  ribbon_layout_name(width);  // throws
  const partitioned::even_spread even(keys);
  const std::uint64_t words = even.larger * words_of(sized(even.keys + 1, 0), width) +
                              (even.partitions - even.larger) * words_of(sized(even.keys, 0), width);
  return {8 * payload_bytes(first_word(even.partitions) + words), 1};
}

static_bytes ribbon_build(std::span<std::uint64_t> hash64s, unsigned width, unsigned threads,
                          const build_watch& watch) {
  ribbon_layout_name(width);  // throws
  return partitioned::build(hash64s, structure{width}, threads, watch);
}

static_bytes ribbon_build_bits(std::span<std::uint64_t> hash64s, unsigned threads, const build_watch& watch) {
  return partitioned::build(hash64s, structure{.width_ = 1, .is_given_ = true}, threads, watch);
}

streamed_payload ribbon_stream(const stream_source& from, unsigned width, const payload_sink& to) {
  ribbon_layout_name(width);  // throws
  return partitioned::stream(from, structure{width}, to);
}

}  // namespace bloomery
