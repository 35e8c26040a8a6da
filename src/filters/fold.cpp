// Folding: the bitwise or of adjacent blocks or bits.
#include <bloomery/fold.hpp>

#include <bloomery/error.hpp>

#include "registry/tables.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

namespace bloomery {
namespace {

// The units that a fold combines: blocks, or, for classic, bits.
struct units {
  std::uint64_t count = 0;
  std::uint64_t bits = 1;
};

units units_of(const params& p) {
  const layout_row* layout = p.scheme.empty() ? find_layout(p.layout) : nullptr;
  if (layout == nullptr || layout->family != family::plain) return {};
  const std::uint64_t bits = std::max<std::uint64_t>(layout->block_bits, 1);
  return {p.geometry.bits / bits, bits};
}

// Combines each pair of adjacent bits of a word by or; the results are in the lower half.
std::uint64_t pairs_joined(std::uint64_t word) {
  word = (word | word >> 1) & 0x5555555555555555;
  word = (word | word >> 1) & 0x3333333333333333;
  word = (word | word >> 2) & 0x0F0F0F0F0F0F0F0F;
  word = (word | word >> 4) & 0x00FF00FF00FF00FF;
  word = (word | word >> 8) & 0x0000FFFF0000FFFF;
  return (word | word >> 16) & 0x00000000FFFFFFFF;
}

// Halves `count` bits (an even number): the new bit i is (bit 2i) | (bit 2i + 1). `to` may be `from`.
void join_bits(const std::uint8_t* from, std::uint8_t* to, std::uint64_t count) {
  const std::uint64_t size = bytes_for(count);
  const std::uint64_t half = bytes_for(count / 2);
  for (std::uint64_t at = 0; at < size; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + at, static_cast<std::size_t>(std::min<std::uint64_t>(8, size - at)));
    const std::uint64_t joined = pairs_joined(word);
    std::memcpy(to + at / 2, &joined, static_cast<std::size_t>(std::min<std::uint64_t>(4, half - at / 2)));
  }
}

// Halves `count` blocks. `to` may be `from`.
void join_blocks(const std::uint8_t* from, std::uint8_t* to, std::uint64_t count, std::uint64_t block_bytes) {
  for (std::uint64_t block = 0; block < count / 2; ++block) {
    const std::uint8_t* const pair = from + 2 * block * block_bytes;
    for (std::uint64_t i = 0; i < block_bytes; ++i) {
      to[block * block_bytes + i] = static_cast<std::uint8_t>(pair[i] | pair[block_bytes + i]);
    }
  }
}

void halve(const units& u, const std::uint8_t* from, std::uint8_t* to, std::uint64_t count) {
  if (u.bits == 1)
    join_bits(from, to, count);
  else
    join_blocks(from, to, count, u.bits / 8);
}

}  // namespace

unsigned times_foldable(const params& p) {
  const units u = units_of(p);
  return u.count == 0 ? 0 : static_cast<unsigned>(std::countr_zero(u.count));
}

geometry foldable_geometry(const params& p, std::uint64_t multiple) {
  const units u = units_of(p);
  if (u.count == 0) {
    throw error(errc::invalid_argument,
                {"this filter cannot be folded", "", "one of " + layout_names(), "'" + p.layout + p.scheme + "'",
                 p.scheme.empty() ? error_hint(hint::make_final_size)
                                  : error_hint(hint::use_a_layout,
                                               "use a layout: the sizes of a scheme follow the rules of its system")});
  }
  if (!std::has_single_bit(multiple)) {
    throw error(errc::invalid_argument,
                {"the multiple is invalid", "fold", "a power of 2", std::to_string(multiple), ""});
  }
  const std::uint64_t rounded = u.count + (-u.count & (multiple - 1));
  if (rounded < u.count || rounded > std::numeric_limits<std::uint64_t>::max() / u.bits) {
    throw error(errc::too_large,
                {"the size to fold from is too large", "fold", "", "more than 2^64", hint::halve_less_often});
  }
  return {rounded * u.bits, p.geometry.probes};
}

params folded(const params& p, unsigned times) {
  if (times > times_foldable(p)) {
    throw error(errc::invalid_argument, {"a filter of this size cannot be halved this many times", "fold",
                                         "at most " + std::to_string(times_foldable(p)) + " times",
                                         std::to_string(times), hint::make_foldable_filter});
  }
  params small = p;
  small.geometry.bits >>= times;
  return small;
}

heap_storage fold(const params& p, std::span<const std::uint8_t> bytes, unsigned times) {
  const params small = folded(p, times);
  if (bytes.size() != bytes_for(p.geometry.bits)) {
    throw error(errc::invalid_argument, {"wrong number of bytes", "fold", std::to_string(bytes_for(p.geometry.bits)),
                                         std::to_string(bytes.size()), ""});
  }
  if (times == 0) {
    heap_storage same(bytes.size());
    std::copy(bytes.begin(), bytes.end(), same.data());
    return same;
  }
  const units u = units_of(p);
  heap_storage result(bytes_for(folded(p, 1).geometry.bits));
  halve(u, bytes.data(), result.data(), u.count);
  for (unsigned done = 1; done < times; ++done) halve(u, result.data(), result.data(), u.count >> done);
  if (times > 1) {
    heap_storage exact(bytes_for(small.geometry.bits));
    std::copy_n(result.data(), exact.size(), exact.data());
    result = std::move(exact);
  }
  if (const unsigned used = small.geometry.bits % 8; used != 0)
    result.data()[result.size() - 1] &= static_cast<std::uint8_t>((1u << used) - 1);
  return result;
}

}  // namespace bloomery
