// pharo: PDSBloomFilter of PharoPDS, the Smalltalk library behind a well-known tutorial.
//
//   h = murmur3_x86_32(key, seed 0);  h1 = h & 0xFFFF;  h2 = h >> 16
//   bit i = ((h1 + i * h2) mod m) + 1      i = 1 .. k; bits count from 1, and in a byte from the top
//
// Hashes of 16 bits reach only the first 65535 (k + 1) bits. A filter of a million keys fills these and reports nearly
// every absent key (97% for a target FPR of 1%). The scheme is usable for a few thousand keys.
#include "hash/murmur3.hpp"
#include "schemes/schemes.hpp"

#include <bloomery/detail/bits.hpp>
#include <bloomery/sizing.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace bloomery {
namespace {

constexpr std::uint64_t hash64s = 0x10000;  // values of h1, and of h2
constexpr std::uint64_t most_bits = std::uint64_t{1} << 63;

void check(const geometry& g) { check_scheme_geometry(g, most_bits); }

geometry geometry_for(std::uint64_t capacity, double target_fpr) {
  const geometry g = ceil_ceil_geometry(capacity, target_fpr);
  check(g);
  return g;
}

// Bit i of a key, counted from 0.
std::uint64_t bit_of(std::uint64_t h1, std::uint64_t h2, std::uint64_t i, std::uint64_t bits) {
  return (h1 + i * h2) % bits;
}

void positions(std::string_view key, const geometry& g, const hash_choice& /*choice*/, std::uint64_t* out) {
  const std::uint32_t h = hashes::murmur3_x86_32(key, 0);
  for (std::uint32_t i = 1; i <= g.probes; ++i) out[i - 1] = bit_of(h & 0xFFFF, h >> 16, i, g.bits) ^ 7;
}

// The number of different bits of a key: its progression may return to its first bit.
std::uint32_t distinct_bits(const geometry& g, std::uint64_t h2) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(g.probes, g.bits / std::gcd(h2, g.bits)));
}

// Calls work(h2, count) for distinct values of h2 modulo m; `count` values of h2 are equal modulo m.
template <class Work>
void each_step(const geometry& g, Work work) {
  const std::uint64_t classes = std::min(g.bits, hash64s);
  for (std::uint64_t h2 = 0; h2 < classes; ++h2) work(h2, hash64s / classes + (h2 < hash64s % classes ? 1 : 0));
}

// The probability that a key sets a bit, for each reachable bit.
//
// For given h2 and i, h1 = 0 .. 65535 selects a run of 65536 bits, wrapping around the end. So +1 is added where a run
// begins and -1 where it ends, and the prefix sum counts the keys of every bit.
std::vector<double> chances_of_bits(const geometry& g) {
  const std::uint64_t reach = std::min(g.bits, (hash64s - 1) * (g.probes + 1) + 1);
  const std::uint64_t rounds = hash64s / reach;
  const std::uint64_t run = hash64s % reach;
  std::vector<std::int64_t> notes(reach + 1);
  std::uint64_t in_every_round = 0;
  each_step(g, [&](std::uint64_t h2, std::uint64_t count) {
    const std::uint32_t distinct = distinct_bits(g, h2);
    const auto alike = static_cast<std::int64_t>(count);
    in_every_round += count * distinct;
    for (std::uint32_t i = 1; i <= distinct; ++i) {
      const std::uint64_t begin = bit_of(0, h2, i, g.bits);
      const std::uint64_t end = begin + run;
      notes[begin] += alike;
      if (end > reach) notes[0] += alike;
      notes[end > reach ? end - reach : end] -= alike;
    }
  });
  std::vector<double> chances(reach);
  auto keys = static_cast<std::int64_t>(rounds * in_every_round);
  for (std::uint64_t bit = 0; bit < reach; ++bit) {
    keys += notes[bit];
    chances[bit] = static_cast<double>(keys) / 0x1p32;
  }
  return chances;
}

