// Bumped ribbon filters [Dillinger, Hübschle-Schneider, Sanders & Walzer 2022, "Fast Succinct Retrieval and Approximate
// Membership Using Ribbon"]: built once from all their keys, then immutable. They take the least memory of all filters
// here, 1.006 w bits per key, but a lookup computes more than one in a fuse filter.
//
//   partition:  | layer 0: blocks, thresholds | layer 1: blocks, thresholds | ... | last layer: blocks |
//
// A slot has w bits. A block is 64 slots, stored by columns: word i of its w words has bit i of each slot. A key has 64
// consecutive slots from `start` on, a coefficient for each of them, and a fingerprint. The slots are the solution of a
// system of linear equations over bits: the exclusive or of the slots whose coefficient is 1 is the fingerprint.
//
//   h            = mix64(hash64 ^ seed)                    with the seed of the partition; in each further layer,
//   h            = mix64(h + multiplier)
//   start        = hi64(h * 64 (blocks - 1))
//   coefficients = h * coefficient_multiplier | 1          bit j: of slot start + j
//   fingerprint  = upper bits of (h ^ h >> 29) * multiplier
//
// A layer has fewer slots than keys. A bucket of 128 starts has a threshold, and its keys that start below it are in
// the next layer instead. The last layer has slots enough for all its keys.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/function_ref.hpp>
#include <bloomery/detail/geometry.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/detail/key_hash.hpp>
#include <bloomery/detail/static_payload.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

/// The descriptor of a partition in the payload.
struct ribbon_partition {
  static constexpr std::size_t most_layers = 8;

  std::uint64_t seed = 0;
  std::uint64_t first = 0;                             ///< its first word, counted from the beginning of the payload
  std::uint64_t keys = 0;                              ///< 0: it has no layers, and every lookup returns false
  std::array<std::uint32_t, most_layers> blocks = {};  ///< of each layer, 2 or more; 0: no such layer
  std::uint64_t reserved = 0;

  friend bool operator==(const ribbon_partition&, const ribbon_partition&) = default;
};

namespace ribbon {

inline constexpr std::uint32_t probes = 1;  // one run of slots
inline constexpr std::uint64_t partition_bytes = 64;
static_assert(sizeof(ribbon_partition) == partition_bytes);

inline constexpr std::uint32_t slots_of_block = 64;
inline constexpr std::uint32_t starts_of_bucket = 128;
inline constexpr std::uint64_t coefficient_multiplier = 0xD6E8FEB86659FD93;  // odd

/// The values of a threshold, of 2 bits.
inline constexpr std::array<std::uint32_t, 4> thresholds = {0, 8, 32, starts_of_bucket};

/// The threshold of a bucket, from the word that contains it.
constexpr std::uint32_t threshold(std::uint64_t word, std::uint64_t bucket) noexcept {
  return thresholds[word >> 2 * (bucket % 32) & 3];
}

/// The slots that can be the first slot of a key. The block after that of the last one exists, so lookups need no check
/// for the end.
constexpr std::uint64_t starts_of(std::uint32_t blocks) noexcept {
  return std::uint64_t{slots_of_block} * (blocks - 1);
}

constexpr std::uint64_t buckets_of(std::uint32_t blocks) noexcept {
  return (starts_of(blocks) + starts_of_bucket - 1) / starts_of_bucket;
}

/// Words of the thresholds of a layer that is not the last one: 32 in each.
constexpr std::uint64_t threshold_words(std::uint32_t blocks) noexcept { return (buckets_of(blocks) + 31) / 32; }

/// The number of layers.
constexpr std::size_t layers_of(const ribbon_partition& p) noexcept {
  std::size_t layers = 0;
  while (layers < p.blocks.size() && p.blocks[layers] != 0) ++layers;
  return layers;
}

/// Words of layer `i`.
constexpr std::uint64_t words_of(const ribbon_partition& p, std::size_t i, unsigned width) noexcept {
  const bool is_last = i + 1 == p.blocks.size() || p.blocks[i + 1] == 0;
  return std::uint64_t{p.blocks[i]} * width + (is_last ? 0 : threshold_words(p.blocks[i]));
}

/// Words of a partition.
constexpr std::uint64_t words_of(const ribbon_partition& p, unsigned width) noexcept {
  std::uint64_t words = 0;
  for (std::size_t i = 0; i < layers_of(p); ++i) words += words_of(p, i, width);
  return words;
}

/// The first word of the first partition.
constexpr std::uint64_t first_word(std::uint64_t partitions) noexcept {
  return (sealed::header_bytes + partitions * partition_bytes) / 8;
}

/// The size of a payload with `words` words, including those of the head and the table.
constexpr std::uint64_t payload_bytes(std::uint64_t words) noexcept { return (8 * words + 63) / 64 * 64; }

inline ribbon_partition partition_in(const std::uint8_t* payload, std::uint64_t number) noexcept {
  ribbon_partition p;
  std::memcpy(&p, payload + sealed::header_bytes + number * partition_bytes, sizeof p);
  return p;
}

/// The hash of a key in the next layer.
inline std::uint64_t next_layer(std::uint64_t h) noexcept { return mix64(h + sealed::multiplier); }

/// The equation of a key in a layer.
struct equation {
  std::uint64_t start;
  std::uint64_t coefficients;
  std::uint32_t fingerprint;

