// quotient4 to quotient24: sizes, rates, scans, merging, and the operations in plain C++.
#include "layouts/quotient.hpp"

#include <bloomery/detail/bits.hpp>
#include <bloomery/error.hpp>

#include "math/rates.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace bloomery {
namespace kernels {
namespace {

#define BLOOMERY_TARGET

inline unsigned ones_in(std::uint64_t x) { return static_cast<unsigned>(std::popcount(x)); }

// The byte with the one, by the sums of ones of all bytes up to each, then the one in this byte.
inline unsigned place_of_one(std::uint64_t x, unsigned rank) {
  constexpr std::uint64_t in_each_byte = 0x0101010101010101;
  std::uint64_t sums = x - (x >> 1 & 0x5555555555555555);
  sums = (sums & 0x3333333333333333) + (sums >> 2 & 0x3333333333333333);
  sums = ((sums + (sums >> 4)) & 0x0F0F0F0F0F0F0F0F) * in_each_byte;
  const std::uint64_t above_rank = ((sums | 0x80 * in_each_byte) - (rank + 1) * in_each_byte) & 0x80 * in_each_byte;
  const auto first = static_cast<unsigned>(std::countr_zero(above_rank)) & 56;
  rank -= static_cast<unsigned>(sums << 8 >> first & 0xFF);
  std::uint64_t byte = x >> first & 0xFF;
  for (; rank > 0; --rank) byte &= byte - 1;
  return first + static_cast<unsigned>(std::countr_zero(byte));
}

#include "layouts/quotient_block.inc.hpp"

inline void insert_slot(std::uint8_t* block, const quotient_masks& masks, unsigned mark, unsigned bit,
                        std::uint32_t remainder) {
  std::uint64_t words[quotient_block_words];
  __builtin_memcpy(words, block, sizeof words);
  std::uint64_t moved = 0;  // the bit that the word below loses
  for (unsigned i = mark / 64; i < quotient_marks_words; ++i) {
    const std::uint64_t all = masks.marks[i], empty = masks.empty[i];
    const std::uint64_t marks = (words[i] ^ empty) & all;
    const std::uint64_t kept = marks & lower_ones(mark, i);
    words[i] = (words[i] & ~all) | (((kept | (marks ^ kept) << 1 | moved) ^ empty) & all);
    moved = marks >> 63;
  }
  const unsigned at = bit / 64, shift = bit % 64, width = masks.shape.width;
  for (unsigned i = quotient_block_words - 1; i > at + 1; --i)
    words[i] = words[i] << width | words[i - 1] >> (64 - width);
  const std::uint64_t kept = words[at] & lower_ones(shift);
  const std::uint64_t above = words[at] ^ kept;
  words[at] = kept | above << width | std::uint64_t{remainder} << shift;
  if (at + 1 < quotient_block_words) {
    words[at + 1] = words[at + 1] << width | above >> (64 - width);
    if (shift + width > 64) words[at + 1] |= remainder >> (64 - shift);  // the slot is in two words
  }
  __builtin_memcpy(block, words, sizeof words);
}

inline void remove_slot(std::uint8_t* block, const quotient_masks& masks, unsigned mark, unsigned bit) {
  std::uint64_t words[quotient_block_words + 1];
  __builtin_memcpy(words, block, 8 * quotient_block_words);
  words[quotient_block_words] = 0;
  const unsigned at = bit / 64, width = masks.shape.width;
  for (unsigned i = at; i < quotient_block_words; ++i) {
    const std::uint64_t moved = words[i] >> width | words[i + 1] << (64 - width);
    const std::uint64_t kept = lower_ones(bit, i);
    words[i] = (words[i] & kept) | (moved & ~kept);
  }
  std::uint64_t marks[quotient_marks_words + 1] = {};
  for (unsigned i = 0; i < quotient_marks_words; ++i) marks[i] = (words[i] ^ masks.empty[i]) & masks.marks[i];
  for (unsigned i = mark / 64; i < quotient_marks_words; ++i) {
    const std::uint64_t moved = marks[i] >> 1 | marks[i + 1] << 63;
    const std::uint64_t kept = lower_ones(mark, i);
    const std::uint64_t changed = (marks[i] & kept) | (moved & ~kept);
    words[i] = (words[i] & ~masks.marks[i]) | ((changed ^ masks.empty[i]) & masks.marks[i]);
  }
  __builtin_memcpy(block, words, 8 * quotient_block_words);
}

}  // namespace

constexpr quotient_kernel quotient_plain = {insert_keys<inserting>, look_up_keys<looking_up>, look_up_key,
                                            remove_keys<removing>};

}  // namespace kernels

