// Keys of quotient filters, eight at a time: each lane of a register computes for one key what quotient_block.inc.hpp
// computes for it, with the same results. Included, after that file, by the kernel for AVX-512.

constexpr std::size_t lanes = 8;

// The places of up to eight keys, whose blocks are being prefetched.
struct eight_keys {
  BLOOMERY_TARGET void stage(const quotient_blocks& at, const std::uint64_t* hash64s, std::size_t count) {
    size = count < lanes ? count : lanes;
    const __m512i all = _mm512_maskz_loadu_epi64(static_cast<__mmask8>((1U << size) - 1), hash64s);
    const __m512i first = high_products(all, at.count);
    const __m512i rest = _mm512_mullo_epi64(all, copies(at.count));
    const __m512i tag = scaled(rest, copies(at.masks.tags));
    const __m512i d = high_products(mix8(_mm512_add_epi64(tag, copies(1))), at.count);
    const __mmask8 is_below = _mm512_cmplt_epu64_mask(d, first);
    const __m512i difference = _mm512_sub_epi64(d, first);
    const __m512i second = _mm512_mask_add_epi64(difference, is_below, difference, copies(at.count));
    bucket = _mm512_srlv_epi64(tag, copies(at.masks.shape.width - 1));
    remainder = _mm512_and_si512(tag, copies(at.masks.second - 1));
    _mm512_store_si512(offsets[0], _mm512_slli_epi64(first, log_block_bytes));
    _mm512_store_si512(offsets[1], _mm512_slli_epi64(second, log_block_bytes));
    if (!at.fetch) return;
    for (std::size_t i = 0; i < lanes; ++i) {
      __builtin_prefetch(at.bytes + offsets[0][i], 0, 3);
      __builtin_prefetch(at.bytes + offsets[1][i], 0, 3);
    }
  }

  // Whether all blocks differ, so that the operations on these keys do not depend on each other. Compares the lower 32
  // bits of the blocks' numbers, so it is false for some blocks that differ; false for fewer than eight keys.
  BLOOMERY_TARGET bool are_separate() const {
    if (size < lanes) return false;
    const __m256i first = _mm512_cvtepi64_epi32(_mm512_srli_epi64(offsets_of(0), log_block_bytes));
    const __m256i second = _mm512_cvtepi64_epi32(_mm512_srli_epi64(offsets_of(1), log_block_bytes));
    const __m512i equals = _mm512_conflict_epi32(_mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1));
    return _mm512_test_epi32_mask(equals, equals) == 0;
  }

  // The offsets of the first or the second blocks, in bytes.
  BLOOMERY_TARGET __m512i offsets_of(unsigned i) const { return _mm512_load_si512(offsets[i]); }

  static constexpr unsigned log_block_bytes = 6;
  static_assert(8 * quotient_block_words == 1 << log_block_bytes);

  std::size_t size;
  __m512i bucket, remainder;
  alignas(64) std::uint64_t offsets[2][lanes];
};

// Words chosen by lane.
BLOOMERY_TARGET inline __m512i either(__mmask8 is_second, __m512i first, __m512i second) {
  return _mm512_mask_mov_epi64(first, is_second, second);
}

// The number of ones of each byte. Requires bytes below 16.
BLOOMERY_TARGET inline __m512i ones_of_halves(__m512i x) {
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4)), x);
}

// The number of ones of each byte.
BLOOMERY_TARGET inline __m512i ones_of_bytes(__m512i x) {
  const __m512i lower = _mm512_set1_epi8(15);
  return _mm512_add_epi8(ones_of_halves(_mm512_and_si512(x, lower)),
                         ones_of_halves(_mm512_and_si512(_mm512_srli_epi16(x, 4), lower)));
}

BLOOMERY_TARGET inline __m512i sums_of_bytes(__m512i x) { return _mm512_sad_epu8(x, _mm512_setzero_si512()); }

// Goes to the upper part of `x`, which begins at bit `By`, where `rank` ones or fewer are below.
template <unsigned By>
BLOOMERY_TARGET inline void skip_lower(__m512i& x, __m512i& rank, __m512i& place) {
  const __m512i below = ones_of_halves(_mm512_and_si512(x, copies(lower_ones(By))));
  const __mmask8 skips = _mm512_cmpge_epu64_mask(rank, below);
  rank = _mm512_mask_sub_epi64(rank, skips, rank, below);
  place = _mm512_mask_add_epi64(place, skips, place, copies(By));
  x = _mm512_mask_srli_epi64(x, skips, x, By);
}

