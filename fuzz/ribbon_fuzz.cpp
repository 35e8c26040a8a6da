// Fuzz target for check_ribbon: arbitrary payloads are rejected, or single and batch lookups stay within bounds and
// agree.
//
// The first byte chooses the fingerprint width, the rest is the payload. Random bytes almost never pass the check, so
// half of the mutations also correct the derived fields: first words, sums, the size.
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/detail/ribbon.hpp>
#include <bloomery/error.hpp>

#include "mutation.hpp"
#include "require.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

using namespace bloomery;

unsigned width_of(std::uint8_t choice) { return 1 + choice % sealed::most_width; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::vector<std::uint8_t> payload(
      data + 1, data + size);  // exact size, so that AddressSanitizer detects reads beyond the end
  try {
    check_ribbon(width_of(data[0]), payload, "fuzz");
  } catch (const error& e) {
    require(e.code() == errc::damaged, "rejected bytes cause errc::damaged");
    return 0;
  }
  std::array<std::uint64_t, 100> hash64s{};
  for (std::size_t i = 0; i < hash64s.size(); ++i) hash64s[i] = mix64(i) | (i == 0 ? ~std::uint64_t{0} : 0);
  std::array<std::uint64_t, 2> bitmap{};
  ribbon::has_batch(payload.data(), hash_span::hash64s(hash64s), bitmap.data());
  for (std::size_t i = 0; i < hash64s.size(); ++i) {
    const bool found = ribbon::has(payload.data(), hash64s[i]);
    require(found == ((bitmap[i / 64] >> (i % 64) & 1) != 0), "batch and single lookups agree");
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  constexpr std::size_t head = sealed::header_bytes + ribbon::partition_bytes;
  if (seed % 2 == 0 || size < 1 + head) return size;
  std::uint8_t* const payload = data + 1;
  const std::uint32_t width = width_of(data[0]);
  const std::uint64_t most = (size - 1 - sealed::header_bytes) / ribbon::partition_bytes;
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
  const std::uint64_t wanted = 1 + ribbon::payload_bytes(end);
  if (wanted > max_size) return size;
  if (wanted > size) std::memset(data + size, 0x5A, wanted - size);
  return wanted;
}
