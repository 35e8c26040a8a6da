// Reading filter cascades: lookups and the check of untrusted bytes. cascade_builder.cpp builds them.
#include <bloomery/detail/cascade.hpp>

#include <bloomery/error.hpp>

#include "layouts/static_check.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

namespace bloomery {
namespace cascade {
namespace {

// The bit of the second level for a key.
bool second_has(const std::uint8_t* level, std::uint64_t hash64) noexcept {
  const ribbon_partition p = ribbon::partition_in(level, multiply_high(hash64, sealed::partitions_in(level)));
  if (p.keys == 0) return false;
  return ribbon::combined(level,
                          ribbon::place_of(
                              p, level, hash64, 1, [](std::uint64_t) {}, place_bits),
                          1) != 0;
}

// Slots of 1 bit: block i is word i.
bool slot(const std::uint8_t* level, std::uint64_t first_word, std::uint64_t number) {
  return (ribbon::word_of(level, first_word + number / ribbon::slots_of_block) >> number % ribbon::slots_of_block &
          1) != 0;
}

// The share of random keys whose bit is 1, in layer `i` of a partition and in those after it.
//
// The first of the 64 slots of a key always has coefficient 1. The other coefficients are random, so if any of these
// slots is 1, the bit is 1 for half of the keys that start here.
long double share_in_layers(const std::uint8_t* level, const ribbon_partition& p, std::size_t i, std::uint64_t word) {
  const std::uint32_t blocks = p.blocks[i];
  const bool is_last = i + 1 == p.blocks.size() || p.blocks[i + 1] == 0;
  constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t next_one = none;  // the first slot after the present one that is 1
  for (std::uint64_t at = std::uint64_t{ribbon::slots_of_block} * blocks; at-- > ribbon::starts_of(blocks);)
    if (slot(level, word, at)) next_one = at;
  std::uint64_t ones = 0, halves = 0, bumped = 0;
  for (std::uint64_t start = ribbon::starts_of(blocks); start-- > 0;) {
    const std::uint64_t bucket = start / ribbon::starts_of_bucket;
    const bool is_one = slot(level, word, start);
    if (!is_last && start % ribbon::starts_of_bucket <
                        ribbon::threshold(ribbon::word_of(level, word + blocks + bucket / 32), bucket))
      ++bumped;
    else if (next_one != none && next_one - start < ribbon::slots_of_block)
      ++halves;
    else
      ones += is_one ? 1 : 0;
    if (is_one) next_one = start;
  }
  const long double of_next = bumped == 0 ? 0 : share_in_layers(level, p, i + 1, word + ribbon::words_of(p, i, 1));
  return (static_cast<long double>(ones) + static_cast<long double>(halves) / 2 +
          static_cast<long double>(bumped) * of_next) /
         static_cast<long double>(ribbon::starts_of(blocks));
}

}  // namespace

bool has(const std::uint8_t* payload, std::uint64_t hash64) noexcept {
  return ribbon::has(payload, hash64) && second_has(payload + second_in(payload), hash64);
}

void has_batch(const std::uint8_t* payload, const hash_span& keys, std::uint64_t* bitmap) noexcept {
  ribbon::has_batch(payload, keys, bitmap);
  const std::uint8_t* const second = payload + second_in(payload);
  for (std::size_t word = 0; word < (keys.size() + 63) / 64; ++word) {
    for (std::uint64_t left = bitmap[word]; left != 0; left &= left - 1) {
      const auto bit = static_cast<unsigned>(std::countr_zero(left));
      if (!second_has(second, keys.hash64(64 * word + bit))) bitmap[word] &= ~(std::uint64_t{1} << bit);
    }
  }
}

// Both levels select a partition by the upper bits of hash64, so the overlaps of their partitions are summed up.
long double share_of_hits(const std::uint8_t* payload) noexcept {
  const std::uint8_t* const second = payload + second_in(payload);
  const std::uint64_t of_first = sealed::partitions_in(payload), of_second = sealed::partitions_in(second);
  const auto share_of = [&](std::uint64_t number) -> long double {
    const ribbon_partition p = ribbon::partition_in(second, number);
    return p.keys == 0 ? 0 : share_in_layers(second, p, 0, p.first);
  };
  long double sum = 0, begin = 0, share = share_of(0);
  for (std::uint64_t i = 0, j = 0; i < of_first && j < of_second;) {
    const long double end_of_first = static_cast<long double>(i + 1) / static_cast<long double>(of_first);
    const long double end_of_second = static_cast<long double>(j + 1) / static_cast<long double>(of_second);
    const long double end = std::min(end_of_first, end_of_second);
    if (ribbon::partition_in(payload, i).keys != 0) sum += (end - begin) * share;
    begin = end;
    if (end_of_first <= end) ++i;
    if (end_of_second <= end && ++j < of_second) share = share_of(j);
  }
  return std::ldexp(sum, -static_cast<int>(sealed::width_in(payload)));
}

}  // namespace cascade

std::string_view cascade_layout_name(std::uint64_t width) {
  static constexpr auto names = static_names<7>("cascade");
  check_width(width);
  return names[width - 1].data();
}

double cascade_rate(unsigned width, std::uint64_t keys) { return static_rate(width + 1, keys); }

geometry cascade_geometry(unsigned width, std::uint64_t keys) {
  return {ribbon_geometry(width, keys).bits + ribbon_geometry(1, keys).bits, ribbon::probes};
}

void check_cascade(unsigned width, std::span<const std::uint8_t> payload, const std::string& where) {
  constexpr std::uint64_t least = sealed::header_bytes + ribbon::partition_bytes;  // of a level
  if (payload.size() < 2 * least) refuse_static(where, "its size", "at least 256 bytes", payload.size());
  const std::uint64_t second = cascade::second_in(payload.data());
  if (second < least || second > payload.size() - least || second % 64 != 0) {
    refuse_static(where, "offset of the second level",
                  "a multiple of 64, 128 to " + std::to_string(payload.size() - least), second);
  }
  check_ribbon(width, payload.first(second), where, cascade::offset_at + sizeof second);
  check_ribbon(1, payload.subspan(second), where);
  if ((sealed::keys_in(payload.data()) == 0) != (sealed::keys_in(payload.data() + second) == 0))
    refuse_static(where, "keys of the second level", "none if the first level has none",
                  sealed::keys_in(payload.data() + second));
}

}  // namespace bloomery
