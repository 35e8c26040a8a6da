// Construction of fuse filters. partitioned_build.hpp distributes the keys; a partition is built in these steps:
//
//   sort       the hashes are mixed with its seed and sorted by their first cell, so that the next steps access memory
//              sequentially
//   count      for each cell, count its keys and compute the exclusive or of their indices
//   peel       remove a key that is alone in a cell, which may leave other cells with one key; if keys remain, the
//              attempt has failed. A repeated hash can never be peeled
//   assign     in reverse order, set the cell of each key so that its three cells yield its fingerprint
//   verify     look up every key in the finished bytes
#include <bloomery/detail/fuse.hpp>

#include "filters/partitioned_build.hpp"
#include "filters/partitioned_stream.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace bloomery {
namespace {

using partitioned::pieces;

// Segments of 2^floor(log(n) / log(3.33) + 2.25) cells, and 0.875 + 0.25 max(1, ln 10^6 / ln n) cells per key [Graf &
// Lemire 2022, section 4]; each step of `growth` adds a thirtieth.
fuse_partition sized(std::uint64_t keys, std::uint32_t growth) {
  fuse_partition p;
  p.keys = keys;
  if (keys == 0) return p;
  const double log_keys = std::log(static_cast<double>(keys));
  const auto log_segment = static_cast<unsigned>(std::floor(log_keys / std::log(3.33) + 2.25));
  p.segment = std::uint32_t{1} << std::min(log_segment, 18u);
  const double factor = keys == 1 ? 1 : 0.875 + 0.25 * std::max(1.0, std::log(1e6) / log_keys);
  const auto cells = static_cast<std::uint64_t>(std::llround(static_cast<double>(keys) * factor));
  std::uint64_t segments = std::max<std::uint64_t>(3, (cells + p.segment - 1) / p.segment);
  segments += growth * (1 + segments / 30);
  const std::uint64_t starts = (segments - 2) * p.segment;
  if (starts > 0xF0000000) {
    throw error(errc::too_large, {"the hashes of a static filter's keys are too similar", "hash", "",
                                  std::to_string(keys) + " keys in one partition", hint::use_another_hash});
  }
  p.starts = static_cast<std::uint32_t>(starts);
  return p;
}

// F: the smallest integer type for a fingerprint.
template <class F>
struct structure {
  using partition = fuse_partition;
  static constexpr bool finds_copies = true;

  unsigned width_;

  unsigned width() const { return width_; }
  partition sized(std::uint64_t keys, std::uint32_t growth) const { return bloomery::sized(keys, growth); }
  std::uint64_t begin(std::uint64_t partitions) const { return fuse::first_cell(partitions, width_); }
  std::uint64_t place(partition& p, std::uint64_t end) const {
    p.first = fuse::aligned_cell(end, width_);
    return p.keys == 0 ? end : p.first + p.cells();
  }
  std::uint64_t payload_bytes(std::uint64_t end) const { return fuse::payload_bytes(end, width_); }
  std::uint64_t offset_of(const partition& p) const { return p.first * width_ / 8; }
  std::uint64_t bytes_of(const partition& p) const { return (p.cells() * width_ + 7) / 8; }

  class worker;
};

template <class F>
class structure<F>::worker {
 public:
  bool build(const structure& s, const partition& p, const pieces& some, std::uint8_t* payload) {
    std::uint8_t* const cells = payload + s.offset_of(p);
    if (!write(p, some, s.width_, cells)) return false;
    if (all_there(p, some, s.width_, cells)) return true;
    std::fill_n(cells, s.bytes_of(p), std::uint8_t{0});
    return false;
  }

 private:
  bool write(const fuse_partition& p, const pieces& some, unsigned width, std::uint8_t* to) {
    if (width == 8 * sizeof(F)) return build_cells(p, some, width, reinterpret_cast<F*>(to));
    const std::span<F> cells = cells_.of<F>(p.cells());
    std::fill(cells.begin(), cells.end(), F{0});
    if (!build_cells(p, some, width, cells.data())) return false;
    pack(cells, width, to);
    return true;
  }

  static constexpr std::size_t ahead = 64;  // prefetch distance in cells of the queue, in three steps

