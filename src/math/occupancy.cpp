// Occupancy: the mean and variance of clear bits, and estimates of key numbers from them.
#include "math/occupancy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace bloomery {
namespace {

long double bits_of(const occupancy& o) {
  return static_cast<long double>(o.blocks) * static_cast<long double>(o.block_bits);
}

// ln(1 - q), where 1 - q is the probability that a key of the block leaves a given bit of it clear.
long double log_clear_in_block(const occupancy& o) {
  if (o.word_bits != 0) return std::log1p(-1 / static_cast<long double>(o.word_bits));
  return o.probes * std::log1p(-1 / static_cast<long double>(o.block_bits));
}

}  // namespace

long double log_of_staying_clear(const occupancy& o) {
  const long double q = -std::expm1(log_clear_in_block(o));
  return std::log1p(-q / static_cast<long double>(o.blocks));
}

// For two bits let s be P(a key leaves both clear) / P(it leaves one clear)^2 - 1, so that the probability that n keys
// leave both clear is (1 + s)^n times that of independent bits. With q2, the probability that a key of the block sets
// at least one of the two, s = (2q - q2 - q^2/B) / B / (1 - q/B)^2, where 2q - q2 is
//
//   0                          in one word, where a key sets a single bit
//   q^2                        in two words, whose bits are independent
//   q^2 + (1-2/b)^k - (1-1/b)^2k  for k independent bits
//   0 (and no common block)     in two blocks
long double relative_variance_of_zeros(const occupancy& o, long double n) {
  if (n <= 0) return 0;
  const auto B = static_cast<long double>(o.blocks);
  const auto b = static_cast<long double>(o.block_bits);
  const long double clear = std::exp(log_clear_in_block(o));
  const long double q = -std::expm1(log_clear_in_block(o));
  const long double stays = 1 - q / B;
  if (stays <= 0) return std::numeric_limits<long double>::infinity();
  const auto excess = [&](long double both_less) {
    return std::expm1(n * std::log1p((both_less - q * q / B) / (B * stays * stays)));
  };
  long double sum = std::expm1(-n * std::log1p(-q / B));  // the pairs of a bit with itself
  if (o.word_bits != 0) {
    const auto w = static_cast<long double>(o.word_bits);
    sum += (w - 1) * excess(0) + (b - w) * excess(q * q);
  } else if (o.block_bits > 1) {
    // (1-2/b) / (1-1/b)^2 = 1 - 1/(b-1)^2
    const long double apart = o.block_bits == 2
                                  ? -clear * clear
                                  : clear * clear * std::expm1(o.probes * std::log1p(-1 / ((b - 1) * (b - 1))));
    sum += (b - 1) * excess(q * q + apart);
  }
  if (o.blocks > 1) sum += (B - 1) * b * excess(0);
  return std::max(sum / (B * b), 0.0L);
}

namespace {

// Below this value no filter has a clear bit, and results computed from it would overflow.
constexpr long double log_of_none = -1000;

// ln of the fraction of bits that n keys leave clear: the mean over both kinds of blocks, if some blocks have one value
// more. This matters from about 2^26 blocks for 2^32 values, where the difference exceeds the standard deviation.
long double log_of_clear_share(const occupancy& o, long double n) {
  const long double even = n * log_of_staying_clear(o);
  if (o.values % o.blocks == 0 || even < log_of_none) return even;
  const long double q = -std::expm1(log_clear_in_block(o));
  const auto B = static_cast<long double>(o.blocks);
  const auto values = static_cast<long double>(o.values);
  const auto fewer = static_cast<long double>(o.values / o.blocks);
  const long double larger = static_cast<long double>(o.values % o.blocks) / B;
  const auto excess = [&](long double met_by) { return std::expm1(n * std::log1p(-q * met_by / values) - even); };
  return even + std::log1p((1 - larger) * excess(fewer) + larger * excess(fewer + 1));
}

}  // namespace

estimate keys_from_zeros(const occupancy& o, std::uint64_t zeros) {
  const double none = std::numeric_limits<double>::infinity();
  if (zeros == 0) return {none, none};
  const long double step = log_of_staying_clear(o);
  const long double wanted = std::log(static_cast<long double>(zeros) / bits_of(o));
  long double n = wanted / step;
  const int rounds = zeros < o.blocks * o.block_bits && o.values % o.blocks != 0 ? 3 : 0;
  for (int i = 0; i < rounds; ++i) n += (wanted - log_of_clear_share(o, n)) / step;  // Newton; even blocks need none
  const long double sigma = std::sqrt(relative_variance_of_zeros(o, n)) / -step;
  return {static_cast<double>(std::max(0.0L, n)), static_cast<double>(sigma)};  // never -0
}

estimate ones_of_keys(const occupancy& o, double n) {
  if (!(n > 0)) return {};
  const long double exponent = log_of_clear_share(o, static_cast<long double>(n));
  if (exponent < log_of_none) return {static_cast<double>(bits_of(o)), 0};
  const long double zeros = bits_of(o) * std::exp(exponent);
  return {static_cast<double>(-bits_of(o) * std::expm1(exponent)),
          static_cast<double>(zeros * std::sqrt(relative_variance_of_zeros(o, static_cast<long double>(n))))};
}

}  // namespace bloomery
