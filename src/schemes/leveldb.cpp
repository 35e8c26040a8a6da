// leveldb: the filter policy leveldb.BuiltinBloomFilter2, NewBloomFilterPolicy() of LevelDB.
//
//   h = leveldb_32(key, seed 0xBC9F1D34);  step = h rotated right by 17
//   k times:  bit = h % m;  h += step  (mod 2^32)
//
// Bit i is bit i % 8 of byte i / 8, which is bloomery's order. m is a multiple of 8.
//
// The 32 bits of the hash determine all bits of a key, so n keys report at least n / 2^32 of the absent ones: 1% for 43
// million keys, whatever the number of bits. LevelDB makes a filter per 2 KiB of data, where this does not matter, but
// small filters have other deviations from independent probes:
//
// - A key has fewer than k bits if its step returns to its first bit: for small m or many probes.
// - A rotation is a multiplication by a power of 2 modulo 2^32 - 1 = 3 * 5 * 17 * 257 * 65537. If one of these divides
//   m, the first bit of a key and its sums beyond 2^32 determine all others modulo that divisor. Then some remainders
//   are selected more often: with k = 2 and m = 960, the FPR is 28% instead of 25%.
// - Keys can share a progression of bits, as with any double hashing.
//
// The hash mixes the last bytes of a key weakly. For 100,000 numbered keys and 10 bits per key, the FPR is 0.5% to 1.5%
// instead of 0.84%, depending on how the numbers are written. expected_fpr() is that of uniform hashes.
#include "hash/leveldb.hpp"
#include "math/rates.hpp"
#include "schemes/schemes.hpp"

#include <bloomery/detail/bits.hpp>
#include <bloomery/error.hpp>
#include <bloomery/sizing.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

