// Exact FPRs for user-defined layouts: bits without blocks, and a mixture over the number of keys in a block.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/function_ref.hpp>

#include <cstdint>

namespace BLOOMERY_EXPORT bloomery {

/// FPR of `bits` bits without blocks after `keys` keys of `probes` independent, uniform probes each. With S, the number
/// of set bits after k * n throws into m bits:
///
///     FPR = E[(S / m)^k]
///
/// exactly; the textbook's (1 - e^(-kn/m))^k replaces S by its mean, and is too low for small m.
///
/// @param bits    m, at least 1
/// @param probes  k, 1 to 255
/// @throws error  invalid_argument: out of range
///
/// Example:
///     assert(standard_fpr(2, 1, 1) == 0.5);
///     assert(standard_fpr(96, 7, 10) > 0.0101 && standard_fpr(96, 7, 10) < 0.0120);
double standard_fpr(std::uint64_t bits, std::uint32_t probes, std::uint64_t keys);

/// FPR of a filter of B blocks after n keys, each of which selects a block uniformly:
///
///     f = sum over i of Binomial(i; n, 1/B) * r(i)
///
/// All terms are positive, so the sum has no cancellation. The caller adds the probability that two keys have the same
/// hash, if that matters.
///
/// @param keys           n
/// @param blocks         B, at least 1
/// @param fpr_of_block   r(i): the FPR of one block with i keys, 0 to 1, which does not fall as i grows. It is called
///                       with the numbers of keys that have a noticeable probability.
/// @throws error  invalid_argument: no blocks
///
/// Example:
///     // 100 blocks of 512 bits, each a filter with 7 probes
///     const double fpr = block_mixture_fpr(5000, 100, [](double keys) {
///       return standard_fpr(512, 7, static_cast<std::uint64_t>(keys));
///     });
///     assert(fpr > standard_fpr(51200, 7, 5000));  // blocks are filled unequally
double block_mixture_fpr(std::uint64_t keys, std::uint64_t blocks, const function_ref<double(double)>& fpr_of_block);

}  // namespace bloomery
