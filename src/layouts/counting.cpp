// counting: inserts, removals, sizes and rates.
#include <bloomery/layouts/counting.hpp>

#include "layouts/blocked_layout.hpp"
#include "layouts/row_of.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>

namespace bloomery {
namespace {

constexpr std::size_t line_words = layouts::counting::block_bits / 64;
constexpr std::size_t cells_of_word = 64 / layouts::counting::cell_bits;
constexpr std::uint64_t ones = 0x1111111111111111;  // one in each counter of a word

using line_of_words = std::array<std::uint64_t, line_words>;

// 1 in each non-zero counter.
std::uint64_t marks_of_used(std::uint64_t word) { return (word | word >> 1 | word >> 2 | word >> 3) & ones; }

// 1 in each saturated counter.
std::uint64_t marks_of_full(std::uint64_t word) {
  const std::uint64_t pairs = word & word >> 1;
  return pairs & pairs >> 2 & ones;
}

std::uint8_t* line_of(std::uint8_t* bytes, const geometry& g, key_hash hash) {
  return bytes + layouts::counting::block_of(hash.hash64, g.bits / layouts::counting::block_bits) *
                     (layouts::counting::block_bits / 8);
}

line_of_words loaded(const std::uint8_t* at) {
  line_of_words words;
  std::memcpy(words.data(), at, sizeof words);
  return words;
}

// 1 in each cell of the key, even if several probes select it.
line_of_words cells_in_line(const geometry& g, key_hash hash) {
  line_of_words words{};
  std::uint64_t x = probe_sequence::first(hash.hash64);
  for (std::uint32_t i = 0; i < g.probes; ++i) {
    const std::uint64_t cell = layouts::counting::cell_in_block(x);
    words[cell / cells_of_word] |= std::uint64_t{1} << layouts::counting::cell_bits * (cell % cells_of_word);
    x *= probe_sequence::step;
  }
  return words;
}

// Non-zero if the counter of any of these cells is 0.
std::uint64_t missing(const line_of_words& counters, const line_of_words& cells) {
  std::uint64_t any = 0;
  for (std::size_t i = 0; i < line_words; ++i) any |= cells[i] & ~marks_of_used(counters[i]);
  return any;
}

// The number of counters of a line whose lowest bit is 1.
std::uint64_t count_of(const line_of_words& marks) {
  std::uint64_t sums = 0;  // of eight words: at most 8 in each counter
  for (const std::uint64_t word : marks) sums += word;
  constexpr std::uint64_t lower = 0x0F0F0F0F0F0F0F0F;
  return ((sums & lower) + (sums >> 4 & lower)) * 0x0101010101010101 >> 56;
}

template <std::uint64_t (*Mark)(std::uint64_t)>
std::uint64_t count_marked(std::span<const std::uint8_t> bytes) {
  std::uint64_t count = 0;
  for (std::size_t at = 0; at + sizeof(line_of_words) <= bytes.size(); at += sizeof(line_of_words)) {
    line_of_words words = loaded(bytes.data() + at);
    for (std::uint64_t& word : words) word = Mark(word);
    count += count_of(words);
  }
  return count;
}

}  // namespace

template class layouts::blocked_layout<layouts::counting, layouts::counting::block_bits, layouts::counting::cell_bits>;

bool layouts::counting::insert_one(std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept {
  std::uint8_t* const at = line_of(bytes, g, hash);
  line_of_words counters = loaded(at);
  const line_of_words cells = cells_in_line(g, hash);
  const bool is_new = missing(counters, cells) != 0;
  for (std::size_t i = 0; i < line_words; ++i) counters[i] += cells[i] & ~marks_of_full(counters[i]);
  std::memcpy(at, counters.data(), sizeof counters);
  return is_new;
}

bool layouts::counting::has_one(const std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept {
  cells of_key(g, hash);
  for (std::uint32_t i = 0; i < of_key.count(); ++i) {
    if (counter(bytes, of_key.next()) == 0) return false;
  }
  return true;
}

removal layouts::counting::remove_one(std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept {
  std::uint8_t* const at = line_of(bytes, g, hash);
  line_of_words counters = loaded(at);
  const line_of_words cells = cells_in_line(g, hash);
  if (missing(counters, cells) != 0) return removal::not_found;
  for (std::size_t i = 0; i < line_words; ++i) counters[i] -= cells[i] & ~marks_of_full(counters[i]);
  std::memcpy(at, counters.data(), sizeof counters);
  return removal::removed;
}

std::uint64_t layouts::counting::insert_batch(std::uint8_t* bytes, const geometry& g, const hash_span& keys,
                                              std::uint8_t* is_new) noexcept {
  std::uint64_t all_new = 0;
  fetched_group<layouts::counting>::each(bytes, g, keys, 1, [&](std::size_t i, key_hash hash) {
    const bool fresh = insert_one(bytes, g, hash);
    if (is_new != nullptr) is_new[i] = fresh ? 1 : 0;
    all_new += fresh ? 1 : 0;
  });
  return all_new;
}

void layouts::counting::has_batch(const std::uint8_t* bytes, const geometry& g, const hash_span& keys,
                                  std::uint64_t* bitmap) noexcept {
  fetched_group<layouts::counting>::each(bytes, g, keys, 1, [&](std::size_t i, key_hash hash) {
    if (i % 64 == 0) bitmap[i / 64] = 0;
    bitmap[i / 64] |= std::uint64_t{has_one(bytes, g, hash)} << (i % 64);
  });
}

std::uint64_t layouts::counting::remove_batch(std::uint8_t* bytes, const geometry& g, const hash_span& keys,
                                              removal* results) noexcept {
  std::uint64_t all_removed = 0;
  fetched_group<layouts::counting>::each(bytes, g, keys, 1, [&](std::size_t i, key_hash hash) {
    const removal result = remove_one(bytes, g, hash);
    if (results != nullptr) results[i] = result;
    all_removed += result == removal::removed ? 1 : 0;
  });
  return all_removed;
}

std::uint64_t layouts::counting::cells_used(std::span<const std::uint8_t> bytes) noexcept {
  return count_marked<marks_of_used>(bytes);
}
std::uint64_t layouts::counting::cells_full(std::span<const std::uint8_t> bytes) noexcept {
  return count_marked<marks_of_full>(bytes);
}

double layouts::counting::copies_in(const geometry& g, std::span<const std::uint8_t> bytes) noexcept {
  std::uint64_t sum = 0;
  for (const std::uint8_t byte : bytes) sum += static_cast<std::uint64_t>(byte & 15) + (byte >> 4);
  const double c = cells_of_block;
  const double distinct = -c * std::expm1(g.probes * std::log1p(-1 / c));
  return static_cast<double>(sum) / distinct;
}

void layouts::counting::merge_bytes(std::span<std::uint8_t> into, std::span<const std::uint8_t> from) noexcept {
  for (std::size_t i = 0; i < into.size(); ++i) {
    const unsigned low = std::min((into[i] & 15u) + (from[i] & 15u), full);
    const unsigned high = std::min(0u + (into[i] >> 4) + (from[i] >> 4), full);
    into[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
}

double unnoticed_removals(std::uint64_t refused, double rate) noexcept {
  if (refused == 0) return 0;
  if (rate >= 1) return std::numeric_limits<double>::infinity();
  return static_cast<double>(refused) * rate / (1 - rate);
}

template <>
struct cell_scan<layouts::counting> {
  static cell_scan_result scan(const geometry& g, const byte_slice& slice, const block_counters&) {
    constexpr std::uint64_t line_bytes = layouts::counting::block_bits / 8;
    const auto hit = cell_scans::powers_of_fill<layouts::counting::cells_of_block>(g.probes);
    std::uint64_t used = 0;
    long double sum = 0;
    for (std::uint64_t at = 0; at < slice.bytes.size();) {
      const std::uint64_t end = std::min<std::uint64_t>(at + cell_scans::batch * line_bytes, slice.bytes.size());
      double of_batch = 0;  // a long double takes ten times as long where it is emulated, as in WebAssembly
      for (; at < end; at += line_bytes) {
        const std::uint64_t here = layouts::counting::cells_used(slice.bytes.subspan(at, line_bytes));
        used += here;
        of_batch += hit[here];
      }
      sum += of_batch;
    }
    return {used, sum / static_cast<long double>(g.bits / layouts::counting::block_bits), 0x1p64L};
  }
};

template const layout_row& row_of<layouts::counting>() noexcept;

}  // namespace bloomery
