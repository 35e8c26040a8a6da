// Reading fuse filters: batch lookups and the check of untrusted bytes. fuse_build.cpp builds them.
#include <bloomery/detail/fuse.hpp>

#include <bloomery/error.hpp>
#include <bloomery/layout.hpp>

#include "layouts/fuse_lookup.hpp"
#include "layouts/static_check.hpp"
#include "platform/machine.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <utility>

namespace bloomery {
namespace fuse {
namespace {

// The kernels include no headers of bloomery, so they have copies of these constants.
static_assert(header_bytes == kernels::fuse_header_bytes && partition_bytes == kernels::fuse_partition_bytes &&
              multiplier == kernels::fuse_multiplier);
static_assert(offsetof(fuse_partition, seed) == 0 && offsetof(fuse_partition, first) == 8 &&
              offsetof(fuse_partition, starts) == 24 && offsetof(fuse_partition, segment) == 28);

constexpr std::size_t batch = 1024;  // keys hashed together
constexpr std::size_t group =
    kernels::fuse_group;  // keys whose cells are prefetched while the previous group is tested

// Up to this multiple of a core's own cache, the loads of a group overlap enough without prefetching: 1 million keys of
// fuse8 take 2.8 ns per lookup instead of 3.3, and 10 million 12.6 instead of 7.6.
constexpr std::uint64_t caches_without_prefetch = 2;

// A group of keys with prefetched cells.
template <unsigned W>
struct asked {
  std::array<std::uint64_t, group> first, second, third;  // cells, counted from the beginning of the payload
  std::array<std::uint64_t, group> wanted;                // fingerprints; an impossible value in an empty partition

  void ask(const kernels::fuse_cells& at, const std::uint64_t* hash64s) noexcept {
    const fuse_partition only = partition_in(at.payload, 0);
    for (std::size_t i = 0; i < group; ++i) {
      const fuse_partition p =
          at.partitions == 1 ? only : partition_in(at.payload, multiply_high(hash64s[i], at.partitions));
      const offsets place(mix64(hash64s[i] ^ p.seed), p.starts, p.segment, at.width);
      const bool none = p.starts == 0;
      first[i] = none ? 0 : p.first + place.first;
      second[i] = none ? 0 : p.first + place.second;
      third[i] = none ? 0 : p.first + place.third;
      wanted[i] = none ? ~std::uint64_t{0} : place.fingerprint;
      if (!at.fetch) continue;
      __builtin_prefetch(at.payload + first[i] * at.width / 8, 0, 2);
      __builtin_prefetch(at.payload + second[i] * at.width / 8, 0, 2);
      __builtin_prefetch(at.payload + third[i] * at.width / 8, 0, 2);
    }
  }

  std::uint64_t answers(const kernels::fuse_cells& at) const noexcept {
    const auto value = [&](std::uint64_t i) { return cell<W>(at.payload, i, at.width); };
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < group; ++i) {
      const bool has = (value(first[i]) ^ value(second[i]) ^ value(third[i])) == wanted[i];
      bits |= std::uint64_t{has} << i;
    }
    return bits;
  }
};

template <unsigned W>
void look_up(const kernels::fuse_cells& at, const std::uint64_t* hash64s, std::size_t groups,
             std::uint64_t* bitmap) noexcept {
  std::array<asked<W>, 2> two;
  if (groups > 0) two[0].ask(at, hash64s);
  for (std::size_t i = 0; i < groups; ++i) {
    if (i + 1 < groups) two[(i + 1) % 2].ask(at, hash64s + (i + 1) * group);
    bitmap[i] = two[i % 2].answers(at);
  }
}

void look_up_all(const kernels::fuse_cells& at, const std::uint64_t* hash64s, std::size_t groups,
                 std::uint64_t* bitmap) noexcept {
  if (at.width == 8) return look_up<8>(at, hash64s, groups, bitmap);
  if (at.width == 16) return look_up<16>(at, hash64s, groups, bitmap);
  if (at.width == 32) return look_up<32>(at, hash64s, groups, bitmap);
  return look_up<packed>(at, hash64s, groups, bitmap);
}

}  // namespace

void has_batch(const std::uint8_t* payload, std::uint64_t bits, const hash_span& keys, std::uint64_t* bitmap) noexcept {
  static const kernels::fuse_lookup look_up_groups = kernels::chosen_fuse_lookup();
  const kernels::fuse_cells at{payload, static_cast<std::uint32_t>(partitions_in(payload)), width_in(payload),
                               bits / 8 > caches_without_prefetch * own_cache_size()};
  alignas(64) std::array<std::uint64_t, batch> hash64s;
  for (std::size_t begin = 0; begin < keys.size(); begin += batch) {
    const std::size_t count = std::min(batch, keys.size() - begin);
    const std::size_t groups = (count + group - 1) / group;
    hash64s_of(keys.part(begin, count), hash64s.data());
    std::fill(hash64s.begin() + static_cast<std::ptrdiff_t>(count),
              hash64s.begin() + static_cast<std::ptrdiff_t>(groups * group), 0);
    std::uint64_t* const words = bitmap + begin / 64;
    look_up_groups(at, hash64s.data(), groups, words);
    if (count % 64 != 0) words[groups - 1] &= (std::uint64_t{1} << count % 64) - 1;
  }
}

}  // namespace fuse

