// Reading fuse filters: batch lookups, the check of untrusted bytes, and the exact FPR. fuse_build.cpp builds them.
#include <bloomery/detail/fuse.hpp>

#include <bloomery/error.hpp>
#include <bloomery/layout.hpp>

#include "layouts/fuse_lookup.hpp"
#include "math/rates.hpp"
#include "platform/machine.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
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
template <fuse_fingerprint F>
struct asked {
  std::array<std::uint64_t, group> first, second, third;  // byte offsets in the payload
  std::array<std::uint64_t, group> wanted;                // fingerprints; an impossible value in an empty partition

  void ask(const kernels::fuse_cells& at, const std::uint64_t* hash64s) noexcept {
    const fuse_partition only = partition_in(at.payload, 0);
    for (std::size_t i = 0; i < group; ++i) {
      const fuse_partition p =
          at.partitions == 1 ? only : partition_in(at.payload, multiply_high(hash64s[i], at.partitions));
      const offsets place(mix64(hash64s[i] ^ p.seed), p.starts, p.segment, 8 * sizeof(F));
      const bool none = p.starts == 0;
      first[i] = none ? 0 : (p.first + place.first) * sizeof(F);
      second[i] = none ? 0 : (p.first + place.second) * sizeof(F);
      third[i] = none ? 0 : (p.first + place.third) * sizeof(F);
      wanted[i] = none ? ~std::uint64_t{0} : place.fingerprint;
      if (!at.fetch) continue;
      __builtin_prefetch(at.payload + first[i], 0, 2);
      __builtin_prefetch(at.payload + second[i], 0, 2);
      __builtin_prefetch(at.payload + third[i], 0, 2);
    }
  }

  std::uint64_t answers(const std::uint8_t* payload) const noexcept {
    const auto cell = [&](std::uint64_t at) {
      F value;
      std::memcpy(&value, payload + at, sizeof value);
      return std::uint64_t{value};
    };
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < group; ++i) {
      const bool has = (cell(first[i]) ^ cell(second[i]) ^ cell(third[i])) == wanted[i];
      bits |= std::uint64_t{has} << i;
    }
    return bits;
  }
};

template <fuse_fingerprint F>
void look_up(const kernels::fuse_cells& at, const std::uint64_t* hash64s, std::size_t groups,
             std::uint64_t* bitmap) noexcept {
  std::array<asked<F>, 2> two;
  if (groups > 0) two[0].ask(at, hash64s);
  for (std::size_t i = 0; i < groups; ++i) {
    if (i + 1 < groups) two[(i + 1) % 2].ask(at, hash64s + (i + 1) * group);
    bitmap[i] = two[i % 2].answers(at.payload);
  }
}

void look_up_all(const kernels::fuse_cells& at, const std::uint64_t* hash64s, std::size_t groups,
                 std::uint64_t* bitmap) noexcept {
  if (at.width == 8) return look_up<std::uint8_t>(at, hash64s, groups, bitmap);
  if (at.width == 16) return look_up<std::uint16_t>(at, hash64s, groups, bitmap);
  return look_up<std::uint32_t>(at, hash64s, groups, bitmap);
}

[[noreturn]] void damaged(const std::string& where, const char* what, const std::string& expected,
                          std::uint64_t found) {
  throw error(errc::damaged, {std::string("the static filter contradicts itself: ") + what, where, expected,
                              std::to_string(found), hint::seal_again});
}

}  // namespace

