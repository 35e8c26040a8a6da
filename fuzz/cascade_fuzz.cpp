// Fuzz target for check_cascade: arbitrary payloads are rejected, or single and batch lookups stay within bounds and
// agree, and the share of hits is from 0 to 1.
//
// The first byte chooses the fingerprint width, the rest is the payload. Half of the mutations also correct the fields
// of both levels that follow from others.
#include <bloomery/detail/cascade.hpp>

#include "mutation.hpp"
#include "require.hpp"
#include "ribbon_mutation.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

using namespace bloomery;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::vector<std::uint8_t> payload(
      data + 1, data + size);  // exact size, so that AddressSanitizer detects reads beyond the end
  const bool sound = is_sound(
      payload, [&] { check_cascade(width_of(data[0]), payload, "fuzz"); }, cascade::has, cascade::has_batch);
  if (sound) {
    const long double share = cascade::share_of_hits(payload.data());
    require(share >= 0 && share <= 1, "the share of hits is from 0 to 1");
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 2 == 0 || size < 1 + least_ribbon) return size;
  std::uint8_t* const first = data + 1;
  const std::uint64_t offset = correct_ribbon(first, size - 1, width_of(data[0]));
  if (1 + offset + least_ribbon > max_size) return size;
  if (size < 1 + offset + least_ribbon) {
    std::memset(data + size, 0x5A, 1 + offset + least_ribbon - size);
    size = 1 + offset + least_ribbon;
  }
  std::memcpy(first + cascade::offset_at, &offset, sizeof offset);
  const std::uint64_t wanted = 1 + offset + correct_ribbon(first + offset, size - 1 - offset, 1);
  if (wanted > max_size) return size;
  if (wanted > size) std::memset(data + size, 0x5A, wanted - size);
  return wanted;
}
