// Batch lookups in fuse filters for AVX-512. Cells and fingerprints of eight keys are computed at a time; the cells are
// loaded one by one, which was measured faster than gather instructions on AMD processors. Packed cells are loaded with
// the bytes around them, and separated from these for eight keys at a time.
#include "kernels/avx512_common.hpp"
#include "layouts/fuse_lookup.hpp"

namespace bloomery::kernels {
#if defined(__x86_64__)
namespace {

constexpr int lanes = 8;

// The partitions of eight keys.
struct partitions_of_keys {
  __m512i seed, first, starts, segment;
};

// Cells of whole bytes, the values of type F.
template <class F>
struct whole_cells {
  static constexpr int log_bytes = sizeof(F) == 1 ? 0 : sizeof(F) == 2 ? 1 : 2;

  explicit whole_cells(unsigned) {}

  // Of cells, counted from the beginning of the payload: byte offsets.
  BLOOMERY_TARGET __m512i positions(__m512i cells) const { return _mm512_slli_epi64(cells, log_bytes); }
  static std::uint64_t byte_of(std::uint64_t position) { return position; }

  // The exclusive or of three cells of each of eight keys.
  BLOOMERY_TARGET __m512i combined(const std::uint8_t* payload, const std::uint64_t* first, const std::uint64_t* second,
                                   const std::uint64_t* third) const {
    alignas(64) std::uint64_t values[lanes];
    for (int i = 0; i < lanes; ++i)
      values[i] = load(payload + first[i]) ^ load(payload + second[i]) ^ load(payload + third[i]);
    return _mm512_load_si512(values);
  }

 private:
  static std::uint64_t load(const std::uint8_t* from) {
    F value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
  }
};

// Cells of any number of bits, without gaps.
struct packed_cells {
  std::uint64_t width;

  explicit packed_cells(unsigned bits) : width(bits) {}

  // Bit offsets.
  BLOOMERY_TARGET __m512i positions(__m512i cells) const { return _mm512_mullo_epi64(cells, copies(width)); }
  static std::uint64_t byte_of(std::uint64_t position) { return position / 8; }

  BLOOMERY_TARGET __m512i combined(const std::uint8_t* payload, const std::uint64_t* first, const std::uint64_t* second,
                                   const std::uint64_t* third) const {
    const __m512i mask = copies((std::uint64_t{1} << width) - 1);
    const __m512i all =
        _mm512_xor_si512(_mm512_xor_si512(shifted(payload, first), shifted(payload, second)), shifted(payload, third));
    return _mm512_and_si512(all, mask);
  }

 private:
  // The words from the byte of a cell's first bit on, without the bits before the cell.
  BLOOMERY_TARGET static __m512i shifted(const std::uint8_t* payload, const std::uint64_t* bits) {
    alignas(64) std::uint64_t words[lanes];
    for (int i = 0; i < lanes; ++i) __builtin_memcpy(&words[i], payload + bits[i] / 8, sizeof words[i]);
    return _mm512_srlv_epi64(_mm512_load_si512(words), _mm512_and_si512(_mm512_load_si512(bits), copies(7)));
  }
};

// Positions of the cells in the payload, and the fingerprints; ~0 in a partition without keys.
struct alignas(64) group_of_keys {
  std::uint64_t first[fuse_group];
  std::uint64_t second[fuse_group];
  std::uint64_t third[fuse_group];
  std::uint64_t wanted[fuse_group];
};

template <class Cells>
struct lookup {
  const fuse_cells& at;
  Cells cells;
  partitions_of_keys only;  // if there is one partition

  BLOOMERY_TARGET explicit lookup(const fuse_cells& all)
      : at(all), cells(all.width), only(described(_mm512_setzero_si512())) {}

  // Eight times the descriptors with these numbers (fuse_partition in include/bloomery/detail/fuse.hpp).
  BLOOMERY_TARGET partitions_of_keys described(__m512i numbers) const {
    const __m512i offsets = _mm512_mullo_epi64(numbers, copies(fuse_partition_bytes));
    const std::uint8_t* const begin = at.payload + fuse_header_bytes;
    const __m512i sizes = _mm512_i64gather_epi64(offsets, begin + 24, 1);  // starts, and segment in the upper half
    return {_mm512_i64gather_epi64(offsets, begin, 1), _mm512_i64gather_epi64(offsets, begin + 8, 1),
            _mm512_and_si512(sizes, copies(0xFFFFFFFF)), _mm512_srli_epi64(sizes, 32)};
  }

