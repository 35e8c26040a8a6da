// For the targets of ribbon filters and cascades: the check of a payload and its lookups, and the correction of the
// fields of a ribbon filter that follow from others: first words, sums, the size.
#pragma once

#include <bloomery/detail/hash_span.hpp>
#include <bloomery/detail/ribbon.hpp>
#include <bloomery/error.hpp>

#include "require.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

// The width that the first byte of an input chooses.
inline unsigned width_of(std::uint8_t choice) { return 1 + choice % bloomery::sealed::most_width; }

// Whether the payload passes the check. If so, requires that single and batch lookups stay within it and agree.
template <class Check, class Has, class HasBatch>
bool is_sound(std::span<const std::uint8_t> payload, Check check, Has has, HasBatch has_batch) {
  using namespace bloomery;
  try {
    check();
  } catch (const error& e) {
    require(e.code() == errc::damaged, "rejected bytes cause errc::damaged");
    return false;
  }
  std::array<std::uint64_t, 100> hash64s{};
  for (std::size_t i = 0; i < hash64s.size(); ++i) hash64s[i] = mix64(i) | (i == 0 ? ~std::uint64_t{0} : 0);
  std::array<std::uint64_t, 2> bitmap{};
  has_batch(payload.data(), hash_span::hash64s(hash64s), bitmap.data());
  for (std::size_t i = 0; i < hash64s.size(); ++i) {
    const bool found = has(payload.data(), hash64s[i]);
    require(found == ((bitmap[i / 64] >> (i % 64) & 1) != 0), "batch and single lookups agree");
  }
  return true;
}

inline constexpr std::size_t least_ribbon = bloomery::sealed::header_bytes + bloomery::ribbon::partition_bytes;

// Corrects the head and the table of a payload, of which `size` bytes exist, at least `least_ribbon`. Returns the size
// that the payload must have.
inline std::uint64_t correct_ribbon(std::uint8_t* payload, std::size_t size, std::uint32_t width) {
  using namespace bloomery;
  const std::uint64_t most = (size - sealed::header_bytes) / ribbon::partition_bytes;
  const auto partitions = static_cast<std::uint32_t>(1 + payload[8] % std::min<std::uint64_t>(most, 3));
  std::memset(payload + 8, 0, sealed::header_bytes - 8);
  std::memcpy(payload + 8, &partitions, 4);
  std::memcpy(payload + 12, &width, 4);
  std::uint64_t keys = 0;
  std::uint64_t end = ribbon::first_word(partitions);
  for (std::uint32_t i = 0; i < partitions; ++i) {
    ribbon_partition p = ribbon::partition_in(payload, i);
    p.first = end;
    p.reserved = 0;
    const std::size_t layers = p.keys % (ribbon_partition::most_layers + 1);
    std::uint64_t slots = 0;
    for (std::size_t layer = 0; layer < p.blocks.size(); ++layer) {
      p.blocks[layer] = layer < layers ? 2 + p.blocks[layer] % 6 : 0;
      slots += std::uint64_t{ribbon::slots_of_block} * p.blocks[layer];
    }
    p.keys = layers == 0 ? 0 : 1 + p.seed % slots;
    end += ribbon::words_of(p, width);
    keys += p.keys;
    std::memcpy(payload + sealed::header_bytes + i * ribbon::partition_bytes, &p, sizeof p);
  }
  std::memcpy(payload, &keys, 8);
  return ribbon::payload_bytes(end);
}
