// The blocks of a quotient filter (layouts/quotient.hpp describes them), and the operations on batches of keys.
// Included within the unnamed namespace of each implementation, which defines BLOOMERY_TARGET and the functions that
// are only declared here.

// The number of ones of a word.
unsigned ones_in(std::uint64_t x);

// The place of the one of a word that has `rank` ones below it. Requires rank < ones_in(x).
unsigned place_of_one(std::uint64_t x, unsigned rank);

#include "layouts/arithmetic.inc.hpp"

// The number of zeros above the highest one of a word, which is not 0.
BLOOMERY_TARGET inline unsigned zeros_above(std::uint64_t x) { return static_cast<unsigned>(__builtin_clzll(x)); }

// d - block (mod blocks), where d depends on the tag: applied twice, it gives the first block again.
BLOOMERY_TARGET inline std::uint64_t other_block(std::uint64_t tag, std::uint64_t block, std::uint64_t blocks) {
  const std::uint64_t d = high_product(mix64(tag + 1), blocks);
  return d >= block ? d - block : d + (blocks - block);
}

// Moves the marks of a block from number `mark` on up by one place, and the slots from bit `bit` on by one slot. Writes
// a zero and the remainder to the places that become free.
void insert_slot(std::uint8_t* block, const quotient_masks& masks, unsigned mark, unsigned bit,
                 std::uint32_t remainder);

// The reverse: removes the mark and the slot.
void remove_slot(std::uint8_t* block, const quotient_masks& masks, unsigned mark, unsigned bit);

// The slots of a bucket, and the place of the one that ends it.
struct run_of_slots {
  unsigned end_mark;
  unsigned first;
  unsigned end;
};

// A view of a block. Any bytes are allowed: those that no filter writes give some answers, but no access outside.
class block_view {
 public:
  BLOOMERY_TARGET block_view(const std::uint8_t* at, const quotient_masks& masks) : at_(at), masks_(masks) {
    std::uint64_t words[quotient_marks_words];
    __builtin_memcpy(words, at, sizeof words);
    for (unsigned i = 0; i < quotient_marks_words; ++i) marks_[i + 1] = (words[i] ^ masks.empty[i]) & masks.marks[i];
  }

  // The number of used slots: the last one of the marks ends the last bucket, and each zero before it is a slot.
  BLOOMERY_TARGET unsigned used() const {
    const unsigned ends = 64 * quotient_marks_words - zeros_above_all();
    return ends > masks_.shape.buckets ? ends - masks_.shape.buckets : 0;
  }

  // Whether each bucket ends, as in blocks that a filter writes.
  BLOOMERY_TARGET bool is_valid() const {
    unsigned ones = 0;
    for (unsigned i = 0; i < quotient_marks_words; ++i) ones += ones_in(marks_[i + 1]);
    return ones == masks_.shape.buckets;
  }

  // Whether this mark ends a bucket; the marks before it are slots of this bucket, or end other ones.
  BLOOMERY_TARGET bool ends_at(unsigned mark) const { return (marks_[mark / 64 + 1] >> mark % 64 & 1) != 0; }

  // The word with the mark that ends the bucket is chosen by its index. For all but two or three buckets of a block, it
  // also has the mark that ends the bucket before.
  BLOOMERY_TARGET run_of_slots run_of(unsigned bucket) const {
    static_assert(quotient_marks_words == 3);
    const unsigned in_first = ones_in(marks_[1]), in_second = ones_in(marks_[2]);
    const unsigned ones_below[] = {0, in_first, in_first + in_second};
    const unsigned word = (bucket >= ones_below[1] ? 1 : 0) + (bucket >= ones_below[2] ? 1 : 0);
    const unsigned rank = bucket - ones_below[word];
    const std::uint64_t marks = marks_[word + 1];
    if (rank >= ones_in(marks)) [[unlikely]]
      return rare_run(at_, masks_, bucket, masks_.shape.marks());
    const unsigned place = place_of_one(marks, rank);
    const std::uint64_t below = marks & lower_ones(place);
    if (below == 0) [[unlikely]]
      return rare_run(at_, masks_, bucket, 64 * word + place);
    return run_at(bucket, 64 * word + place, place - 64 + zeros_above(below));
  }

