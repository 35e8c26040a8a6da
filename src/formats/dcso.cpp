// dcso: version 1 of the format of DCSO bloom (Go), Flor (Python), Tenzir and CIRCL hashlookup.
//
//   0  version: the lowest byte is 1          16  p, target FPR, 64-bit floating point     32  m, the number of bits
//   8  n, capacity in keys                    24  k, the number of probes                  40  N, the number of keys
//  48  ceil(m / 64) words of 64 bits; the user's own bytes follow.    All numbers have 64 bits and are little-endian.
#include "formats/format_row.hpp"

#include <bloomery/detail/geometry.hpp>

namespace bloomery::formats {
namespace {

constexpr std::uint64_t bits_at = 48;
constexpr std::uint64_t most_bits = std::uint64_t{1} << 48;

contents read(const head& file) {
  file.check_range("version", file.u64(0), 1, 1);
  contents found;
  params& p = found.parameters;
  p.scheme = "dcso";
  p.capacity = file.u64(8);
  p.target_fpr = file.f64(16);
  file.check_range("capacity", p.capacity, 1, std::uint64_t{1} << 62);
  if (!(p.target_fpr >= 0 && p.target_fpr <= 1)) file.refuse("target FPR", "a probability", text_of(p.target_fpr));
  const std::uint64_t probes = file.u64(24);
  file.check_range("number of probes", probes, 1, max_probes);
  p.geometry = {file.u64(32), static_cast<std::uint32_t>(probes)};
  file.check_range("number of bits", p.geometry.bits, 1, most_bits);
  file.check_length(bits_at, words_for(p.geometry.bits), true);
  found.keys = file.u64(40);
  found.bits_at = bits_at;
  return found;
}

std::vector<std::uint8_t> write(const params& p, const key_counts& counts) {
  require_capacity(p);
  std::vector<std::uint8_t> bytes;
  std::uint64_t target_fpr;
  std::memcpy(&target_fpr, &p.target_fpr, sizeof target_fpr);
  for (const std::uint64_t number :
       {std::uint64_t{1}, p.capacity, target_fpr, std::uint64_t{p.geometry.probes}, p.geometry.bits, counts.inserted})
    append(bytes, number);
  return bytes;
}

}  // namespace

constinit const format_row dcso_row = {.name = "dcso",
                                       .system = "DCSO bloom (Go), Flor (Python), CIRCL hashlookup",
                                       .schemes = "dcso",
                                       .order = byte_order::little_endian,
                                       .read = read,
                                       .write = write,
                                       .has_metadata = true};

}  // namespace bloomery::formats
