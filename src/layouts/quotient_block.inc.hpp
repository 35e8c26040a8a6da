// The blocks of a quotient filter (layouts/quotient.hpp describes them), and the operations on batches of keys.
// Included within the unnamed namespace of each implementation, which defines BLOOMERY_TARGET and the functions that
// are declared first.

// The number of ones of a word.
unsigned ones_in(std::uint64_t x);

// The place of the one of a word that has `rank` ones below it. Requires rank < ones_in(x).
unsigned place_of_one(std::uint64_t x, unsigned rank);

// Moves the marks of a block from number `mark` on up by one place, and the slots from bit `bit` on by one slot. Writes
// a zero and the remainder to the places that become free.
void insert_slot(std::uint8_t* block, const quotient_shape& shape, unsigned mark, unsigned bit,
                 std::uint32_t remainder);

// The reverse: removes the mark and the slot.
void remove_slot(std::uint8_t* block, const quotient_shape& shape, unsigned mark, unsigned bit);

#include "layouts/arithmetic.inc.hpp"

// Ones in the lower `bits` places. Requires bits < 64.
BLOOMERY_TARGET inline std::uint64_t lower_ones(unsigned bits) { return (std::uint64_t{1} << bits) - 1; }

// The same for word number `word` of many, where `bits` counts from the first word.
BLOOMERY_TARGET inline std::uint64_t lower_ones(unsigned bits, unsigned word) {
  if (bits >= 64 * (word + 1)) return ~std::uint64_t{0};
  return bits <= 64 * word ? 0 : lower_ones(bits - 64 * word);
}

// The bit of a slot that is set if its block is the second one of the key.
BLOOMERY_TARGET inline std::uint32_t second_bit(const quotient_shape& s) { return std::uint32_t{1} << (s.width - 1); }

// d - block (mod blocks), where d depends on the tag: applied twice, it gives the first block again.
BLOOMERY_TARGET inline std::uint64_t other_block(std::uint64_t tag, std::uint64_t block, std::uint64_t blocks) {
  const std::uint64_t d = high_product(mix64(tag + 1), blocks);
  return d >= block ? d - block : d + (blocks - block);
}

// Masks that all blocks of a shape share.
struct block_masks {
  BLOOMERY_TARGET explicit block_masks(const quotient_shape& s) : shape(s) {
    for (unsigned i = 0; i < quotient_marks_words; ++i) {
      marks[i] = lower_ones(s.marks(), i);
      empty[i] = lower_ones(s.buckets, i);
    }
  }
  quotient_shape shape;
  std::uint64_t marks[quotient_marks_words];
  std::uint64_t empty[quotient_marks_words];  // the marks of an empty block, which is stored as zeros
};

// The slots of a bucket, and the place of the one that ends it.
struct run_of_slots {
  unsigned end_mark;
  unsigned first;
  unsigned end;
};

// A view of a block. Any bytes are allowed: those that no filter writes give some answers, but no access outside.
class block_view {
 public:
  BLOOMERY_TARGET block_view(const std::uint8_t* at, const block_masks& masks) : at_(at), masks_(masks) {
    __builtin_memcpy(marks_, at, sizeof marks_);
    for (unsigned i = 0; i < quotient_marks_words; ++i) marks_[i] = (marks_[i] ^ masks.empty[i]) & masks.marks[i];
  }

  // The number of used slots: the last one of the marks ends the last bucket, and each zero before it is a slot.
  BLOOMERY_TARGET unsigned used() const {
    const unsigned marks = after_one_below(masks_.shape.marks());
    return marks > masks_.shape.buckets ? marks - masks_.shape.buckets : 0;
  }

  // Whether each bucket ends, as in blocks that a filter writes.
  BLOOMERY_TARGET bool is_valid() const {
    unsigned ones = 0;
    for (const std::uint64_t word : marks_) ones += ones_in(word);
    return ones == masks_.shape.buckets;
  }

  BLOOMERY_TARGET run_of_slots run_of(unsigned bucket) const {
    const unsigned end_mark = place_of_mark(bucket);
    const unsigned length = end_mark - after_one_below(end_mark);
    const unsigned end = end_mark - bucket < masks_.shape.slots ? end_mark - bucket : masks_.shape.slots;
    return {end_mark, end > length ? end - length : 0, end};
  }

  BLOOMERY_TARGET unsigned bit_of(unsigned slot) const { return masks_.shape.marks() + slot * masks_.shape.width; }

  // The slots of a run with this value: their number and the first bit of the first of them.
  struct matches {
    unsigned count = 0;
    unsigned bit = 0;
  };
  BLOOMERY_TARGET matches find(const run_of_slots& run, std::uint32_t wanted) const {
    matches found;
    for (unsigned slot = run.first; slot < run.end; ++slot) {
      if (value(slot) != wanted) continue;
      if (found.count == 0) found.bit = bit_of(slot);
      ++found.count;
    }
    return found;
  }

