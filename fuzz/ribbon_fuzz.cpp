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
#include "ribbon_mutation.hpp"

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
  if (seed % 2 == 0 || size < 1 + least_ribbon) return size;
  const std::uint64_t wanted = 1 + correct_ribbon(data + 1, size - 1, width_of(data[0]));
  if (wanted > max_size) return size;
  if (wanted > size) std::memset(data + size, 0x5A, wanted - size);
  return wanted;
}
