// Fuzz target for check_ribbon: arbitrary payloads are rejected, or single and batch lookups stay within bounds and
// agree.
//
// The first byte chooses the fingerprint width, the rest is the payload. Random bytes almost never pass the check, so
// half of the mutations also correct the derived fields: first words, sums, the size.
#include <bloomery/detail/ribbon.hpp>

#include "mutation.hpp"
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
  static_cast<void>(is_sound(
      payload, [&] { check_ribbon(width_of(data[0]), payload, "fuzz"); }, ribbon::has, ribbon::has_batch));
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 2 == 0 || size < 1 + least_ribbon) return size;
  const std::uint64_t wanted = 1 + correct_ribbon(data + 1, size - 1, width_of(data[0]));
  if (wanted > max_size) return size;
  if (wanted > size) std::memset(data + size, 0x5A, wanted - size);
  return wanted;
}