// The place of the one that has `rank` ones below it, given the ones of each byte: the byte, by the sums of ones up to
// each one, then the half of this byte, and so on.
BLOOMERY_TARGET inline __m512i places_of_ones(__m512i x, __m512i ones, __m512i rank) {
  __m512i sums = _mm512_add_epi64(ones, _mm512_slli_epi64(ones, 8));
  sums = _mm512_add_epi64(sums, _mm512_slli_epi64(sums, 16));
  sums = _mm512_add_epi64(sums, _mm512_slli_epi64(sums, 32));
  const __m512i to_all_bytes = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8));
  const __mmask64 skipped = _mm512_cmple_epu8_mask(sums, _mm512_shuffle_epi8(rank, to_all_bytes));
  __m512i place = _mm512_slli_epi64(sums_of_bytes(_mm512_maskz_set1_epi8(skipped, 1)), 3);
  const __m512i byte = copies(0xFF);
  rank = _mm512_sub_epi64(rank, _mm512_and_si512(_mm512_srlv_epi64(_mm512_slli_epi64(sums, 8), place), byte));
  x = _mm512_and_si512(_mm512_srlv_epi64(x, place), byte);
  skip_lower<4>(x, rank, place);
  skip_lower<2>(x, rank, place);
  skip_lower<1>(x, rank, place);
  return place;
}

// a - b, or 0 if this is negative; both below 2^16.
BLOOMERY_TARGET inline __m512i positive_difference(__m512i a, __m512i b) { return _mm512_subs_epu16(a, b); }

// One of three words by its number.
struct chosen_words {
  __mmask8 is_second, is_third;
  BLOOMERY_TARGET __m512i operator()(__m512i first, __m512i second, __m512i third) const {
    return either(is_third, either(is_second, first, second), third);
  }
};

// A block of each of eight keys.
class eight_views {
 public:
  BLOOMERY_TARGET eight_views(const quotient_blocks& at, const std::uint64_t* offsets) : masks_(at.masks) {
    static_assert(quotient_marks_words == 3);
    const __m512i a = two_of(at, offsets[0], offsets[4]), b = two_of(at, offsets[1], offsets[5]);
    const __m512i c = two_of(at, offsets[2], offsets[6]), d = two_of(at, offsets[3], offsets[7]);
    const __m512i ab = _mm512_unpacklo_epi64(a, b), cd = _mm512_unpacklo_epi64(c, d);
    const __m512i even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    const __m512i odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    marks_[0] = marks_in(0, _mm512_permutex2var_epi64(ab, even, cd));
    marks_[1] = marks_in(1, _mm512_permutex2var_epi64(_mm512_unpackhi_epi64(a, b), even, _mm512_unpackhi_epi64(c, d)));
    marks_[2] = marks_in(2, _mm512_permutex2var_epi64(ab, odd, cd));
  }

  BLOOMERY_TARGET __m512i used() const {
    const __mmask8 third = _mm512_test_epi64_mask(marks_[2], marks_[2]);
    const auto second = static_cast<__mmask8>(third | _mm512_test_epi64_mask(marks_[1], marks_[1]));
    const chosen_words last{second, third};
    const __m512i word = _mm512_or_si512(last(marks_[0], marks_[1], marks_[2]), copies(1));
    const __m512i ends = _mm512_sub_epi64(last(copies(64), copies(128), copies(192)), _mm512_lzcnt_epi64(word));
    return positive_difference(ends, copies(masks_.shape.buckets));
  }

