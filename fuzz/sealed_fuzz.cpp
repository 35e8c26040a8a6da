// Fuzz target for check_fuse: arbitrary payloads are rejected, or single and batch lookups stay within bounds and
// agree.
//
// The first byte chooses the fingerprint width, the rest is the payload. Random bytes almost never pass the check, so
// half of the mutations also correct the derived fields: first cells, sums, the size.
#include <bloomery/detail/fuse.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/error.hpp>

#include "mutation.hpp"
#include "require.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace {

using namespace bloomery;

unsigned width_of(std::uint8_t choice) { return 1 + choice % fuse::most_width; }

template <unsigned W>
void ask(unsigned width, std::span<const std::uint8_t> payload) {
  std::array<std::uint64_t, 100> hash64s{};
  for (std::size_t i = 0; i < hash64s.size(); ++i) hash64s[i] = mix64(i) | (i == 0 ? ~std::uint64_t{0} : 0);
  std::array<std::uint64_t, 2> bitmap{};
  fuse::has_batch(payload.data(), std::uint64_t{1} << 40, hash_span::hash64s(hash64s), bitmap.data());
  for (std::size_t i = 0; i < hash64s.size(); ++i) {
    const bool there = fuse::has<W>(payload.data(), hash64s[i]);
    require(there == ((bitmap[i / 64] >> (i % 64) & 1) != 0), "batch and single lookups agree");
    const fuse_place place = fuse_place_of(width, payload, hash64s[i]);
    require(place.somewhere || !there, "a partition without keys reports no key");
    std::uint32_t sum = 0;
    for (const std::uint64_t cell : place.cells) sum ^= fuse_cell(width, payload, cell);
    require(!place.somewhere || there == (sum == place.fingerprint), "the three cells determine the result");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::vector<std::uint8_t> payload(
      data + 1, data + size);  // exact size, so that AddressSanitizer detects reads beyond the end
  const unsigned width = width_of(data[0]);
  try {
    check_fuse(width, payload, "fuzz");
  } catch (const error& e) {
    require(e.code() == errc::damaged, "rejected bytes cause errc::damaged");
    return 0;
  }
  const auto ask_all = width == 8 ? ask<8> : width == 16 ? ask<16> : width == 32 ? ask<32> : ask<fuse::packed>;
  ask_all(width, payload);
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  constexpr std::size_t head = fuse::header_bytes + fuse::partition_bytes;
  if (seed % 2 == 0 || size < 1 + head) return size;
  std::uint8_t* const payload = data + 1;
  const std::uint32_t width = width_of(data[0]);
  const std::size_t room = (size - 1) / 64 * 64;
  const std::uint64_t most = (room - fuse::header_bytes) / fuse::partition_bytes;
  if (room < 2 * fuse::header_bytes) return size;
  const auto partitions = static_cast<std::uint32_t>(1 + payload[8] % std::min<std::uint64_t>(most, 4));
  std::memset(payload + 8, 0, fuse::header_bytes - 8);
  std::memcpy(payload + 8, &partitions, 4);
  std::memcpy(payload + 12, &width, 4);
  std::uint64_t keys = 0;
  std::uint64_t end = fuse::first_cell(partitions, width);
  for (std::uint32_t i = 0; i < partitions; ++i) {
    fuse_partition p = fuse::partition_in(payload, i);
    p.first = fuse::aligned_cell(end, width);
    p.segment = p.keys == 0 ? 0 : 4u << p.segment % 5;
    p.starts = p.keys == 0 ? 0 : p.segment * (1 + p.starts % 8);
    if (p.keys != 0) p.keys = 1 + p.keys % p.cells();
    if (p.keys != 0) end = p.first + p.cells();
    keys += p.keys;
    std::memcpy(payload + fuse::header_bytes + i * fuse::partition_bytes, &p, sizeof p);
  }
  std::memcpy(payload, &keys, 8);
  const std::uint64_t wanted = 1 + fuse::payload_bytes(end, width);
  if (wanted > max_size) return size;
  if (wanted > size) std::memset(data + size, 0x5A, wanted - size);
  return wanted;
}