namespace bloomery {
namespace {

constexpr std::uint32_t hash_seed = 0xBC9F1D34;
constexpr std::uint32_t most_probes = 30;  // more mean another encoding to LevelDB, which then reports every key
constexpr std::uint64_t least_bits = 64;   // of a filter that LevelDB makes
constexpr std::uint64_t most_bits_per_key = 1000;
constexpr std::uint64_t hashes_of_keys = std::uint64_t{1} << 32;

void check(const geometry& g) {
  check_words(g, hashes_of_keys, 8);
  if (g.probes > most_probes) {
    throw error(errc::invalid_argument, {"invalid number of probes", "geometry", "1 to " + std::to_string(most_probes),
                                         std::to_string(g.probes), ""});
  }
}

void positions_of_hash(std::uint32_t hash, const geometry& g, std::uint64_t* out) {
  const std::uint32_t step = std::rotr(hash, 17);
  for (std::uint32_t i = 0; i < g.probes; ++i, hash += step) out[i] = hash % g.bits;
}

void positions(std::string_view key, const geometry& g, const hash_choice& /*choice*/, std::uint64_t* out) {
  positions_of_hash(hashes::leveldb_32(key, hash_seed), g, out);
}

// ---- false-positive rate --------------------------------------------------------------------------------------------

constexpr std::uint32_t sampled_keys = 1 << 13;
constexpr std::uint64_t most_classes = 257;

// The share of progressions that no sum beyond 2^32 changes modulo m. Measured.
constexpr long double share_in_range = 0.4L;
constexpr long double share_of_powers_of_2 = 1.2L;  // sums beyond 2^32 change nothing if m divides 2^32

// The hash of sampled key i: that of murmur3's last step, a permutation, so the sample has no hash twice.
std::uint32_t sampled_hash(std::uint32_t i) {
  std::uint32_t hash = (i ^ i >> 16) * 0x85EBCA6B;
  hash = (hash ^ hash >> 13) * 0xC2B2AE35;
  return hash ^ hash >> 16;
}

// The different bits of sampled keys, by their class: the remainder modulo a divisor of 2^32 - 1 that divides m.
struct key_sample {
  geometry size;
  std::vector<std::uint16_t> classes;  // of the bits of all keys, one key after the other
  std::vector<std::uint8_t> bits;      // number of different bits per key
  std::vector<std::uint32_t> load;     // number of bits per class
};

key_sample sample_keys(const geometry& g) {
  const std::uint64_t divisor = std::gcd(g.bits, hashes_of_keys - 1);
  const std::uint64_t classes = divisor <= most_classes ? divisor : 1;
  key_sample sample{g, {}, {}, std::vector<std::uint32_t>(classes)};
  std::array<std::uint64_t, most_probes> bits;
  for (std::uint32_t i = 1; i <= sampled_keys; ++i) {
    positions_of_hash(sampled_hash(i), g, bits.data());
    auto end = bits.begin();
    for (std::uint32_t p = 0; p < g.probes; ++p) {
      const std::uint64_t bit = bits[p];
      if (std::find(bits.begin(), end, bit) != end) continue;
      *end++ = bit;
      sample.classes.push_back(static_cast<std::uint16_t>(bit % classes));
      ++sample.load[bit % classes];
    }
    sample.bits.push_back(static_cast<std::uint8_t>(end - bits.begin()));
  }
  return sample;
}

// The mean over absent keys of the product of the fill ratios of their bits, where bits of a class have the same fill
// ratio; relative to fill ratios that are all the same, of k bits.
long double relative_rate(const geometry& g, std::uint64_t keys) {
  thread_local key_sample sample;  // callers often need the rates of many numbers of keys in filters of one size
  if (sample.size != g) sample = sample_keys(g);
  const auto n = static_cast<long double>(keys);
  const auto m = static_cast<long double>(g.bits);
  const auto classes = static_cast<long double>(sample.load.size());
  std::vector<double> fill;
  for (const std::uint32_t bits : sample.load) {
    const long double chance = static_cast<long double>(bits) / sampled_keys * classes / m;
    fill.push_back(static_cast<double>(-std::expm1(n * std::log1p(-std::min(chance, 1.0L)))));
  }
  double sum = 0;
  auto next = sample.classes.begin();
  for (const std::uint8_t bits : sample.bits) {
    double all = 1;
    for (std::uint8_t i = 0; i < bits; ++i) all *= fill[*next++];
    sum += all;
  }
  const long double even = -std::expm1(n * g.probes * std::log1p(-1 / m));
  return sum / sampled_keys / std::pow(even, static_cast<long double>(g.probes));
}

double expected_fpr(const geometry& g, std::uint64_t keys) {
  if (keys == 0) return 0;
  const long double same_hash = -std::expm1(static_cast<long double>(keys) * std::log1p(-0x1p-32L));
  const long double rate = std::min(1.0L, remainder_rate_of_32_bits(g, keys) * relative_rate(g, keys));
  const long double share = std::has_single_bit(g.bits) ? share_of_powers_of_2 : share_in_range;
  return static_cast<double>(rates::either(with_double_hashing(rate, g, keys, share), same_hash));
}

constexpr std::uint64_t most_sampled_bits = std::uint64_t{1} << 27;
constexpr std::uint32_t lookups = 1 << 20;
constexpr std::uint32_t least_hits = 100;

std::uint64_t beginning(const geometry& g) { return g.bits <= most_sampled_bits ? bytes_for(g.bits) : 0; }

// The share of a million hashes whose bits are all set. At low rates and for large filters: the rate of independent
// probes, times what expected_fpr() adds for the number of keys that the bits suggest.
double current_fpr(const geometry& g, const scheme_bits& seen) {
  std::uint32_t hits = 0;
  for (std::uint32_t i = 1; i <= lookups && !seen.beginning.empty(); ++i) {
    std::uint32_t hash = sampled_hash(i);
    const std::uint32_t step = std::rotr(hash, 17);
    std::uint32_t probe = 0;
    for (; probe < g.probes && test_bit(seen.beginning.data(), hash % g.bits); ++probe) hash += step;
    hits += probe == g.probes ? 1 : 0;
  }
  if (hits >= least_hits) return static_cast<double>(hits) / lookups;
  const std::uint64_t keys = keys_of(g, seen);
  if (keys == 0) return independent_current_fpr(g, seen);
  const double relative = expected_fpr(g, keys) / remainder_rate_of_32_bits(g, keys);
  return std::min(1.0, remainder_current_fpr(g, seen) * relative);
}

bit_range favoured(const geometry& g) { return remainder_favoured(g, 0); }

// ---- size -----------------------------------------------------------------------------------------------------------

// The filter that LevelDB makes for n keys at a given number of bits per key.
geometry geometry_of(std::uint64_t capacity, std::uint64_t bits_per_key) {
  const auto probes = static_cast<std::uint32_t>(static_cast<double>(bits_per_key) * 0.69);
  return {std::max(least_bits, (capacity * bits_per_key + 7) / 8 * 8), std::clamp(probes, 1u, most_probes)};
}

// LevelDB takes a number of bits per key instead of a target FPR. Chooses the smallest one whose expected FPR meets the
// target; if up to twice as many as independent probes need do not meet it, the number for independent probes.
geometry geometry_for(std::uint64_t capacity, double target_fpr) {
  rates::check_target_fpr(capacity, target_fpr);
  const std::uint64_t most = std::min(hashes_of_keys / capacity, most_bits_per_key);
  std::uint64_t least = 1;
  while (least <= most && independent_rate(geometry_of(capacity, least), capacity) > target_fpr) ++least;
  if (least > most) {
    throw error(errc::too_large, {"too many keys or too low a false-positive rate for this scheme", "geometry",
                                  "at most 2^32 bits, 1000 bits per key", "", hint::use_fewer_keys_or_layout});
  }
  for (std::uint64_t bits_per_key = least; bits_per_key <= std::min(2 * least, most); ++bits_per_key) {
    const geometry g = geometry_of(capacity, bits_per_key);
    if (expected_fpr(g, capacity) <= target_fpr) return g;
  }
  return geometry_of(capacity, least);
}

}  // namespace

constinit const scheme leveldb_scheme = {.name = "leveldb",
                                         .origin = "LevelDB's Bloom filter policy (C++)",
                                         .geometry_for = geometry_for,
                                         .check = check,
                                         .positions = positions,
                                         .expected_fpr = expected_fpr,
                                         .current_fpr = current_fpr,
                                         .relative_error = 0.3,
                                         .favoured = favoured,
                                         .beginning = beginning};

}  // namespace bloomery