  BLOOMERY_TARGET unsigned bit_of(unsigned slot) const { return masks_.slots_begin + slot * masks_.shape.width; }

  // The slots of a run with this value: their number and the first bit of the first of them.
  struct matches {
    unsigned count = 0;
    unsigned bit = 0;
  };
  BLOOMERY_TARGET matches find(const run_of_slots& run, std::uint32_t wanted) const {
    const matches found = find_in_word(run.first, run.end, wanted);
    const unsigned next = run.first + masks_.slots_of_word;
    if (next >= run.end) [[likely]]
      return found;
    return found_from(at_, masks_, next, run.end, wanted, found);
  }

  // Whether the first slots of a run have this value; `are_all` becomes false if there are further ones.
  BLOOMERY_TARGET bool is_in_first(const run_of_slots& run, std::uint32_t wanted, bool& are_all) const {
    are_all &= run.end - run.first <= masks_.slots_of_word;
    return equal_in_word(run.first, run.end, wanted) != 0;
  }

  // Requires slot < slots.
  BLOOMERY_TARGET std::uint32_t value(unsigned slot) const {
    return static_cast<std::uint32_t>(bits_from(bit_of(slot)) & lower_ones(masks_.shape.width));
  }

 private:
  // At least 57 bits of the block from this one on, or all that follow; any bits if none do.
  BLOOMERY_TARGET std::uint64_t bits_from(unsigned bit) const {
    constexpr unsigned last_byte = 8 * (quotient_block_words - 1);
    const unsigned byte = bit / 8 < last_byte ? bit / 8 : last_byte;
    std::uint64_t word;
    __builtin_memcpy(&word, at_ + byte, sizeof word);
    return word >> ((bit - 8 * byte) % 64);
  }

  // Compares a value with the slots from this one on that fit into a word, all at once: most runs are so short that
  // branches would be mispredicted. The result has the highest bit of each equal slot.
  BLOOMERY_TARGET std::uint64_t equal_in_word(unsigned slot, unsigned end, std::uint32_t wanted) const {
    const unsigned slots = end - slot < masks_.slots_of_word ? end - slot : masks_.slots_of_word;
    // Equal slots are those without a one: adding ones to the other bits carries into the highest one if any is set.
    const std::uint64_t differences = bits_from(bit_of(slot)) ^ wanted * masks_.lowest;
    const std::uint64_t carried = (differences & ~masks_.highest) + masks_.carries;
    return ~(differences | carried) & masks_.highest & lower_ones(slots * masks_.shape.width);
  }

  BLOOMERY_TARGET matches find_in_word(unsigned slot, unsigned end, std::uint32_t wanted) const {
    const std::uint64_t equal = equal_in_word(slot, end, wanted);
    const auto highest_of_first = static_cast<unsigned>(__builtin_ctzll(equal | std::uint64_t{1} << 63));
    return {ones_in(equal), bit_of(slot) + highest_of_first + 1 - masks_.shape.width};
  }

  BLOOMERY_TARGET run_of_slots run_at(unsigned bucket, unsigned end_mark, unsigned length) const {
    const unsigned end = end_mark - bucket < masks_.shape.slots ? end_mark - bucket : masks_.shape.slots;
    return {end_mark, end > length ? end - length : 0, end};
  }

  // Rare cases. These functions are not inlined and read the block again, so that callers can keep it in registers.

  [[gnu::noinline, gnu::cold]] BLOOMERY_TARGET static run_of_slots rare_run(const std::uint8_t* at,
                                                                            const quotient_masks& masks,
                                                                            unsigned bucket, unsigned end_mark) {
    const block_view block(at, masks);
    unsigned word = end_mark / 64 + 1;
    std::uint64_t below = block.marks_[word] & lower_ones(end_mark % 64);
    while (below == 0) below = block.marks_[--word];
    return block.run_at(bucket, end_mark, end_mark - (64 * word - zeros_above(below)));
  }

