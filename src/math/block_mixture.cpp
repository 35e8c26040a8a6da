// Exact FPRs for user-defined layouts.
#include <bloomery/block_mixture.hpp>

#include <bloomery/detail/geometry.hpp>
#include <bloomery/error.hpp>

#include "math/rates.hpp"

#include <string>

namespace bloomery {

double standard_fpr(std::uint64_t bits, std::uint32_t probes, std::uint64_t keys) {
  if (bits == 0) throw error(errc::invalid_argument, {"no bits", "bits", "at least 1", "0", ""});
  if (probes == 0 || probes > max_probes)
    throw error(errc::invalid_argument,
                {"number of probes out of range", "probes", "1 to 255", std::to_string(probes), ""});
  return static_cast<double>(rates::classic(bits, probes, keys));
}

double block_mixture_fpr(std::uint64_t keys, std::uint64_t blocks, const function_ref<double(double)>& fpr_of_block) {
  if (blocks == 0) throw error(errc::invalid_argument, {"no blocks", "blocks", "at least 1", "0", ""});
  return static_cast<double>(rates::blocked(keys, static_cast<long double>(blocks), [&](long double keys_in_block) {
    return static_cast<long double>(fpr_of_block(static_cast<double>(keys_in_block)));
  }));
}

}  // namespace bloomery