  // The slots of a bucket per key; false: at least one run is too long for this (64 slots).
  struct runs {
    __m512i end_mark, first, end;
  };
  BLOOMERY_TARGET bool find_runs(__m512i bucket, runs& found) const {
    found.end_mark = places_of_marks(bucket);
    const __m512i bit = _mm512_and_si512(found.end_mark, copies(63));
    const chosen_words of_place{_mm512_cmpge_epu64_mask(found.end_mark, copies(64)),
                                _mm512_cmpge_epu64_mask(found.end_mark, copies(128))};
    const __m512i word = of_place(marks_[0], marks_[1], marks_[2]);
    const __m512i before = of_place(_mm512_set1_epi64(-1), marks_[0], marks_[1]);
    const __m512i up = _mm512_xor_si512(bit, copies(63));
    const __m512i below =
        _mm512_or_si512(_mm512_sllv_epi64(_mm512_slli_epi64(word, 1), up), _mm512_srlv_epi64(before, bit));
    found.end = _mm512_min_epu64(_mm512_sub_epi64(found.end_mark, bucket), copies(masks_.shape.slots));
    found.first = positive_difference(found.end, _mm512_lzcnt_epi64(below));
    return _mm512_test_epi64_mask(below, below) == 0xFF;
  }

  BLOOMERY_TARGET __m512i bits_of(__m512i slots) const {
    return _mm512_add_epi64(_mm512_mul_epu32(slots, copies(masks_.shape.width)), copies(masks_.slots_begin));
  }

  // The slots of the runs with a value: the lanes that have one, the number and the first bit of the first of them.
  // The values are given as copies in all slots of a word.
  struct matches {
    __mmask8 any;
    __m512i count, bit;
  };
  BLOOMERY_TARGET matches find(const quotient_blocks& at, __m512i offsets, const runs& of, __m512i wanted) const {
    const __m512i step = copies(masks_.slots_of_word);
    matches found = find_in_words(at, offsets, of.first, of.end, wanted);
    __m512i slot = _mm512_add_epi64(of.first, step);
    while (_mm512_cmplt_epu64_mask(slot, of.end) != 0) {
      const matches more = find_in_words(at, offsets, _mm512_min_epu64(slot, of.end), of.end, wanted);
      found.bit = _mm512_mask_mov_epi64(more.bit, found.any, found.bit);
      found.count = _mm512_add_epi64(found.count, more.count);
      found.any |= more.any;
      slot = _mm512_add_epi64(slot, step);
    }
    return found;
  }

 private:
  // The first half of two blocks.
  BLOOMERY_TARGET static __m512i two_of(const quotient_blocks& at, std::uint64_t first, std::uint64_t second) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at.bytes + first));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at.bytes + second));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }

  BLOOMERY_TARGET __m512i marks_in(unsigned word, __m512i x) const {
    return _mm512_and_si512(_mm512_xor_si512(x, copies(masks_.empty[word])), copies(masks_.marks[word]));
  }

  BLOOMERY_TARGET __m512i places_of_marks(__m512i rank) const {
    const __m512i ones[] = {ones_of_bytes(marks_[0]), ones_of_bytes(marks_[1]), ones_of_bytes(marks_[2])};
    const __m512i in_first = sums_of_bytes(ones[0]);
    const __m512i in_two = _mm512_add_epi64(in_first, sums_of_bytes(ones[1]));
    const __m512i in_all = _mm512_add_epi64(in_two, sums_of_bytes(ones[2]));
    const chosen_words of_rank{_mm512_cmpge_epu64_mask(rank, in_first), _mm512_cmpge_epu64_mask(rank, in_two)};
    const __m512i places =
        _mm512_add_epi64(places_of_ones(of_rank(marks_[0], marks_[1], marks_[2]), of_rank(ones[0], ones[1], ones[2]),
                                        _mm512_sub_epi64(rank, of_rank(_mm512_setzero_si512(), in_first, in_two))),
                         of_rank(_mm512_setzero_si512(), copies(64), copies(128)));
    return _mm512_mask_mov_epi64(places, _mm512_cmpge_epu64_mask(rank, in_all), copies(masks_.shape.marks()));
  }

  // The same as find() for the slots from these on that a word contains. Requires slot <= end.
  BLOOMERY_TARGET matches find_in_words(const quotient_blocks& at, __m512i offsets, __m512i slot, __m512i end,
                                        __m512i wanted) const {
    constexpr unsigned last_byte = 8 * (quotient_block_words - 1);
    const __m512i width = copies(masks_.shape.width);
    const __m512i bit = bits_of(slot);
    const __m512i byte = _mm512_min_epu64(_mm512_srli_epi64(bit, 3), copies(last_byte));
    // One by one, because gather instructions are not faster (docs/decisions.md).
    alignas(64) std::uint64_t from[lanes], words[lanes];
    _mm512_store_si512(from, _mm512_add_epi64(offsets, byte));
    for (std::size_t i = 0; i < lanes; ++i) __builtin_memcpy(&words[i], at.bytes + from[i], 8);
    const __m512i loaded = _mm512_load_si512(words);
    const __m512i shift = _mm512_sub_epi64(bit, _mm512_slli_epi64(byte, 3));
    const __m512i word = _mm512_srlv_epi64(loaded, shift);
    const __m512i slots = _mm512_min_epu64(_mm512_sub_epi64(end, slot), copies(masks_.slots_of_word));
    const __m512i highest = copies(masks_.highest);
    const __m512i differences = _mm512_xor_si512(word, wanted);
    const __m512i carried = _mm512_add_epi64(_mm512_andnot_si512(highest, differences), copies(masks_.carries));
    const __m512i others = _mm512_sllv_epi64(_mm512_set1_epi64(-1), _mm512_mul_epu32(slots, width));
    const __m512i unequal = _mm512_or_si512(_mm512_or_si512(differences, carried), others);
    const __m512i equal = _mm512_andnot_si512(unequal, highest);
    const __m512i lowest = _mm512_and_si512(equal, _mm512_sub_epi64(_mm512_setzero_si512(), equal));
    const __m512i highest_of_first = _mm512_sub_epi64(copies(63), _mm512_lzcnt_epi64(lowest));
    return {_mm512_test_epi64_mask(equal, equal), sums_of_bytes(ones_of_bytes(equal)),
            _mm512_sub_epi64(_mm512_add_epi64(bit, highest_of_first), copies(masks_.shape.width - 1))};
  }

  const quotient_masks& masks_;
  __m512i marks_[quotient_marks_words];
};