constexpr kernels::fuse_lookup kernels::fuse_lookup_plain = fuse::look_up_all;

std::string_view fuse_layout_name(std::uint64_t width) {
  static constexpr auto names = static_names<4>("fuse");
  check_width(width);
  return names[width - 1].data();
}

void check_fuse(unsigned width, std::span<const std::uint8_t> payload, const std::string& where) {
  constexpr std::uint32_t most_segment = std::uint32_t{1} << 18;  // cells that 18 bits of a hash can select
  const std::uint64_t partitions = check_head(width, payload, fuse::partition_bytes, where);
  const std::uint64_t all_cells = 8 * std::uint64_t{payload.size()} / width;
  std::uint64_t next = fuse::first_cell(partitions, width);
  std::uint64_t end = next;
  std::uint64_t keys = 0;
  for (std::uint64_t number = 0; number < partitions; ++number) {
    const fuse_partition p = fuse::partition_in(payload.data(), number);
    const std::string here = "of partition " + std::to_string(number);
    if (p.first != next) refuse_static(where, "first cell " + here, std::to_string(next), p.first);
    if (p.keys == 0) {
      if (p.starts != 0) refuse_static(where, "cells " + here, "none without keys", p.starts);
      if (p.segment != 0) refuse_static(where, "segment " + here, "0 without keys", p.segment);
      continue;
    }
    if (!std::has_single_bit(p.segment) || p.segment < 4 || p.segment > most_segment) {
      refuse_static(where, "segment " + here, "a power of two from 4 to 2^18", p.segment);
    }
    if (p.starts == 0 || p.starts % p.segment != 0 ||
        p.starts > std::numeric_limits<std::uint32_t>::max() - 2 * p.segment) {
      refuse_static(where, "cells " + here, "a multiple of its segment", p.starts);
    }
    if (const std::uint64_t left = all_cells - std::min(next, all_cells); p.cells() > left) {
      refuse_static(where, "cells " + here, "at most " + std::to_string(left), p.cells());
    }
    if (p.keys > p.cells()) refuse_static(where, "keys " + here, "at most one per cell", p.keys);
    end = next + p.cells();
    next = fuse::aligned_cell(end, width);
    keys += p.keys;
  }
  if (const std::uint64_t bytes = fuse::payload_bytes(end, width); bytes != payload.size()) {
    refuse_static(where, "its size", std::to_string(bytes) + " bytes", payload.size());
  }
  check_keys(payload, keys, where);
}

fuse_place fuse_place_of(unsigned width, std::span<const std::uint8_t> payload, std::uint64_t hash64) noexcept {
  const fuse_partition p =
      fuse::partition_in(payload.data(), multiply_high(hash64, fuse::partitions_in(payload.data())));
  if (p.keys == 0) return {};
  const fuse::offsets at(mix64(hash64 ^ p.seed), p.starts, p.segment, width);
  return {{p.first + at.first, p.first + at.second, p.first + at.third}, at.fingerprint, true};
}

std::uint32_t fuse_cell(unsigned width, std::span<const std::uint8_t> payload, std::uint64_t cell) noexcept {
  return fuse::only_cell(payload.data(), cell, width);
}

}  // namespace bloomery