  equation(std::uint64_t h, std::uint32_t blocks, unsigned width) noexcept
      : start(multiply_high(h, starts_of(blocks))),
        coefficients(h * coefficient_multiplier | 1),
        fingerprint(static_cast<std::uint32_t>(((h ^ h >> 29) * sealed::multiplier) >> (64 - width))) {}
};

/// The slots that a lookup combines: those of the layer that has the key.
struct place {
  std::uint64_t word = 0;  ///< the first word of the block with the first slot, counted from the payload's
  unsigned shift = 0;      ///< the number of the first slot in this block
  std::uint64_t coefficients = 0;
  std::uint32_t fingerprint = 0;
};

/// Word `i` of a payload.
inline std::uint64_t word_of(const std::uint8_t* payload, std::uint64_t i) noexcept {
  std::uint64_t word;
  std::memcpy(&word, payload + 8 * i, sizeof word);
  return word;
}

/// The place of a key in a partition with keys. `visit` is called with the number of each word of thresholds before it
/// is read, and may throw. Of the hashes, only the bits of `used` matter: all, except in cascades (cascade.hpp).
template <class Visit>
place place_of(const ribbon_partition& p, const std::uint8_t* payload, std::uint64_t hash64, unsigned width,
               Visit visit, std::uint64_t used = ~std::uint64_t{0}) {
  std::uint64_t h = mix64((hash64 & used) ^ p.seed) & used;
  std::uint64_t word = p.first;
  for (std::size_t i = 0;; ++i) {
    const equation e(h, p.blocks[i], width);
    const bool is_last = i + 1 == p.blocks.size() || p.blocks[i + 1] == 0;
    if (!is_last) {
      const std::uint64_t bucket = e.start / starts_of_bucket;
      const std::uint64_t at = word + std::uint64_t{p.blocks[i]} * width + bucket / 32;
      visit(at);
      if (e.start % starts_of_bucket < threshold(word_of(payload, at), bucket)) {
        word += words_of(p, i, width);
        h = next_layer(h) & used;
        continue;
      }
    }
    return {word + e.start / slots_of_block * width, static_cast<unsigned>(e.start % slots_of_block), e.coefficients,
            e.fingerprint};
  }
}

/// Bit `i` of the slots from a place on: bit j is that of slot j.
inline std::uint64_t column(const std::uint8_t* payload, const place& at, unsigned i, unsigned width) noexcept {
  return word_of(payload, at.word + i) >> at.shift | word_of(payload, at.word + width + i) << 1 << (63 - at.shift);
}

/// The exclusive or of the slots with coefficient 1.
inline std::uint32_t combined(const std::uint8_t* payload, const place& at, unsigned width) noexcept {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < width; ++i) {
    value |= static_cast<std::uint32_t>(__builtin_parityll(column(payload, at, i, width) & at.coefficients)) << i;
  }
  return value;
}

/// Whether the key with this hash may be present. The payload must have been checked.
bool has(const std::uint8_t* payload, std::uint64_t hash64) noexcept;

/// Looks up many keys: bit i%64 of bitmap[i/64] is the answer for key i.
void has_batch(const std::uint8_t* payload, const hash_span& keys, std::uint64_t* bitmap) noexcept;

}  // namespace ribbon

/// "ribbon1" to "ribbon32". @throws error invalid_argument: another width
std::string_view ribbon_layout_name(std::uint64_t width);

/// The size of a ribbon filter of `keys` keys, assuming that keys are spread evenly over the partitions and that no
/// partition has to be enlarged.
///
/// @param width  1 to 32, bits
///
/// Example:
///     assert(ribbon_geometry(7, 1'000'000).bits < 7'060'000);
geometry ribbon_geometry(unsigned width, std::uint64_t keys);

/// Checks the sizes, positions and sums in an untrusted payload. After this, lookups stay within the payload, whatever
/// its other words contain.
/// @throws error  damaged: names the field
void check_ribbon(unsigned width, std::span<const std::uint8_t> payload, const std::string& where);

/// The same, if the head has other contents from byte 16 to byte `unchecked`.
void check_ribbon(unsigned width, std::span<const std::uint8_t> payload, const std::string& where,
                  std::uint64_t unchecked);

template <>
struct sealed::lookups<static_structure::ribbon> {
  static constexpr void (*check)(unsigned, std::span<const std::uint8_t>, const std::string&) = check_ribbon;

  explicit lookups(const std::uint8_t*) noexcept {}

  template <unsigned>
  bool has(const std::uint8_t* payload, std::uint64_t hash64) const noexcept {
    return ribbon::has(payload, hash64);
  }
  static void has_batch(const std::uint8_t* payload, std::uint64_t, const hash_span& keys,
                        std::uint64_t* bitmap) noexcept {
    ribbon::has_batch(payload, keys, bitmap);
  }
};

/// Builds a filter of the keys with these hashes and verifies each key with a lookup. Equal sets give equal bytes,
/// independent of order, repetitions and number of threads.
///
/// Building takes the memory of the filter and about 60 MiB per thread. `hash64s` is reordered; its contents are
/// unspecified afterwards.
///
/// @param hash64s  the hash64 of each key; may be empty
/// @param width    1 to 32
/// @param threads  0: one per processor
/// @throws error   invalid_argument: another width; too_large: more than this machine's memory; what `watch` throws
static_bytes ribbon_build(std::span<std::uint64_t> hash64s, unsigned width, unsigned threads = 0,
                          const build_watch& watch = {});

/// Builds slots of 1 bit that give, for each key, the lowest bit of its hash: the second level of a cascade
/// (cascade.hpp). No two hashes may differ in the lowest bit only. Otherwise as ribbon_build().
static_bytes ribbon_build_bits(std::span<std::uint64_t> hash64s, unsigned threads = 0, const build_watch& watch = {});

}  // namespace bloomery
