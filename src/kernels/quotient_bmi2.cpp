// Operations on quotient filters for processors with BMI2, which deposits a bit at the place of the one with a given
// rank.
#include "layouts/quotient_operations.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#define BLOOMERY_TARGET [[gnu::target("avx2,bmi,bmi2,popcnt")]]

namespace bloomery::kernels {
namespace {

BLOOMERY_TARGET inline unsigned ones_in(std::uint64_t x) { return static_cast<unsigned>(_mm_popcnt_u64(x)); }

BLOOMERY_TARGET inline unsigned place_of_one(std::uint64_t x, unsigned rank) {
  return static_cast<unsigned>(_tzcnt_u64(_pdep_u64(std::uint64_t{1} << rank, x)));
}

#include "layouts/quotient_block.inc.hpp"
#include "layouts/quotient_slots.inc.hpp"

}  // namespace

constexpr quotient_kernel quotient_bmi2 = {insert_keys, look_up_keys, remove_keys};

}  // namespace bloomery::kernels
#endif