// Whether some value of h1 or h2 selects bit x; a negative x counts from the end.
bool is_half(std::int64_t x, std::uint64_t bits) {
  const std::uint64_t bit =
      x >= 0 ? static_cast<std::uint64_t>(x) % bits : bits - 1 - static_cast<std::uint64_t>(-(x + 1)) % bits;
  return bit < hash64s;
}

// The expected FPR at n keys, as the mean over absent keys.
//
// Bits are assumed to be set independently, each with its own probability. A correction accounts for keys whose bits
// are the same progression h1 + i h2, shifted by s steps in either direction, possibly reversed: one such key sets k -
// s of the k bits at once. They are few, but at low rates they cause many of the false positives. Most other false
// positives then are keys with short cycles (such as "Roma"), which have only one or two bits.
class model {
 public:
  model(const geometry& g, std::uint64_t keys)
      : g_(g), keys_(static_cast<double>(keys)), chances_(chances_of_bits(g)), set_(chances_.size(), unknown) {}

  double rate() { return g_.bits <= most_tried ? rate_by_all() : rate_by_samples(); }

 private:
  static constexpr double unknown = -1;
  static constexpr std::uint64_t most_tried = 256;  // up to this many bits, all pairs of h1 and h2 modulo m are tried

  double rate_by_all() {
    double sum = 0;
    each_step(g_, [&](std::uint64_t h2, std::uint64_t steps) {
      each_step(g_, [&](std::uint64_t h1, std::uint64_t starts) {
        sum += static_cast<double>(steps * starts) * rate_of(h1, h2);
      });
    });
    return sum / (static_cast<double>(hash64s) * hash64s);
  }

  // All h2 with short cycles, with four values of h1 each; every fourth other h2, with one.
  double rate_by_samples() {
    constexpr std::uint64_t every = 4;
    double come_round = 0;
    double others = 0;
    std::uint64_t count_of_others = 0;
    std::uint64_t sampled = 0;
    for (std::uint64_t h2 = 0; h2 < hash64s; ++h2) {
      if (distinct_bits(g_, h2) < g_.probes) {
        for (std::uint64_t i = 0; i < every; ++i) come_round += rate_of(even_half(every * h2 + i), h2) / every;
      } else if (count_of_others++ % every == 0) {
        others += rate_of(even_half(sampled++), h2);
      }
    }
    if (sampled > 0) others *= static_cast<double>(count_of_others) / static_cast<double>(sampled);
    return (come_round + others) / hash64s;
  }

  // Multiples of the golden ratio are evenly distributed for any number of samples.
  static std::uint64_t even_half(std::uint64_t i) { return (2 * i + 1) * 0x4F1BBCDCBFA53E0Bu >> 48; }

  // The probability that bit i of such a key is set.
  double set(std::uint64_t h1, std::uint64_t h2, std::uint32_t i) {
    const std::uint64_t bit = bit_of(h1, h2, i, g_.bits);
    if (set_[bit] == unknown) set_[bit] = -std::expm1(keys_ * std::log1p(-chances_[bit]));
    return set_[bit];
  }

  double rate_of(std::uint64_t h1, std::uint64_t h2) {
    const std::uint32_t k = distinct_bits(g_, h2);
    double all = 1;
    double odds = 0;  // sum of (1 - p) / p over the probabilities p of the bits
    for (std::uint32_t i = 1; i <= k; ++i) {
      const double p = set(h1, h2, i);
      all *= p;
      odds += 1 / p - 1;
    }
    if (k < g_.probes) return all;

    // If one key sets all but the first (last) s bits, other keys must set these s bits. The part already counted by
    // the formula for independent bits is subtracted.
    double blows = 0;
    double first = 1, last = 1;
    double odds_first = odds, odds_last = odds;
    for (std::uint32_t s = 0; s < k; ++s) {
      blows += ways(h1, h2, s) * (first - all * (1 + odds_first));
      if (s > 0) blows += ways(h1, h2, -std::int64_t{s}) * (last - all * (1 + odds_last));
      const double next_first = set(h1, h2, s + 1);
      const double next_last = set(h1, h2, k - s);
      first *= next_first;
      last *= next_last;
      odds_first -= 1 / next_first - 1;
      odds_last -= 1 / next_last - 1;
    }
    const auto different = static_cast<double>(std::min(g_.bits, hash64s));  // h1 modulo m, and h2
    return std::clamp(all + keys_ / (different * different) * blows, all, 1.0);
  }