  // A word per cell: the exclusive or of the indices of its keys, and their number in the upper 8 bits.
  template <class Word>
  static constexpr unsigned number_bits = 8 * sizeof(Word) - 8;

  bool build_cells(const fuse_partition& p, const pieces& some, unsigned width, F* cells) {
    // 24 bits for an index and 8 bits for a count; only partitions with many copies or skewed hashes need more.
    return p.keys <= (std::uint64_t{1} << 24) ? build_by<std::uint32_t>(p, some, width, cells)
                                              : build_by<std::uint64_t>(p, some, width, cells);
  }

  // Writes cells without gaps, whole bytes at a time.
  static void pack(std::span<const F> cells, unsigned width, std::uint8_t* to) {
    std::uint64_t bits = 0;
    unsigned count = 0;
    for (const F cell : cells) {
      bits |= std::uint64_t{cell} << count;
      for (count += width; count >= 8; count -= 8, bits >>= 8) *to++ = static_cast<std::uint8_t>(bits);
    }
    if (count > 0) *to = static_cast<std::uint8_t>(bits);
  }

  template <class Word>
  bool build_by(const fuse_partition& p, const pieces& some, unsigned width, F* cells) {
    constexpr Word one = Word{1} << number_bits<Word>;
    const std::span<std::uint64_t> hashes = sorted(p, some);
    const auto offsets_of = [&](std::uint64_t h) { return fuse::offsets(h, p.starts, p.segment, width); };

    const std::span<Word> counts = counts_.of<Word>(p.cells());
    std::fill(counts.begin(), counts.end(), Word{0});
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      const fuse::offsets at = offsets_of(hashes[i]);
      for (const std::uint32_t cell : {at.first, at.second, at.third}) {
        counts[cell] = (counts[cell] ^ static_cast<Word>(i)) + one;
      }
    }

    // The keys in the order of peeling, and the cell from which each was peeled. A cell has exactly one key at most
    // once. The data of later cells is prefetched.
    const std::span<std::uint64_t> peeled = peeled_.of<std::uint64_t>(p.keys);
    const std::span<std::uint8_t> peeled_by = peeled_by_.of<std::uint8_t>(p.keys);
    const std::span<std::uint32_t> single = single_.of<std::uint32_t>(p.cells() + 3);
    std::size_t done = 0;
    std::size_t waiting = 0;
    std::uint64_t counted = 0;
    for (std::uint32_t cell = 0; cell < counts.size(); ++cell) {
      const Word count = counts[cell] >> number_bits<Word>;
      counted += count;
      single[waiting] = cell;
      waiting += count == 1 ? 1 : 0;
    }
    if (counted != 3 * hashes.size()) return false;  // a count overflowed, for example by 256 copies of a key
    for (std::size_t next = 0; next < waiting; ++next) {
      if (next + ahead < waiting) __builtin_prefetch(&counts[single[next + ahead]], 1);
      if (next + ahead / 2 < waiting) __builtin_prefetch(&hashes[counts[single[next + ahead / 2]] & (one - 1)]);
      if (const std::size_t soon = next + ahead / 4; soon < waiting) {
        const fuse::offsets at = offsets_of(hashes[counts[single[soon]] & (one - 1)]);  // of key 0 if it is empty now
        __builtin_prefetch(&counts[at.first], 1);
        __builtin_prefetch(&counts[at.second], 1);
        __builtin_prefetch(&counts[at.third], 1);
      }
      const std::uint32_t from = single[next];
      const Word word = counts[from];
      if (word >> number_bits<Word> != 1) continue;  // its key was peeled from another cell
      const Word number = word & (one - 1);
      const std::uint64_t hash = hashes[number];
      const fuse::offsets at = offsets_of(hash);
      peeled[done] = hash;
      peeled_by[done++] = static_cast<std::uint8_t>((from == at.second ? 1 : 0) + (from == at.third ? 2 : 0));
      for (const std::uint32_t cell : {at.first, at.second, at.third}) {
        const Word left = (counts[cell] ^ number) - one;
        counts[cell] = left;
        single[waiting] = cell;
        waiting += left >> number_bits<Word> == 1 ? 1 : 0;
      }
    }
    if (done < hashes.size()) return false;