  // Requires slot < slots.
  BLOOMERY_TARGET std::uint32_t value(unsigned slot) const {
    return static_cast<std::uint32_t>(bits_from(bit_of(slot)) & lower_ones(masks_.shape.width));
  }

 private:
  // At least 57 bits of the block from this one on, or all that follow.
  BLOOMERY_TARGET std::uint64_t bits_from(unsigned bit) const {
    constexpr unsigned last_byte = 8 * (quotient_block_words - 1);
    const unsigned byte = bit / 8 < last_byte ? bit / 8 : last_byte;
    std::uint64_t word;
    __builtin_memcpy(&word, at_ + byte, sizeof word);
    return word >> (bit - 8 * byte);
  }

  // The place of the one that has `rank` ones below it; the number of marks if there is none.
  BLOOMERY_TARGET unsigned place_of_mark(unsigned rank) const {
    for (unsigned i = 0; i < quotient_marks_words; ++i) {
      const unsigned here = ones_in(marks_[i]);
      if (rank < here) return 64 * i + place_of_one(marks_[i], rank);
      rank -= here;
    }
    return masks_.shape.marks();
  }

  // The place after the highest one below `place`; 0 if there is none.
  BLOOMERY_TARGET unsigned after_one_below(unsigned place) const {
    unsigned i = place / 64;
    std::uint64_t below = i < quotient_marks_words ? marks_[i] & lower_ones(place % 64) : 0;
    while (below == 0 && i > 0) below = marks_[--i];
    return below == 0 ? 0 : 64 * i + 64 - static_cast<unsigned>(__builtin_clzll(below));
  }

  const std::uint8_t* at_;
  const block_masks& masks_;
  std::uint64_t marks_[quotient_marks_words];
};

// The two blocks of a key, which may be equal, its bucket in both, and the values of its slots in the first and in the
// second one.
struct place_of_key {
  std::uint64_t first, second;
  unsigned bucket;
  std::uint32_t in_first, in_second;
};

// The place of the fingerprint with this first block and this tag.
BLOOMERY_TARGET inline place_of_key place_of_tag(std::uint64_t first, std::uint64_t tag, const quotient_blocks& at) {
  const unsigned bits = at.shape.width - 1;
  const auto remainder = static_cast<std::uint32_t>(tag & lower_ones(bits));
  return {first, other_block(tag, first, at.count), static_cast<unsigned>(tag >> bits), remainder,
          remainder | second_bit(at.shape)};
}

BLOOMERY_TARGET inline place_of_key place_of(std::uint64_t hash64, const quotient_blocks& at) {
  const std::uint64_t first = high_product(hash64, at.count), rest = hash64 * at.count;
  return place_of_tag(first, high_product(rest, at.shape.tags()), at);
}

BLOOMERY_TARGET inline std::uint8_t* bytes_of(const quotient_blocks& at, std::uint64_t block) {
  return at.bytes + 8 * quotient_block_words * block;
}

enum class insertion { is_new, is_copy, no_room };

// Inserts a copy into the block with more free slots.
BLOOMERY_TARGET inline insertion insert_one(const quotient_blocks& at, const block_masks& masks,
                                            const place_of_key& key) {
  const block_view first(bytes_of(at, key.first), masks), second(bytes_of(at, key.second), masks);
  const run_of_slots in_first = first.run_of(key.bucket), in_second = second.run_of(key.bucket);
  const unsigned copies = first.find(in_first, key.in_first).count + second.find(in_second, key.in_second).count;
  if (copies >= quotient_most_copies) return insertion::is_copy;
  const unsigned used_first = first.used(), used_second = second.used();
  const bool to_second = used_second < used_first;
  if ((to_second ? used_second : used_first) >= at.shape.slots) return insertion::no_room;
  const run_of_slots& run = to_second ? in_second : in_first;
  if (run.end >= at.shape.slots) return insertion::no_room;  // a block that no filter writes
  insert_slot(bytes_of(at, to_second ? key.second : key.first), at.shape, run.end_mark, first.bit_of(run.end),
              to_second ? key.in_second : key.in_first);
  return copies == 0 ? insertion::is_new : insertion::is_copy;
}

BLOOMERY_TARGET inline bool has_one(const quotient_blocks& at, const block_masks& masks, const place_of_key& key) {
  const block_view first(bytes_of(at, key.first), masks);
  if (first.find(first.run_of(key.bucket), key.in_first).count > 0) return true;
  const block_view second(bytes_of(at, key.second), masks);
  return second.find(second.run_of(key.bucket), key.in_second).count > 0;
}