// slots_of_key for eight keys. Like slots_of_key, always part of its callers.
struct slots_of_eight {
  BLOOMERY_TARGET [[gnu::always_inline]] slots_of_eight(const quotient_blocks& at, const eight_keys& keys)
      : blocks{eight_views(at, keys.offsets[0]), eight_views(at, keys.offsets[1])} {
    const bool first_is_short = blocks[0].find_runs(keys.bucket, runs[0]);
    are_short = blocks[1].find_runs(keys.bucket, runs[1]) && first_is_short;
    const __m512i wanted = _mm512_mullo_epi64(keys.remainder, copies(at.masks.lowest));
    found[0] = blocks[0].find(at, keys.offsets_of(0), runs[0], wanted);
    found[1] = blocks[1].find(at, keys.offsets_of(1), runs[1], _mm512_xor_si512(wanted, copies(at.masks.highest)));
  }

  BLOOMERY_TARGET __m512i copies_of_keys() const { return _mm512_add_epi64(found[0].count, found[1].count); }

  eight_views blocks[2];
  eight_views::runs runs[2];
  eight_views::matches found[2];
  bool are_short;
};

// Where the slots of eight keys are inserted or removed.
struct eight_changes {
  BLOOMERY_TARGET eight_changes(const quotient_blocks& at, const eight_keys& keys, __mmask8 is_second, __m512i marks,
                                __m512i bits) {
    const __m512i second = copies(at.masks.second);
    _mm512_store_si512(mark, marks);
    _mm512_store_si512(bit, bits);
    _mm512_store_si512(value, _mm512_mask_or_epi64(keys.remainder, is_second, keys.remainder, second));
    _mm512_store_si512(offset, either(is_second, keys.offsets_of(0), keys.offsets_of(1)));
  }
  alignas(64) std::uint64_t mark[lanes], bit[lanes], value[lanes], offset[lanes];
};