  [[gnu::noinline, gnu::cold]] BLOOMERY_TARGET static matches found_from(const std::uint8_t* at,
                                                                         const quotient_masks& masks, unsigned slot,
                                                                         unsigned end, std::uint32_t wanted,
                                                                         matches found) {
    const block_view block(at, masks);
    for (; slot < end; slot += masks.slots_of_word) {
      const matches more = block.find_in_word(slot, end, wanted);
      if (found.count == 0) found.bit = more.bit;
      found.count += more.count;
    }
    return found;
  }

  BLOOMERY_TARGET unsigned zeros_above_all() const {
    const unsigned word = (marks_[3] != 0 ? 1 : 0) + ((marks_[3] | marks_[2]) != 0 ? 1 : 0);
    return 64 * (quotient_marks_words - 1 - word) + zeros_above(marks_[word + 1] | 1);
  }

  const std::uint8_t* at_;
  const quotient_masks& masks_;
  std::uint64_t marks_[quotient_marks_words + 1] = {~std::uint64_t{0}};  // the first word is below all marks
};

// The two blocks of a key, which may be equal, its bucket in both, and the values of its slots in the first and in the
// second one.
struct place_of_key {
  std::uint64_t blocks[2];
  unsigned bucket;
  std::uint32_t values[2];
};

BLOOMERY_TARGET inline place_of_key place_of(std::uint64_t hash64, const quotient_blocks& at) {
  const std::uint64_t first = high_product(hash64, at.count), rest = hash64 * at.count;
  const std::uint64_t tag = high_product(rest, at.masks.tags);
  const std::uint32_t remainder = static_cast<std::uint32_t>(tag) & (at.masks.second - 1);
  return {{first, other_block(tag, first, at.count)},
          static_cast<unsigned>(tag >> (at.masks.shape.width - 1)),
          {remainder, remainder | at.masks.second}};
}

BLOOMERY_TARGET inline std::uint8_t* bytes_of(const quotient_blocks& at, std::uint64_t block) {
  return at.bytes + 8 * quotient_block_words * block;
}

// The blocks of a key and its slots in them. Which block has a slot, or receives one, is random: both are searched, and
// one is chosen by its index, because a branch would be mispredicted for half of the keys. Always part of its callers,
// which do not use all of it: with fewer instructions, the processor loads the blocks of the next key earlier.
struct slots_of_key {
  BLOOMERY_TARGET [[gnu::always_inline]] slots_of_key(const quotient_blocks& at, const place_of_key& key)
      : blocks{block_view(bytes_of(at, key.blocks[0]), at.masks), block_view(bytes_of(at, key.blocks[1]), at.masks)},
        runs{blocks[0].run_of(key.bucket), blocks[1].run_of(key.bucket)},
        found{blocks[0].find(runs[0], key.values[0]), blocks[1].find(runs[1], key.values[1])} {}

  BLOOMERY_TARGET unsigned copies() const { return found[0].count + found[1].count; }

  block_view blocks[2];
  run_of_slots runs[2];
  block_view::matches found[2];
};

enum class insertion { is_new, is_copy, no_room };

// Inserts a copy into the block with more free slots.
BLOOMERY_TARGET inline insertion insert_one(const quotient_blocks& at, const place_of_key& key) {
  const slots_of_key of_key(at, key);
  const unsigned copies = of_key.copies();
  if (copies >= quotient_most_copies) return insertion::is_copy;
  const unsigned used[2] = {of_key.blocks[0].used(), of_key.blocks[1].used()};
  const unsigned to = used[1] < used[0] ? 1 : 0;
  const run_of_slots& run = of_key.runs[to];
  if (used[to] >= at.masks.shape.slots || run.end >= at.masks.shape.slots) return insertion::no_room;
  insert_slot(bytes_of(at, key.blocks[to]), at.masks, run.end_mark, of_key.blocks[0].bit_of(run.end), key.values[to]);
  return copies == 0 ? insertion::is_new : insertion::is_copy;
}