namespace quotient {
namespace {

using kernels::quotient_blocks;
using kernels::quotient_shape;

constexpr std::uint64_t block_bits = 512;
// With at most 2^60 fingerprints, each of them belongs to at least 16 values of a hash.
constexpr std::uint64_t max_blocks_of(unsigned width) {
  return std::min(std::uint64_t{1} << 40, (std::uint64_t{1} << 60) / shape_of(width).tags());
}
constexpr std::uint32_t blocks_of_key = 2;
constexpr std::size_t batch = 256;  // keys hashed together

static_assert(shape_of(least_width).marks() <= 64 * kernels::quotient_marks_words);

template <std::size_t... I>
constexpr auto made_names(std::index_sequence<I...>) {
  constexpr auto name = [](unsigned width) {
    std::array<char, 11> text{'q', 'u', 'o', 't', 'i', 'e', 'n', 't'};
    std::size_t at = 8;
    if (width >= 10) text[at++] = static_cast<char>('0' + width / 10);
    text[at] = static_cast<char>('0' + width % 10);
    return text;
  };
  return std::array{name(least_width + I)...};
}

constexpr auto names = made_names(std::make_index_sequence<most_width - least_width + 1>());

template <std::size_t... I>
constexpr auto made_masks(std::index_sequence<I...>) {
  return std::array{kernels::quotient_masks(shape_of(least_width + I))...};
}

constexpr auto all_masks = made_masks(std::make_index_sequence<most_width - least_width + 1>());

constexpr const char* name_of(unsigned width) { return names[width - least_width].data(); }

// M: the number of fingerprints that keys may have.
double fingerprints(unsigned width, std::uint64_t blocks) {
  return static_cast<double>(blocks) * static_cast<double>(shape_of(width).tags());
}

// Kernels take a non-const pointer for lookups, too, but do not write.
quotient_blocks blocks_in(unsigned width, const std::uint8_t* bytes, const geometry& g) {
  return {const_cast<std::uint8_t*>(bytes), g.bits / block_bits, masks_of(width), g.bits > near_bits};
}

// Calls work(hash64s, first, count) for the keys from `first` on, until it returns false.
template <class Work>
void in_batches(const hash_span& keys, Work work) {
  std::array<std::uint64_t, batch> hash64s;
  for (std::size_t first = 0; first < keys.size(); first += batch) {
    const std::size_t count = std::min(batch, keys.size() - first);
    hash64s_of(keys.part(first, count), hash64s.data());
    if (!work(hash64s.data(), first, count)) return;
  }
}

std::size_t insert(unsigned width, std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint8_t* is_new,
                   std::uint64_t& all_new) {
  const quotient_blocks at = blocks_in(width, bytes, g);
  std::size_t inserted = 0;
  in_batches(keys, [&](const std::uint64_t* hash64s, std::size_t first, std::size_t count) {
    const std::size_t some =
        kernels::chosen_quotient().insert(at, hash64s, count, is_new == nullptr ? nullptr : is_new + first, all_new);
    inserted += some;
    return some == count;
  });
  return inserted;
}

void look_up(unsigned width, const std::uint8_t* bytes, const geometry& g, const hash_span& keys,
             std::uint64_t* bitmap) {
  const quotient_blocks at = blocks_in(width, bytes, g);
  in_batches(keys, [&](const std::uint64_t* hash64s, std::size_t first, std::size_t count) {
    kernels::chosen_quotient().has(at, hash64s, count, bitmap + first / 64);
    return true;
  });
}

std::uint64_t remove(unsigned width, std::uint8_t* bytes, const geometry& g, const hash_span& keys, removal* results) {
  const quotient_blocks at = blocks_in(width, bytes, g);
  std::array<std::uint8_t, batch> removed;
  std::uint64_t all_removed = 0;
  in_batches(keys, [&](const std::uint64_t* hash64s, std::size_t first, std::size_t count) {
    kernels::chosen_quotient().remove(at, hash64s, count, removed.data());
    for (std::size_t i = 0; i < count; ++i) {
      all_removed += removed[i];
      if (results != nullptr) results[first + i] = removed[i] != 0 ? removal::removed : removal::not_found;
    }
    return true;
  });
  return all_removed;
}

bool insert_hash(const quotient_blocks& at, std::uint64_t hash64, bool& is_new) {
  std::uint64_t all_new = 0;
  const bool has_room = kernels::chosen_quotient().insert(at, &hash64, 1, nullptr, all_new) == 1;
  is_new = all_new != 0;
  return has_room;
}

bool remove_hash(const quotient_blocks& at, std::uint64_t hash64) {
  std::uint8_t is_removed = 0;
  kernels::chosen_quotient().remove(at, &hash64, 1, &is_removed);
  return is_removed != 0;
}

// A fingerprint that is in a block, and its number of copies there.
struct group_of_copies {
  unsigned bucket;
  std::uint32_t value;  // of the slots
  std::uint64_t other;  // block
  unsigned copies;
};

bool is_in_second(const group_of_copies& group, const quotient_shape& shape) {
  return (group.value & shape.second()) != 0;
}

// The value in the other block.
std::uint32_t value_in_other(const group_of_copies& group, const quotient_shape& shape) {
  return group.value ^ shape.second();
}

std::uint64_t tag_of(const group_of_copies& group, const quotient_shape& shape) {
  return std::uint64_t{group.bucket} << (shape.width - 1) | (group.value & ~shape.second());
}

// Some of the buckets of a block.
struct bucket_range {
  unsigned begin, end;
};

constexpr bucket_range all_buckets = {0, buckets};

// Calls work(block, groups) for each block, with the distinct fingerprints in these buckets.
template <class Work>
void each_block(const quotient_blocks& at, bucket_range range, Work work) {
  const quotient_shape& shape = at.masks.shape;
  std::vector<group_of_copies> groups;
  for (std::uint64_t block = 0; block < at.count; ++block) {
    groups.clear();
    const kernels::block_view view(kernels::bytes_of(at, block), at.masks);
    if (view.used() == 0) {
      work(block, groups);
      continue;
    }
    unsigned mark = range.begin == 0 ? 0 : view.run_of(range.begin - 1).end_mark + 1;
    for (unsigned bucket = range.begin; bucket < range.end && mark < shape.marks(); ++bucket, ++mark) {
      const std::size_t first = groups.size();
      for (; mark < shape.marks() && !view.ends_at(mark); ++mark) {
        const unsigned slot = mark - bucket;
        if (slot >= shape.slots) continue;  // in a block that no filter writes
        group_of_copies group{bucket, view.value(slot), 0, 1};
        const auto same = std::find_if(groups.begin() + static_cast<std::ptrdiff_t>(first), groups.end(),
                                       [&](const group_of_copies& g) { return g.value == group.value; });
        if (same != groups.end()) {
          ++same->copies;
          continue;
        }
        group.other = kernels::other_block(tag_of(group, shape), block, at.count);
        groups.push_back(group);
      }
    }
    work(block, groups);
  }
}

unsigned copies_in_block(const quotient_blocks& at, std::uint64_t block, unsigned bucket, std::uint32_t value) {
  const kernels::block_view view(kernels::bytes_of(at, block), at.masks);
  return view.find(view.run_of(bucket), value).count;
}

void prefetch_others(const quotient_blocks& at, const std::vector<group_of_copies>& groups) {
  if (!at.fetch) return;
  for (const group_of_copies& group : groups) __builtin_prefetch(kernels::bytes_of(at, group.other), 0, 3);
}

unsigned copies_in_other(const quotient_blocks& at, const group_of_copies& group) {
  return copies_in_block(at, group.other, group.bucket, value_in_other(group, at.masks.shape));
}

std::uint64_t used_slots(unsigned width, const geometry& g, std::span<const std::uint8_t> bytes) {
  const quotient_blocks at = blocks_in(width, bytes.data(), g);
  std::uint64_t used = 0;
  for (std::uint64_t block = 0; block < at.count; ++block)
    used += kernels::block_view(kernels::bytes_of(at, block), at.masks).used();
  return used;
}

bool is_valid(unsigned width, const geometry& g, std::span<const std::uint8_t> bytes) {
  const quotient_blocks at = blocks_in(width, bytes.data(), g);
  for (std::uint64_t block = 0; block < at.count; ++block) {
    if (!kernels::block_view(kernels::bytes_of(at, block), at.masks).is_valid()) return false;
  }
  return true;
}

// Fingerprints with the maximum number of copies.
std::uint64_t full_fingerprints(unsigned width, const geometry& g, std::span<const std::uint8_t> bytes) {
  const quotient_blocks at = blocks_in(width, bytes.data(), g);
  std::uint64_t full = 0;
  each_block(at, all_buckets, [&](std::uint64_t, const std::vector<group_of_copies>& groups) {
    prefetch_others(at, groups);
    for (const group_of_copies& group : groups) {
      // Counted in the block that has more of the copies, of which the maximum is odd.
      if (group.copies * 2 < kernels::quotient_most_copies) continue;
      full += group.copies + copies_in_other(at, group) >= kernels::quotient_most_copies;
    }
  });
  return full;
}

// If all fingerprints of a block were inserted before those of the next block, the blocks would fill unevenly, and some
// fingerprints would find no room. Each round therefore inserts the fingerprints of a few buckets of all blocks.
constexpr unsigned rounds_of_adding = 16;

// A random absent key has each fingerprint with the same probability. Those with copies in both blocks count once.
cell_scan_result scan(unsigned width, const geometry& g, const byte_slice& all) {
  const quotient_blocks at = blocks_in(width, all.bytes.data(), g);
  std::uint64_t present = 0;
  each_block(at, all_buckets, [&](std::uint64_t, const std::vector<group_of_copies>& groups) {
    prefetch_others(at, groups);
    for (const group_of_copies& group : groups)
      present += is_in_second(group, at.masks.shape) && copies_in_other(at, group) > 0 ? 0 : 1;
  });
  return {used_slots(width, g, all.bytes), static_cast<long double>(present) / fingerprints(width, at.count), 0};
}

void check(unsigned width, const geometry& g) {
  rates::check_blocks(name_of(width), g.bits, block_bits, max_blocks_of(width));
  rates::check_probes(name_of(width), g.probes, blocks_of_key);
}

// The fewest blocks, found by bisection: more blocks have room for more keys and a lower FPR.
geometry geometry_for(unsigned width, std::uint64_t capacity, double target_fpr) {
  rates::check_target_fpr(capacity, target_fpr);
  const auto fits = [&](std::uint64_t blocks) {
    return keys_for(width, blocks) >= capacity && rate(width, blocks, capacity) <= target_fpr;
  };
  const std::uint64_t most = max_blocks_of(width);
  if (!fits(most)) rates::refuse_target_fpr(name_of(width), capacity, target_fpr);
  std::uint64_t too_few = 0, enough = 1;
  while (!fits(enough)) {
    too_few = enough;
    enough = std::min(2 * enough, most);
  }
  while (enough - too_few > 1) {
    const std::uint64_t middle = too_few + (enough - too_few) / 2;
    (fits(middle) ? enough : too_few) = middle;
  }
  return {enough * block_bits, blocks_of_key};
}

// A key adds a fingerprint, unless another key has it, with probability r. With small r, the number of those keys is a
// sum over all pairs of keys, whose variance is its mean, n r / 2.
double relative_variance(unsigned width, std::uint64_t blocks, std::uint64_t keys) {
  return keys == 0 ? 0 : rate(width, blocks, keys) / 2 / static_cast<double>(keys);
}

slot_lookup find(unsigned width, const std::uint8_t* bytes, const geometry& g, std::uint64_t hash64) {
  const quotient_blocks at = blocks_in(width, bytes, g);
  const kernels::place_of_key key = kernels::place_of(hash64, at);
  slot_lookup result{key.bucket, key.values[0], {}};
  for (const unsigned i : {0U, 1U}) {
    const std::uint64_t block = key.blocks[i];
    if (i == 1 && block == key.blocks[0]) break;
    result.blocks.push_back({block, copies_in_block(at, block, key.bucket, key.values[i])});
  }
  return result;
}

template <unsigned W>
struct calls {
  static constexpr removal_calls removals = {
      .remove = [](std::uint8_t* bytes, const geometry& g, const hash_span& keys,
                   removal* results) { return remove(W, bytes, g, keys, results); },
      .cells = [](const geometry& g) { return g.bits / block_bits * shape_of(W).slots; },
      .cells_used = [](const geometry& g, std::span<const std::uint8_t> bytes) { return used_slots(W, g, bytes); },
      .cells_full = [](const geometry& g,
                       std::span<const std::uint8_t> bytes) { return full_fingerprints(W, g, bytes); },
      .copies_in = [](const geometry& g,
                      std::span<const std::uint8_t> bytes) { return static_cast<double>(used_slots(W, g, bytes)); },
      .merge = nullptr};

