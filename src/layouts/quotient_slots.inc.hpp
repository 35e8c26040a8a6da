// insert_slot() and remove_slot() of quotient_block.inc.hpp, word by word. Included after it.

BLOOMERY_TARGET inline void insert_slot(std::uint8_t* block, const quotient_shape& shape, unsigned mark, unsigned bit,
                                        std::uint32_t remainder) {
  std::uint64_t words[quotient_block_words];
  __builtin_memcpy(words, block, sizeof words);
  std::uint64_t moved = 0;  // the bit that the word below loses
  for (unsigned i = mark / 64; 64 * i < shape.marks(); ++i) {
    const std::uint64_t all = lower_ones(shape.marks(), i), empty = lower_ones(shape.buckets, i);
    const std::uint64_t marks = (words[i] ^ empty) & all;
    const std::uint64_t kept = marks & lower_ones(mark, i);
    words[i] = (words[i] & ~all) | (((kept | (marks ^ kept) << 1 | moved) ^ empty) & all);
    moved = marks >> 63;
  }
  const unsigned at = bit / 64, shift = bit % 64, width = shape.width;
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

BLOOMERY_TARGET inline void remove_slot(std::uint8_t* block, const quotient_shape& shape, unsigned mark, unsigned bit) {
  std::uint64_t words[quotient_block_words + 1];
  __builtin_memcpy(words, block, 8 * quotient_block_words);
  words[quotient_block_words] = 0;
  const unsigned at = bit / 64, width = shape.width;
  for (unsigned i = at; i < quotient_block_words; ++i) {
    const std::uint64_t moved = words[i] >> width | words[i + 1] << (64 - width);
    const std::uint64_t kept = lower_ones(bit, i);
    words[i] = (words[i] & kept) | (moved & ~kept);
  }
  std::uint64_t marks[quotient_marks_words + 1] = {};
  for (unsigned i = 0; i < quotient_marks_words; ++i)
    marks[i] = (words[i] ^ lower_ones(shape.buckets, i)) & lower_ones(shape.marks(), i);
  for (unsigned i = mark / 64; i < quotient_marks_words; ++i) {
    const std::uint64_t moved = marks[i] >> 1 | marks[i + 1] << 63;
    const std::uint64_t kept = lower_ones(mark, i);
    const std::uint64_t all = lower_ones(shape.marks(), i);
    const std::uint64_t changed = (marks[i] & kept) | (moved & ~kept);
    words[i] = (words[i] & ~all) | ((changed ^ lower_ones(shape.buckets, i)) & all);
  }
  __builtin_memcpy(block, words, 8 * quotient_block_words);
}