template <fuse_fingerprint F>
void has_batch(const std::uint8_t* payload, std::uint64_t bits, const hash_span& keys, std::uint64_t* bitmap) noexcept {
  static const kernels::fuse_lookup look_up_groups = kernels::chosen_fuse_lookup();
  const kernels::fuse_cells at{payload, static_cast<std::uint32_t>(partitions_in(payload)), 8 * sizeof(F),
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

template void has_batch<std::uint8_t>(const std::uint8_t*, std::uint64_t, const hash_span&, std::uint64_t*) noexcept;
template void has_batch<std::uint16_t>(const std::uint8_t*, std::uint64_t, const hash_span&, std::uint64_t*) noexcept;
template void has_batch<std::uint32_t>(const std::uint8_t*, std::uint64_t, const hash_span&, std::uint64_t*) noexcept;

}  // namespace fuse

constexpr kernels::fuse_lookup kernels::fuse_lookup_plain = fuse::look_up_all;

std::string_view fuse_layout_name(std::uint64_t width) {
  if (width == 8) return "fuse8";
  if (width == 16) return "fuse16";
  if (width == 32) return "fuse32";
  throw error(errc::invalid_argument,
              {"invalid number of bits of a fingerprint", "width", "8, 16 or 32", std::to_string(width), ""});
}

double fuse_rate(unsigned width, std::uint64_t keys) {
  if (keys == 0) return 0;
  return static_cast<double>(
      rates::either(std::exp2(-static_cast<long double>(width)), rates::collision(0x1p64L, keys)));
}

void check_fuse(unsigned width, std::span<const std::uint8_t> payload, const std::string& where) {
  using fuse::damaged;
  constexpr std::uint32_t most_segment = std::uint32_t{1} << 18;  // cells that 18 bits of a hash can select
  if (payload.size() < fuse::header_bytes + fuse::partition_bytes || payload.size() % 64 != 0) {
    damaged(where, "its size", "a multiple of 64 bytes, at least 128", payload.size());
  }
  std::uint32_t written_width = 0;
  std::memcpy(&written_width, payload.data() + 12, sizeof written_width);
  if (written_width != width) damaged(where, "bits of a fingerprint", std::to_string(width), written_width);
  for (std::uint64_t at = 16; at < fuse::header_bytes; ++at) {
    if (payload[at] != 0) damaged(where, "reserved bytes", "zeros", payload[at]);
  }
  const std::uint64_t partitions = fuse::partitions_in(payload.data());
  const std::uint64_t most = (payload.size() - fuse::header_bytes) / fuse::partition_bytes;
  if (partitions == 0 || partitions > most || fuse::cells_at(partitions) > payload.size()) {
    damaged(where, "partitions", "1 to " + std::to_string(most), partitions);
  }
  const std::uint64_t cell_bytes = width / 8;
  const std::uint64_t all_cells = payload.size() / cell_bytes;
  std::uint64_t next = fuse::cells_at(partitions) / cell_bytes;
  std::uint64_t keys = 0;
  for (std::uint64_t number = 0; number < partitions; ++number) {
    const fuse_partition p = fuse::partition_in(payload.data(), number);
    const std::string here = "of partition " + std::to_string(number);
    if (p.first != next) damaged(where, ("first cell " + here).c_str(), std::to_string(next), p.first);
    if (p.keys == 0) {
      if (p.starts != 0) damaged(where, ("cells " + here).c_str(), "none without keys", p.starts);
      if (p.segment != 0) damaged(where, ("segment " + here).c_str(), "0 without keys", p.segment);
      continue;
    }
    if (!std::has_single_bit(p.segment) || p.segment < 4 || p.segment > most_segment) {
      damaged(where, ("segment " + here).c_str(), "a power of two from 4 to 2^18", p.segment);
    }
    if (p.starts == 0 || p.starts % p.segment != 0 ||
        p.starts > std::numeric_limits<std::uint32_t>::max() - 2 * p.segment) {
      damaged(where, ("cells " + here).c_str(), "a multiple of its segment", p.starts);
    }
    if (p.cells() > all_cells - next) {
      damaged(where, ("cells " + here).c_str(), "at most " + std::to_string(all_cells - next), p.cells());
    }
    if (p.keys > p.cells()) damaged(where, ("keys " + here).c_str(), "at most one per cell", p.keys);
    next += p.cells();
    keys += p.keys;
  }
  if ((next * cell_bytes + 63) / 64 * 64 != payload.size()) {
    damaged(where, "its size", std::to_string((next * cell_bytes + 63) / 64 * 64) + " bytes", payload.size());
  }
  if (fuse_keys(payload) != keys) damaged(where, "keys", std::to_string(keys), fuse_keys(payload));
}

std::uint64_t fuse_keys(std::span<const std::uint8_t> payload) noexcept {
  std::uint64_t keys = 0;
  std::memcpy(&keys, payload.data(), sizeof keys);
  return keys;
}

fuse_place fuse_place_of(unsigned width, std::span<const std::uint8_t> payload, std::uint64_t hash64) noexcept {
  const fuse_partition p =
      fuse::partition_in(payload.data(), multiply_high(hash64, fuse::partitions_in(payload.data())));
  if (p.keys == 0) return {};
  const fuse::offsets at(mix64(hash64 ^ p.seed), p.starts, p.segment, width);
  return {{p.first + at.first, p.first + at.second, p.first + at.third}, at.fingerprint, true};
}

std::uint32_t fuse_cell(unsigned width, std::span<const std::uint8_t> payload, std::uint64_t cell) noexcept {
  std::uint32_t value = 0;
  std::memcpy(&value, payload.data() + cell * (width / 8), width / 8);
  return value;
}

}  // namespace bloomery