  // The number of pairs (h1, h2) modulo m with the same progression, shifted by s steps: forward and reversed.
  int ways(std::uint64_t h1, std::uint64_t h2, std::int64_t s) const {
    const auto start = static_cast<std::int64_t>(h1);
    const auto step = static_cast<std::int64_t>(h2);
    const bool reversible = is_half(-step, g_.bits) && is_half(start + (s + g_.probes + 1) * step, g_.bits);
    return (is_half(start + s * step, g_.bits) ? 1 : 0) + (reversible ? 1 : 0);
  }

  geometry g_;
  double keys_;
  std::vector<double> chances_;
  std::vector<double> set_;
};

double expected_fpr(const geometry& g, std::uint64_t keys) { return keys == 0 ? 0 : model(g, keys).rate(); }

constexpr std::size_t run_words = hash64s / 64;

// The words as far as keys reach, and one more for the shift below.
std::size_t reached_words(const geometry& g) { return run_words * (g.probes + 1) + 1; }

std::uint64_t beginning(const geometry& g) { return std::min(bytes_for(g.bits), std::uint64_t{8} * reached_words(g)); }

// Tests all values of h1 at once for each h2: the bits (h1 + i h2) mod m of 65536 keys are a run of bits, and the
// bitwise and of the k runs shows the keys whose bits are all set.
double current_fpr(const geometry& g, const scheme_bits& seen) {
  // The filter's bits, repeated as far as keys reach.
  std::vector<std::uint64_t> unrolled(reached_words(g));
  std::uint64_t bit = 0;
  for (std::uint64_t& word : unrolled) {
    for (std::uint64_t i = 0; i < 64; ++i) {
      word |= std::uint64_t{test_bit(seen.beginning.data(), bit ^ 7)} << i;
      bit = bit + 1 == g.bits ? 0 : bit + 1;
    }
  }
  std::vector<std::uint64_t> found(run_words);
  const auto reported_by = [&](std::uint64_t h2) {
    std::fill(found.begin(), found.end(), ~std::uint64_t{0});
    for (std::uint32_t i = 1; i <= g.probes; ++i) {
      const std::uint64_t* const run = unrolled.data() + i * h2 / 64;
      const std::uint64_t shift = i * h2 % 64;
      for (std::size_t w = 0; w < run_words; ++w) found[w] &= run[w] >> shift | run[w + 1] << 1 << (63 - shift);
      // If some keys remain, this loop ends early.
      if (std::all_of(found.begin(), found.end(), [](std::uint64_t word) { return word == 0; }))
        return std::uint64_t{0};
    }
    std::uint64_t reported = 0;
    for (const std::uint64_t word : found) reported += static_cast<std::uint64_t>(std::popcount(word));
    return reported;
  };
  // For many probes, an evenly spaced sample of h2 limits the time to a second.
  const std::uint64_t tried = hash64s / std::bit_ceil(g.probes / 16 + 1u);
  std::uint64_t reported = 0;
  if (tried == hash64s || g.bits <= tried) {
    each_step(g, [&](std::uint64_t h2, std::uint64_t count) { reported += count * reported_by(h2); });
    return static_cast<double>(reported) / 0x1p32;
  }
  for (std::uint64_t i = 0; i < tried; ++i) reported += reported_by(i * 0x9E37'79B9'7F4A'7C15u >> 48);
  return static_cast<double>(reported) / (0x1p16 * static_cast<double>(tried));
}

}  // namespace

constinit const scheme pharo_scheme = {.name = "pharo",
                                       .origin = "PDSBloomFilter of PharoPDS (Smalltalk)",
                                       .geometry_for = geometry_for,
                                       .check = check,
                                       .positions = positions,
                                       .expected_fpr = expected_fpr,
                                       .current_fpr = current_fpr,
                                       .beginning = beginning,
                                       .from_top = true};

}  // namespace bloomery