// Calls work.eight(i, keys) for eight keys at a time. If it returns false, because the keys depend on each other or are
// rare cases, it has done nothing, and work.one() is called for each of them. Returns what each_place() returns.
template <class Work>
BLOOMERY_TARGET inline std::size_t each_eight(const quotient_blocks& at, const std::uint64_t* hash64s,
                                              std::size_t count, Work& work) {
  if (count < lanes) return each_place(at, hash64s, count, work);
  constexpr std::size_t staged = 4;  // groups: this one, and the next ones, which are being prefetched
  eight_keys groups[staged];
  for (std::size_t i = 0; i + 1 < staged && lanes * i < count; ++i)
    groups[i].stage(at, hash64s + lanes * i, count - lanes * i);
  for (std::size_t from = 0, turn = 0; from < count; from += lanes, turn = (turn + 1) % staged) {
    const std::size_t next = from + lanes * (staged - 1);
    if (next < count) groups[(turn + staged - 1) % staged].stage(at, hash64s + next, count - next);
    if (work.eight(from, groups[turn])) continue;
    for (std::size_t i = from; i < from + groups[turn].size; ++i) {
      if (!work.one(i, place_of(hash64s[i], at))) return i;
    }
  }
  return count;
}

struct inserting_eight : inserting {
  BLOOMERY_TARGET bool eight(std::size_t from, const eight_keys& keys) {
    if (!keys.are_separate()) return false;
    const slots_of_eight of_keys(at, keys);
    const quotient_shape& shape = at.masks.shape;
    const __m512i used[] = {of_keys.blocks[0].used(), of_keys.blocks[1].used()};
    const __mmask8 to_second = _mm512_cmplt_epu64_mask(used[1], used[0]);
    const __m512i end = either(to_second, of_keys.runs[0].end, of_keys.runs[1].end);
    const __m512i most = copies(shape.slots);
    const __mmask8 has_room =
        _mm512_cmplt_epu64_mask(either(to_second, used[0], used[1]), most) & _mm512_cmplt_epu64_mask(end, most);
    const __m512i present = of_keys.copies_of_keys();
    const __mmask8 is_full = _mm512_cmpge_epu64_mask(present, copies(quotient_most_copies));
    if (!of_keys.are_short || has_room != 0xFF || is_full != 0) return false;
    const eight_changes change(at, keys, to_second,
                               either(to_second, of_keys.runs[0].end_mark, of_keys.runs[1].end_mark),
                               of_keys.blocks[0].bits_of(end));
    for (std::size_t i = 0; i < lanes; ++i) {
      insert_slot(at.bytes + change.offset[i], at.masks, static_cast<unsigned>(change.mark[i]),
                  static_cast<unsigned>(change.bit[i]), static_cast<std::uint32_t>(change.value[i]));
    }
    const unsigned fresh = _mm512_testn_epi64_mask(present, present);
    all_new += ones_in(fresh);
    if (is_new != nullptr) {
      for (std::size_t i = 0; i < lanes; ++i) is_new[from + i] = fresh >> i & 1;
    }
    return true;
  }
};

struct looking_up_eight : looking_up {
  BLOOMERY_TARGET bool eight(std::size_t from, const eight_keys& keys) {
    const slots_of_eight of_keys(at, keys);
    if (!of_keys.are_short) return false;
    if (from % 64 == 0) bitmap[from / 64] = 0;
    const std::uint64_t any =
        (of_keys.found[0].any | of_keys.found[1].any) & lower_ones(static_cast<unsigned>(keys.size));
    bitmap[from / 64] |= any << from % 64;
    return true;
  }
};

struct removing_eight : removing {
  BLOOMERY_TARGET bool eight(std::size_t from, const eight_keys& keys) {
    if (!keys.are_separate()) return false;
    const slots_of_eight of_keys(at, keys);
    const __mmask8 is_full = _mm512_cmpge_epu64_mask(of_keys.copies_of_keys(), copies(quotient_most_copies));
    if (!of_keys.are_short || is_full != 0) return false;
    const unsigned present = of_keys.found[0].any | of_keys.found[1].any;
    const auto from_second = static_cast<__mmask8>(~of_keys.found[0].any);
    const __m512i end = either(from_second, of_keys.runs[0].end_mark, of_keys.runs[1].end_mark);
    const eight_changes change(at, keys, from_second, _mm512_sub_epi64(end, copies(1)),
                               either(from_second, of_keys.found[0].bit, of_keys.found[1].bit));
    for (std::size_t i = 0; i < lanes; ++i) {
      removed[from + i] = present >> i & 1;
      if (removed[from + i] == 0) continue;
      remove_slot(at.bytes + change.offset[i], at.masks, static_cast<unsigned>(change.mark[i]),
                  static_cast<unsigned>(change.bit[i]));
    }
    return true;
  }
};