// Removes a copy, unless the key has the maximum number: further ones were not counted. False: the key is absent.
BLOOMERY_TARGET inline bool remove_one(const quotient_blocks& at, const block_masks& masks, const place_of_key& key) {
  const block_view first(bytes_of(at, key.first), masks), second(bytes_of(at, key.second), masks);
  const run_of_slots in_first = first.run_of(key.bucket), in_second = second.run_of(key.bucket);
  const block_view::matches of_first = first.find(in_first, key.in_first);
  const block_view::matches of_second = second.find(in_second, key.in_second);
  if (of_first.count + of_second.count == 0) return false;
  if (of_first.count + of_second.count >= quotient_most_copies) return true;
  const bool from_first = of_first.count > 0;
  remove_slot(bytes_of(at, from_first ? key.first : key.second), at.shape,
              (from_first ? in_first : in_second).end_mark - 1, (from_first ? of_first : of_second).bit);
  return true;
}

// Some keys of a batch, whose blocks are being prefetched.
struct staged_keys {
  static constexpr std::size_t group = 16;

  BLOOMERY_TARGET void stage(const quotient_blocks& at, const std::uint64_t* hash64s, std::size_t count) {
    size = count < group ? count : group;
    for (std::size_t i = 0; i < size; ++i) {
      places[i] = place_of(hash64s[i], at);
      if (!at.fetch) continue;
      __builtin_prefetch(bytes_of(at, places[i].first), 0, 3);
      __builtin_prefetch(bytes_of(at, places[i].second), 0, 3);
    }
  }

  std::size_t size = 0;
  place_of_key places[group];
};

// Calls work.one(i, place) for each key in order until it returns false. Returns the number of keys for which it
// returned true. (A class, because attributes of lambda expressions differ between compilers.)
template <class Work>
BLOOMERY_TARGET inline std::size_t each_place(const quotient_blocks& at, const std::uint64_t* hash64s,
                                              std::size_t count, Work& work) {
  staged_keys groups[2];
  groups[0].stage(at, hash64s, count);
  for (std::size_t from = 0, turn = 0; from < count; from += staged_keys::group, turn = 1 - turn) {
    const std::size_t next = from + staged_keys::group;
    if (next < count) groups[1 - turn].stage(at, hash64s + next, count - next);
    for (std::size_t i = 0; i < groups[turn].size; ++i) {
      if (!work.one(from + i, groups[turn].places[i])) return from + i;
    }
  }
  return count;
}

struct inserting {
  BLOOMERY_TARGET bool one(std::size_t i, const place_of_key& key) {
    const insertion result = insert_one(at, masks, key);
    if (result == insertion::no_room) return false;
    const bool fresh = result == insertion::is_new;
    if (is_new != nullptr) is_new[i] = fresh ? 1 : 0;
    all_new += fresh ? 1 : 0;
    return true;
  }
  const quotient_blocks& at;
  const block_masks& masks;
  std::uint8_t* is_new;
  std::uint64_t all_new;
};

struct looking_up {
  BLOOMERY_TARGET bool one(std::size_t i, const place_of_key& key) {
    if (i % 64 == 0) bitmap[i / 64] = 0;
    bitmap[i / 64] |= std::uint64_t{has_one(at, masks, key)} << (i % 64);
    return true;
  }
  const quotient_blocks& at;
  const block_masks& masks;
  std::uint64_t* bitmap;
};

struct removing {
  BLOOMERY_TARGET bool one(std::size_t i, const place_of_key& key) {
    removed[i] = remove_one(at, masks, key) ? 1 : 0;
    return true;
  }
  const quotient_blocks& at;
  const block_masks& masks;
  std::uint8_t* removed;
};

BLOOMERY_TARGET std::size_t insert_keys(const quotient_blocks& at, const std::uint64_t* hash64s, std::size_t count,
                                        std::uint8_t* is_new, std::uint64_t& all_new) noexcept {
  const block_masks masks(at.shape);
  inserting work{at, masks, is_new, 0};
  const std::size_t inserted = each_place(at, hash64s, count, work);
  all_new += work.all_new;
  return inserted;
}

BLOOMERY_TARGET void look_up_keys(const quotient_blocks& at, const std::uint64_t* hash64s, std::size_t count,
                                  std::uint64_t* bitmap) noexcept {
  const block_masks masks(at.shape);
  looking_up work{at, masks, bitmap};
  each_place(at, hash64s, count, work);
}

BLOOMERY_TARGET void remove_keys(const quotient_blocks& at, const std::uint64_t* hash64s, std::size_t count,
                                 std::uint8_t* removed) noexcept {
  const block_masks masks(at.shape);
  removing work{at, masks, removed};
  each_place(at, hash64s, count, work);
}