  BLOOMERY_TARGET __m512i positions(__mmask8 some, __m512i begin, __m512i cell) const {
    return cells.positions(_mm512_maskz_add_epi64(some, begin, cell));
  }

  template <bool One>
  BLOOMERY_TARGET void stage(const std::uint64_t* hash64s, group_of_keys& out) const {
    const __m128i print_shift = _mm_cvtsi32_si128(64 - static_cast<int>(at.width));
    for (std::size_t i = 0; i < fuse_group; i += lanes) {
      const __m512i hash64 = _mm512_loadu_si512(hash64s + i);
      const partitions_of_keys p = One ? only : described(scaled(hash64, copies(at.partitions)));
      const __m512i h = mix8(_mm512_xor_si512(hash64, p.seed));
      const __m512i within = _mm512_sub_epi64(p.segment, copies(1));
      const __m512i first = scaled(h, p.starts);
      const __m512i next = _mm512_add_epi64(first, p.segment);
      const __m512i second = _mm512_xor_si512(next, _mm512_and_si512(_mm512_srli_epi64(h, 18), within));
      const __m512i third = _mm512_xor_si512(_mm512_add_epi64(next, p.segment), _mm512_and_si512(h, within));
      const __m512i mixed = _mm512_xor_si512(h, _mm512_srli_epi64(h, 29));
      const __m512i print = _mm512_srl_epi64(_mm512_mullo_epi64(mixed, copies(fuse_multiplier)), print_shift);
      const __mmask8 some = _mm512_test_epi64_mask(p.starts, p.starts);
      _mm512_store_si512(out.first + i, positions(some, p.first, first));
      _mm512_store_si512(out.second + i, positions(some, p.first, second));
      _mm512_store_si512(out.third + i, positions(some, p.first, third));
      _mm512_store_si512(out.wanted + i, _mm512_mask_mov_epi64(copies(~std::uint64_t{0}), some, print));
    }
    if (!at.fetch) return;
    for (std::size_t i = 0; i < fuse_group; ++i) {
      __builtin_prefetch(at.payload + Cells::byte_of(out.first[i]));
      __builtin_prefetch(at.payload + Cells::byte_of(out.second[i]));
      __builtin_prefetch(at.payload + Cells::byte_of(out.third[i]));
    }
  }

  BLOOMERY_TARGET std::uint64_t answers(const group_of_keys& keys) const {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < fuse_group; i += lanes) {
      const __m512i found = cells.combined(at.payload, keys.first + i, keys.second + i, keys.third + i);
      const __mmask8 equal = _mm512_cmpeq_epi64_mask(found, _mm512_load_si512(keys.wanted + i));
      bits |= std::uint64_t{equal} << i;
    }
    return bits;
  }

  template <bool One>
  BLOOMERY_TARGET void run(const std::uint64_t* hash64s, std::size_t groups, std::uint64_t* bitmap) const {
    group_of_keys two[2];
    if (groups > 0) stage<One>(hash64s, two[0]);
    for (std::size_t i = 0; i < groups; ++i) {
      if (i + 1 < groups) stage<One>(hash64s + (i + 1) * fuse_group, two[(i + 1) % 2]);
      bitmap[i] = answers(two[i % 2]);
    }
  }
};

template <class Cells>
BLOOMERY_TARGET void look_up(const fuse_cells& at, const std::uint64_t* hash64s, std::size_t groups,
                             std::uint64_t* bitmap) {
  const lookup<Cells> all(at);
  if (at.partitions == 1)
    all.template run<true>(hash64s, groups, bitmap);
  else
    all.template run<false>(hash64s, groups, bitmap);
}

void look_up_all(const fuse_cells& at, const std::uint64_t* hash64s, std::size_t groups,
                 std::uint64_t* bitmap) noexcept {
  if (at.width == 8) return look_up<whole_cells<std::uint8_t>>(at, hash64s, groups, bitmap);
  if (at.width == 16) return look_up<whole_cells<std::uint16_t>>(at, hash64s, groups, bitmap);
  if (at.width == 32) return look_up<whole_cells<std::uint32_t>>(at, hash64s, groups, bitmap);
  return look_up<packed_cells>(at, hash64s, groups, bitmap);
}

}  // namespace

constexpr fuse_lookup fuse_lookup_avx512 = look_up_all;

#else

constexpr fuse_lookup fuse_lookup_avx512 = nullptr;

#endif
}  // namespace bloomery::kernels
