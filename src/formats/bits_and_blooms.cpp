// bits_and_blooms: BloomFilter.WriteTo of bits-and-blooms/bloom 3 (Go).
//
//   0  m, the number of bits      8  k, the number of probes      16  length of the bit set in bits
//  24  ceil(m / 64) words                                         All numbers have 64 bits and are big-endian.
#include "formats/format_row.hpp"

#include <bloomery/detail/geometry.hpp>

namespace bloomery::formats {
namespace {

constexpr std::uint64_t bits_at = 24;
constexpr std::uint64_t most_bits = std::uint64_t{1} << 48;

contents read(const head& file) {
  const std::uint64_t bits = file.u64_big_endian(0);
  const std::uint64_t probes = file.u64_big_endian(8);
  file.check_range("number of bits", bits, 1, most_bits);
  file.check_range("number of probes", probes, 1, max_probes);
  file.check_range("length of the bit set", file.u64_big_endian(16), bits, 64 * words_for(bits));
  file.check_length(bits_at, words_for(bits));
  contents found;
  found.parameters.scheme = "bits_and_blooms";
  found.parameters.geometry = {bits, static_cast<std::uint32_t>(probes)};
  found.bits_at = bits_at;
  return found;
}

std::vector<std::uint8_t> write(const params& p, const key_counts&) {
  std::vector<std::uint8_t> bytes;
  for (const std::uint64_t number : {p.geometry.bits, std::uint64_t{p.geometry.probes}, p.geometry.bits})
    append(bytes, number, byte_order::big_endian);
  return bytes;
}

}  // namespace

constinit const format_row bits_and_blooms_row = {.name = "bits_and_blooms",
                                                  .system = "bits-and-blooms/bloom, WriteTo (Go)",
                                                  .schemes = "bits_and_blooms",
                                                  .order = byte_order::big_endian,
                                                  .read = read,
                                                  .write = write};

}  // namespace bloomery::formats