    while (done-- > 0) {
      const fuse::offsets at = offsets_of(peeled[done]);
      const std::uint32_t of[] = {at.first, at.second, at.third};
      cells[of[peeled_by[done]]] =
          static_cast<F>(at.fingerprint ^ cells[at.first] ^ cells[at.second] ^ cells[at.third]);
    }
    return true;
  }

  // The hashes of a partition sorted by their upper bits, and thus approximately by their first cells.
  std::span<std::uint64_t> sorted(const fuse_partition& p, const pieces& some) {
    const std::span<std::uint64_t> result = hashes_.of<std::uint64_t>(p.keys);
    const unsigned bits = std::min<unsigned>(static_cast<unsigned>(std::bit_width(p.keys >> 12)), 11);
    if (bits == 0) {
      std::uint64_t* to = result.data();
      for (const auto& piece : some) {
        for (const std::uint64_t hash64 : piece) *to++ = mix64(hash64 ^ p.seed);
      }
      return result;
    }
    next_.assign(std::size_t{1} << bits, 0);
    for (const auto& piece : some) {
      for (const std::uint64_t hash64 : piece) ++next_[mix64(hash64 ^ p.seed) >> (64 - bits)];
    }
    std::uint64_t sum = 0;
    for (std::uint64_t& next : next_) sum += std::exchange(next, sum);
    for (const auto& piece : some) {
      for (const std::uint64_t hash64 : piece) {
        const std::uint64_t h = mix64(hash64 ^ p.seed);
        result[next_[h >> (64 - bits)]++] = h;
      }
    }
    return result;
  }

  // Reads only bytes of this partition: another thread may be writing the next one.
  static bool all_there(const fuse_partition& p, const pieces& hash64s, unsigned width, const std::uint8_t* cells) {
    constexpr unsigned whole = 8 * sizeof(F);
    if (width == whole)
      return all_there_by(p, hash64s, width, [&](std::uint32_t i) { return fuse::cell<whole>(cells, i, width); });
    return all_there_by(p, hash64s, width, [&](std::uint32_t i) { return fuse::only_cell(cells, i, width); });
  }

  template <class Cell>
  static bool all_there_by(const fuse_partition& p, const pieces& hash64s, unsigned width, Cell cell) {
    for (const auto& piece : hash64s) {
      bool there = true;
      for (const std::uint64_t hash64 : piece) {
        const fuse::offsets at(mix64(hash64 ^ p.seed), p.starts, p.segment, width);
        there &= (cell(at.first) ^ cell(at.second) ^ cell(at.third)) == at.fingerprint;
      }
      if (!there) return false;
    }
    return true;
  }

  partitioned::scratch_buffer hashes_, counts_, peeled_, peeled_by_, single_, cells_;
  std::vector<std::uint64_t> next_;
};

}  // namespace

geometry fuse_geometry(unsigned width, std::uint64_t keys) {
  fuse_layout_name(width);  // throws
  const partitioned::even_spread even(keys);
  const std::uint64_t cells =
      even.larger * sized(even.keys + 1, 0).cells() + (even.partitions - even.larger) * sized(even.keys, 0).cells();
  return {8 * fuse::payload_bytes(fuse::first_cell(even.partitions, width) + cells, width), fuse::probes};
}

namespace {

// Calls build(structure) with the type of cells for this width.
template <class Build>
auto with_structure(unsigned width, Build build) {
  fuse_layout_name(width);  // throws
  if (width <= 8) return build(structure<std::uint8_t>{width});
  if (width <= 16) return build(structure<std::uint16_t>{width});
  return build(structure<std::uint32_t>{width});
}

}  // namespace

static_bytes fuse_build(std::span<std::uint64_t> hash64s, unsigned width, unsigned threads, const build_watch& watch) {
  return with_structure(width, [&](auto structure) { return partitioned::build(hash64s, structure, threads, watch); });
}

streamed_payload fuse_stream(const stream_source& from, unsigned width, const payload_sink& to) {
  return with_structure(width, [&](auto structure) { return partitioned::stream(from, structure, to); });
}

}  // namespace bloomery
