// guava: BloomFilter.writeTo of Google's Java library.
//
//   0  strategy: 0 for MURMUR128_MITZ_32, 1 for MURMUR128_MITZ_64
//   1  k, the number of probes
//   2  W, the number of words, 32 bits, big-endian
//   6  W words of 64 bits, big-endian
#include "formats/format_row.hpp"

namespace bloomery::formats {
namespace {

constexpr std::uint64_t bits_at = 6;
constexpr std::uint32_t most_words = 0x7FFFFFFF;

contents read(const head& file) {
  const std::uint8_t strategy = file.byte(0);
  const std::uint8_t probes = file.byte(1);
  const std::uint32_t words = file.u32_big_endian(2);
  file.check_range("strategy", strategy, 0, 1);
  file.check_range("number of probes", probes, 1, 255);
  file.check_range("number of words", words, 1, most_words);
  file.check_length(bits_at, words);
  contents found;
  found.parameters.scheme = strategy == 0 ? "guava32" : "guava";
  found.parameters.geometry = {std::uint64_t{64} * words, probes};
  found.bits_at = bits_at;
  return found;
}

std::vector<std::uint8_t> write(const params& p, const key_counts&) {
  std::vector<std::uint8_t> bytes;
  append(bytes, static_cast<std::uint8_t>(p.scheme == "guava" ? 1 : 0));
  append(bytes, static_cast<std::uint8_t>(p.geometry.probes));
  append(bytes, static_cast<std::uint32_t>(words_for(p.geometry.bits)), byte_order::big_endian);
  return bytes;
}

}  // namespace

constinit const format_row guava_row = {.name = "guava",
                                        .system = "Guava, BloomFilter.writeTo (Java)",
                                        .schemes = "guava, guava32",
                                        .order = byte_order::big_endian,
                                        .read = read,
                                        .write = write};

}  // namespace bloomery::formats