  static constexpr slot_calls slots = {
      .keys_for = [](const geometry& g) { return quotient::keys_for(W, g.bits / block_bits); },
      .insert = [](std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint8_t* is_new,
                   std::uint64_t& all_new) { return insert(W, bytes, g, keys, is_new, all_new); },
      .used_in_block = [](const std::uint8_t* block) { return kernels::block_view(block, masks_of(W)).used(); },
      .is_valid = [](const geometry& g,
                     std::span<const std::uint8_t> bytes) { return quotient::is_valid(W, g, bytes); },
      .relative_variance = [](const geometry& g,
                              std::uint64_t keys) { return relative_variance(W, g.bits / block_bits, keys); },
      .look_up = [](const std::uint8_t* bytes, const geometry& g,
                    std::uint64_t hash64) { return find(W, bytes, g, hash64); },
      .doubled_layout = W > least_width ? name_of(W > least_width ? W - 1 : W) : nullptr,
      .add = [](const geometry& g, std::span<std::uint8_t> into, unsigned doublings,
                std::span<const std::uint8_t> from) { return quotient::add(W, g, into, doublings, from); }};
};

// A cell is a block: its value is the number of used slots.
template <unsigned W>
layout_row row_of_width() {
  layout_row row{};
  row.name = name_of(W);
  row.family = family::quotient;
  row.block_bits = block_bits;
  row.max_blocks = max_blocks_of(W);
  row.cell_bits = block_bits;
  row.fingerprint_bits = W;
  row.most_lines = blocks_of_key;
  row.fixed_probes = row.most_chosen_probes = blocks_of_key;
  row.geometry_for = [](std::uint64_t capacity, double rate) { return geometry_for(W, capacity, rate); };
  row.check = [](const geometry& g) { quotient::check(W, g); };
  row.expected_fpr = [](const geometry& g, std::uint64_t keys) { return rate(W, g.bits / block_bits, keys); };
  row.keys_from_zeros = [](const geometry& g, std::uint64_t zeros) {
    return static_cast<double>(calls<W>::removals.cells(g) - zeros);
  };
  row.cells = [](const geometry& g, key_hash hash, std::uint64_t* out) {
    const kernels::place_of_key key = kernels::place_of(hash.hash64, blocks_in(W, nullptr, g));
    out[0] = key.blocks[0];
    out[1] = key.blocks[1];
  };
  row.may_contain = [](const std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint64_t* bitmap) {
    look_up(W, bytes, g, keys, bitmap);
  };
  row.has_hash = [](const std::uint8_t* bytes, const geometry& g, std::uint64_t hash64) {
    return kernels::chosen_quotient().has_one(blocks_in(W, bytes, g), hash64);
  };
  row.insert_hash = [](std::uint8_t* bytes, const geometry& g, std::uint64_t hash64, bool& is_new) {
    return insert_hash(blocks_in(W, bytes, g), hash64, is_new);
  };
  row.remove_hash = [](std::uint8_t* bytes, const geometry& g, std::uint64_t hash64) {
    return remove_hash(blocks_in(W, bytes, g), hash64);
  };
  row.occupancy = [](const geometry& g) { return occupancy{1, g.bits, 0, g.probes}; };
  row.scan_cells = [](const geometry& g, const byte_slice& all, const block_counters&) { return scan(W, g, all); };
  row.removals = &calls<W>::removals;
  row.slots = &calls<W>::slots;
  return row;
}

template <std::size_t... I>
std::vector<layout_row> rows_of(std::index_sequence<I...>) {
  return {row_of_width<least_width + I>()...};
}

}  // namespace

const kernels::quotient_masks& masks_of(unsigned width) noexcept { return all_masks[width - least_width]; }

std::uint64_t keys_for(unsigned width, std::uint64_t blocks) noexcept {
  const unsigned slots = shape_of(width).slots;
  if (blocks == 1) return slots;
  const std::uint64_t keys = blocks * (slots - spare_slots);
  return keys - std::min<std::uint64_t>(keys, spare_slots_of_filter);
}

double rate(unsigned width, std::uint64_t blocks, std::uint64_t keys) noexcept {
  return -std::expm1(static_cast<double>(keys) * std::log1p(-1 / fingerprints(width, blocks)));
}

std::uint64_t hash_of(std::uint64_t fingerprint, std::uint64_t all_fingerprints) noexcept {
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>(((wide{fingerprint} << 64) + all_fingerprints - 1) / all_fingerprints);
}

bool add(unsigned width, const geometry& g, std::span<std::uint8_t> into, unsigned doublings,
         std::span<const std::uint8_t> from_bytes) {
  const quotient_blocks to = blocks_in(width, into.data(), g);
  const quotient_blocks from = blocks_in(width + doublings, from_bytes.data(), {g.bits >> doublings, g.probes});
  const quotient_shape& shape = from.masks.shape;
  std::array<std::uint64_t, batch> hash64s;
  std::size_t waiting = 0;
  std::uint64_t all_new = 0;
  bool has_room = true;
  const auto insert_waiting = [&] {
    const std::size_t count = std::exchange(waiting, 0);
    has_room = has_room && kernels::chosen_quotient().insert(to, hash64s.data(), count, nullptr, all_new) == count;
  };
  constexpr unsigned some = buckets / rounds_of_adding;
  for (unsigned bucket = 0; bucket < buckets; bucket += some) {
    each_block(from, {bucket, bucket + some}, [&](std::uint64_t block, const std::vector<group_of_copies>& groups) {
      for (const group_of_copies& group : groups) {
        const std::uint64_t first = is_in_second(group, shape) ? group.other : block;
        const std::uint64_t hash64 = hash_of(first * shape.tags() + tag_of(group, shape), from.count * shape.tags());
        for (unsigned i = 0; i < group.copies; ++i) {
          hash64s[waiting++] = hash64;
          if (waiting == batch) insert_waiting();
        }
      }
    });
  }
  insert_waiting();
  return has_room;
}

std::vector<layout_row> rows() { return rows_of(std::make_index_sequence<most_width - least_width + 1>()); }

}  // namespace quotient
}  // namespace bloomery