BLOOMERY_TARGET inline bool has_one(const quotient_blocks& at, const place_of_key& key) {
  const block_view first(bytes_of(at, key.blocks[0]), at.masks), second(bytes_of(at, key.blocks[1]), at.masks);
  const run_of_slots runs[2] = {first.run_of(key.bucket), second.run_of(key.bucket)};
  bool are_all = true;
  const bool is_in[2] = {first.is_in_first(runs[0], key.values[0], are_all),
                         second.is_in_first(runs[1], key.values[1], are_all)};
  return are_all ? is_in[0] | is_in[1] : slots_of_key(at, key).copies() > 0;
}

// Removes a copy, unless the key has the maximum number: further ones were not counted. False: the key is absent.
BLOOMERY_TARGET inline bool remove_one(const quotient_blocks& at, const place_of_key& key) {
  const slots_of_key of_key(at, key);
  if (of_key.copies() == 0) return false;
  if (of_key.copies() >= quotient_most_copies) return true;
  const unsigned from = of_key.found[0].count > 0 ? 0 : 1;
  remove_slot(bytes_of(at, key.blocks[from]), at.masks, of_key.runs[from].end_mark - 1, of_key.found[from].bit);
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
      __builtin_prefetch(bytes_of(at, places[i].blocks[0]), 0, 3);
      __builtin_prefetch(bytes_of(at, places[i].blocks[1]), 0, 3);
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
  if (count == 1) return work.one(0, place_of(hash64s[0], at)) ? 1 : 0;
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
    const insertion result = insert_one(at, key);
    if (result == insertion::no_room) return false;
    const bool fresh = result == insertion::is_new;
    if (is_new != nullptr) is_new[i] = fresh ? 1 : 0;
    all_new += fresh ? 1 : 0;
    return true;
  }
  const quotient_blocks& at;
  std::uint8_t* is_new;
  std::uint64_t all_new;
};

struct looking_up {
  BLOOMERY_TARGET bool one(std::size_t i, const place_of_key& key) {
    if (i % 64 == 0) bitmap[i / 64] = 0;
    bitmap[i / 64] |= std::uint64_t{has_one(at, key)} << (i % 64);
    return true;
  }
  const quotient_blocks& at;
  std::uint64_t* bitmap;
};

struct removing {
  BLOOMERY_TARGET bool one(std::size_t i, const place_of_key& key) {
    removed[i] = remove_one(at, key) ? 1 : 0;
    return true;
  }
  const quotient_blocks& at;
  std::uint8_t* removed;
};

// The operations of a kernel, by one of the works above, or by a work and a loop for several keys at once.
template <class Work, auto each = each_place<Work>>
BLOOMERY_TARGET std::size_t insert_keys(const quotient_blocks& at, const std::uint64_t* hash64s, std::size_t count,
                                        std::uint8_t* is_new, std::uint64_t& all_new) noexcept {
  Work work{at, is_new, 0};
  const std::size_t inserted = each(at, hash64s, count, work);
  all_new += work.all_new;
  return inserted;
}

template <class Work, auto each = each_place<Work>>
BLOOMERY_TARGET void look_up_keys(const quotient_blocks& at, const std::uint64_t* hash64s, std::size_t count,
                                  std::uint64_t* bitmap) noexcept {
  Work work{at, bitmap};
  each(at, hash64s, count, work);
}

BLOOMERY_TARGET bool look_up_key(const quotient_blocks& at, std::uint64_t hash64) noexcept {
  return has_one(at, place_of(hash64, at));
}

template <class Work, auto each = each_place<Work>>
BLOOMERY_TARGET void remove_keys(const quotient_blocks& at, const std::uint64_t* hash64s, std::size_t count,
                                 std::uint8_t* removed) noexcept {
  Work work{at, removed};
  each(at, hash64s, count, work);
}
