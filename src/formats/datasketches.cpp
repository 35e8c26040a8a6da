// datasketches: bloom_filter.serialize() of Apache DataSketches.
//
//   0  number of 64-bit words before the bits: 4, or 3 in an empty filter      6  0, 16 bits
//   1  version: 1                                                              8  seed, 64 bits
//   2  family: 21, Bloom filters                                              16  W, the number of words, 32 bits
//   3  flags: 4 in an empty filter, otherwise 0                               20  0, 32 bits
//   4  k, the number of probes, 16 bits                                       24  number of set bits, 64 bits; or ~0
//  32  W words of 64 bits                                                         All numbers are little-endian.
//
// A filter without keys ends at 24. ~0 means that the set bits were not counted, as after update(). The number can be
// wrong if query_and_update() followed update() in C++, so it is not used, and ~0 is written.
#include "formats/format_row.hpp"

#include <bloomery/detail/geometry.hpp>

namespace bloomery::formats {
namespace {

constexpr std::uint64_t bits_at = 32;
constexpr std::uint64_t most_words = (1 << 26) - 1;
constexpr std::uint64_t uncounted = ~std::uint64_t{0};
constexpr std::uint8_t empty_flag = 4;

// In Java, an empty filter in a MemorySegment is also written without its words, but with the head of a full one.
contents read(const head& file) {
  file.check_range("version", file.byte(1), 1, 1);
  file.check_range("family", file.byte(2), 21, 21);
  const bool is_empty = file.byte(3) == empty_flag;
  if (!is_empty) file.check_range("flags", file.byte(3), 0, 0);
  file.check_range("number of words before the bits", file.byte(0), is_empty ? 3 : 4, 4);
  const std::uint64_t probes = file.u64(0) >> 32;  // the upper 16 bits are unused
  file.check_range("number of probes", probes, 1, max_probes);
  const std::uint64_t words = file.u64(16);  // the upper 32 bits are unused
  file.check_range("number of words", words, 1, most_words);
  contents found;
  found.parameters.scheme = "datasketches";
  found.parameters.seed = file.u64(8);
  found.parameters.geometry = {64 * words, static_cast<std::uint32_t>(probes)};
  found.is_empty = is_empty;
  found.bits_at = is_empty ? 24 : bits_at;
  file.check_length(found.bits_at, is_empty ? 0 : words);
  if (is_empty)
    found.keys = 0;
  else if (file.u64(24) != uncounted)
    file.check_range("number of set bits", file.u64(24), 0, 64 * words);
  return found;
}

std::vector<std::uint8_t> head_of(const params& p, bool is_empty) {
  std::vector<std::uint8_t> bytes{static_cast<std::uint8_t>(is_empty ? 3 : 4), 1, 21,
                                  is_empty ? empty_flag : std::uint8_t{0}};
  append(bytes, p.geometry.probes);
  append(bytes, p.seed);
  append(bytes, words_for(p.geometry.bits));
  return bytes;
}

std::vector<std::uint8_t> write(const params& p, const key_counts&) {
  std::vector<std::uint8_t> bytes = head_of(p, false);
  append(bytes, uncounted);
  return bytes;
}

std::vector<std::uint8_t> write_empty(const params& p) { return head_of(p, true); }

}  // namespace

constinit const format_row datasketches_row = {.name = "datasketches",
                                               .system = "Apache DataSketches (C++, Java, Python)",
                                               .schemes = "datasketches",
                                               .order = byte_order::little_endian,
                                               .read = read,
                                               .write = write,
                                               .write_empty = write_empty};

}  // namespace bloomery::formats
