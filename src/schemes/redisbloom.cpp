// redisbloom: the layers of the Bloom filters of RedisBloom and Redis 8 (BF.RESERVE, BF.ADD).
//
//   a = MurmurHash64A(key, seed 0xC6A4A7935BD1E995);  b = MurmurHash64A(key, seed a)
//   bit i = (a + i b  mod 2^64) % m        i = 0 .. k - 1
//
// Bit i is bit i % 8 of byte i / 8, which is bloomery's order. m is a multiple of 64; in filters of early versions,
// it is a power of two. The earliest had hashes of 32 bits, which are not here.
#include "hash/murmur2.hpp"
#include "math/rates.hpp"
#include "schemes/schemes.hpp"

#include <algorithm>
#include <cmath>

namespace bloomery {
namespace {

constexpr std::uint64_t word_bits = 64;
constexpr std::uint64_t first_seed = 0xC6A4A7935BD1E995u;

void check(const geometry& g) { check_words(g, most_go_bits); }

// BF.RESERVE sizes the first layer for half the target FPR p, because the layers of a filter that grows share p. It
// treats p above 25% as 25%. With e = p / 2:
//
//   b = -ln(e) / ln(2)^2 bits per key;  m = n b, rounded down and then up to a multiple of 64;  k = ceil(ln(2) b)
geometry geometry_for(std::uint64_t capacity, double target_fpr) {
  rates::check_target_fpr(capacity, target_fpr);
  constexpr double ln2_squared = 0.480453013918201;
  constexpr double ln2 = 0.693147180559945;
  const double bits_per_key = -std::log(std::min(target_fpr, 0.25) / 2) / ln2_squared;
  const double bits = static_cast<double>(capacity) * bits_per_key;
  if (bits >= static_cast<double>(most_go_bits)) check({2 * most_go_bits, 1});
  const std::uint64_t words = (std::max<std::uint64_t>(static_cast<std::uint64_t>(bits), 1) - 1) / word_bits + 1;
  const geometry g{words * word_bits, static_cast<std::uint32_t>(std::ceil(ln2 * bits_per_key))};
  check(g);
  return g;
}

void positions(std::string_view key, const geometry& g, const hash_choice& /*choice*/, std::uint64_t* out) {
  std::uint64_t sum = hashes::murmur64a(key, first_seed);
  const std::uint64_t step = hashes::murmur64a(key, sum);
  for (std::uint32_t i = 0; i < g.probes; ++i, sum += step) out[i] = sum % g.bits;
}

double expected_fpr(const geometry& g, std::uint64_t keys) {
  return with_progressions(rates::classic(g.bits, g.probes, keys), g, keys);
}

double current_fpr(const geometry& g, const scheme_bits& seen) {
  return with_progressions(independent_current_fpr(g, seen), g, keys_of(g, seen));
}

}  // namespace

constinit const scheme redisbloom_scheme = {.name = "redisbloom",
                                            .origin = "RedisBloom and Redis 8 (BF.*)",
                                            .geometry_for = geometry_for,
                                            .check = check,
                                            .positions = positions,
                                            .expected_fpr = expected_fpr,
                                            .current_fpr = current_fpr,
                                            .relative_error = 0.05,
                                            .error_of_bits = 5};

}  // namespace bloomery
