// rocksdb_4: the Bloom filter of RocksDB's tables up to format_version 4, in lines of 512 bits.
//
//   h = leveldb_32(key, seed 0xBC9F1D34), the last bytes as signed numbers;  line = h % lines
//   step = h rotated right by 17
//   k times:  bit = 512 line + h % 512;  h += step  (mod 2^32)
//
// Bit i is bit i % 8 of byte i / 8, which is bloomery's order. The number of lines is odd: an even one would determine
// the lowest bit of the positions in a line.
//
// The bits of a key in its line are a progression a, a + d, a + 2d ... modulo 512. One of 512 keys has the step 0 and a
// single bit, and other steps return to the first bit early, so the FPR stays above 0.1% with any number of bits. The
// 32 bits of the hash determine all bits of a key: n keys report at least n / 2^32 of the absent ones.
#include "hash/leveldb.hpp"
#include "math/rates.hpp"
#include "schemes/rocksdb.hpp"
#include "schemes/schemes.hpp"

#include <bloomery/detail/bits.hpp>
#include <bloomery/error.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace bloomery {
namespace {

using rocksdb::line_bits;

constexpr std::uint64_t most_bits = (std::uint64_t{1} << 32) - line_bits;
constexpr std::uint32_t hash_seed = 0xBC9F1D34;
constexpr std::uint64_t hashes_of_keys = std::uint64_t{1} << 32;

void check(const geometry& g) {
  rocksdb::check(g, most_bits);
  if (g.bits / line_bits % 2 == 1) return;
  throw error(errc::invalid_argument, {"invalid number of bits for this scheme", "geometry", "an odd multiple of 512",
                                       std::to_string(g.bits), ""});
}

void positions(std::string_view key, const geometry& g, const hash_choice& /*choice*/, std::uint64_t* out) {
  std::uint32_t hash = hashes::leveldb_32(key, hash_seed, hashes::last_bytes::are_signed);
  const std::uint64_t first = hash % (g.bits / line_bits) * line_bits;
  const std::uint32_t step = std::rotr(hash, 17);
  for (std::uint32_t i = 0; i < g.probes; ++i, hash += step) out[i] = first + hash % line_bits;
}

// ---- false-positive rate --------------------------------------------------------------------------------------------

using line = std::array<std::uint64_t, 8>;

std::uint64_t ones(const line& bits) {
  int sum = 0;
  for (const std::uint64_t word : bits) sum += std::popcount(word);
  return static_cast<std::uint64_t>(sum);
}

// Bit a of the result is bit (a + by) % 512.
line rotated(const line& bits, std::uint32_t by) {
  const std::uint32_t words = by / 64 % 8;
  const std::uint32_t rest = by % 64;
  line result;
  for (std::uint32_t i = 0; i < 8; ++i) {
    const std::uint64_t low = bits[(i + words) % 8] >> rest;
    result[i] = rest == 0 ? low : low | bits[(i + words + 1) % 8] << (64 - rest);
  }
  return result;
}

line both(line a, const line& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] &= b[i];
  return a;
}

// The first bits of those progressions of k bits with this step whose bits are all set.
line covered(const line& bits, std::uint32_t probes, std::uint32_t step) {
  line all = bits;
  std::uint32_t done = 1;
  for (; 2 * done <= probes; done *= 2) all = both(all, rotated(all, done * step));
  return done == probes ? all : both(all, rotated(all, (probes - done) * step));
}

// The share of the 512 * 512 progressions whose bits are all set. Steps d and 512 - d have the same sets of bits.
double covered_share(const line& bits, std::uint32_t probes) {
  std::uint64_t sum = 0;
  for (std::uint32_t step = 0; step <= line_bits / 2; ++step)
    sum += std::uint64_t{step % (line_bits / 2) == 0 ? 1u : 2u} * ones(covered(bits, probes, step));
  return static_cast<double>(sum) / (1.0 * line_bits * line_bits);
}

// The FPR of a line by its number of keys, from sampled lines whose keys are random progressions. From 32 keys on, only
// some numbers of keys are sampled, and the rates between them are interpolated.
class line_rates {
 public:
  explicit line_rates(std::uint32_t probes) : probes_(probes), lines_(sampled_lines) {}

  std::uint32_t probes() const { return probes_; }

  long double operator()(long double keys) {
    while (samples_.back().keys < keys && samples_.back().rate < full) add_sample();
    if (samples_.back().keys < keys) return 1;
    const auto after = std::lower_bound(samples_.begin(), samples_.end(), keys,
                                        [](const sample& s, long double n) { return s.keys < n; });
    if (after->keys == keys) return after->rate;
    const sample& before = *std::prev(after);
    return before.rate + (after->rate - before.rate) * (keys - before.keys) / (after->keys - before.keys);
  }

 private:
  static constexpr std::size_t sampled_lines = 64;
  static constexpr double full = 0.9999;

  struct sample {
    std::uint32_t keys;
    double rate;
  };

  void add_sample() {
    const std::uint32_t more = 1 + samples_.back().keys / 32;
    double sum = 0;
    for (line& bits : lines_) {
      for (std::uint32_t n = 0; n < more; ++n) insert(random_(), bits);
      sum += covered_share(bits, probes_);
    }
    samples_.push_back({samples_.back().keys + more, sum / sampled_lines});
  }

  void insert(std::uint64_t key, line& bits) const {
    auto bit = static_cast<std::uint32_t>(key);
    for (std::uint32_t i = 0; i < probes_; ++i, bit += static_cast<std::uint32_t>(key >> 32))
      bits[bit / 64 % 8] |= std::uint64_t{1} << bit % 64;
  }

  std::uint32_t probes_;
  std::vector<line> lines_;
  std::mt19937_64 random_;
  std::vector<sample> samples_ = {{0, 0}};
};

double expected_fpr(const geometry& g, std::uint64_t keys) {
  if (keys == 0) return 0;
  thread_local line_rates in_line(1);  // callers often need the rates of many numbers of keys in filters of one size
  if (in_line.probes() != g.probes) in_line = line_rates(g.probes);
  const std::uint64_t lines = g.bits / line_bits;
  const long double rate =
      rates::blocked(keys, static_cast<long double>(lines), [&](long double n) { return in_line(n); });
  return static_cast<double>(rates::either(rate, rates::collision(hashes_of_keys, keys)));
}

// A lower bound that takes no time: one of 512 keys has the step 0 and a single bit, which is set as often as others.
double least_fpr(const geometry& g, std::uint64_t keys) {
  double bits_of_key = 0;  // the mean; a step whose lowest 1 is bit z returns to the first bit after 2^(9 - z) probes
  for (std::uint32_t step = 0; step < line_bits; ++step)
    bits_of_key += std::min(g.probes, line_bits >> std::countr_zero(step | line_bits)) / (1.0 * line_bits);
  const double unset = static_cast<double>(keys) * std::log1p(-bits_of_key / static_cast<double>(g.bits));
  return -std::expm1(unset) / line_bits;
}

constexpr std::uint64_t most_beginning = std::uint64_t{1} << 18;

std::uint64_t beginning(const geometry& g) { return std::min(bytes_for(g.bits), most_beginning); }

double current_fpr(const geometry& g, const scheme_bits& seen) {
  const std::size_t lines = seen.beginning.size() / sizeof(line);
  double sum = 0;
  for (std::size_t i = 0; i < lines; ++i) {
    line bits;
    std::memcpy(bits.data(), seen.beginning.data() + i * sizeof(line), sizeof(line));
    sum += covered_share(bits, g.probes);
  }
  const double rate = sum / static_cast<double>(lines);
  return static_cast<double>(rates::either(rate, rates::collision(hashes_of_keys, keys_of(g, seen))));
}

// ---- size -----------------------------------------------------------------------------------------------------------

geometry geometry_of(std::uint64_t capacity, std::uint64_t bits_per_key) {
  const std::uint64_t lines = (capacity * bits_per_key + line_bits - 1) / line_bits;
  const auto probes = static_cast<std::uint32_t>(static_cast<double>(bits_per_key) * 0.69);
  return {(lines | 1) * line_bits, std::clamp(probes, 1u, rocksdb::most_probes)};
}

// RocksDB takes a number of bits per key instead of a target FPR. Chooses the smallest whole number whose expected FPR
// meets the target. If none up to 1.5 times what independent probes need does, the number for independent probes.
geometry geometry_for(std::uint64_t capacity, double target_fpr) {
  const std::uint64_t most = rocksdb::most_bits_per_key_for(capacity, target_fpr, most_bits);
  std::uint64_t least = 1;
  while (least < most && independent_rate(geometry_of(capacity, least), capacity) > target_fpr) ++least;
  if (least == most && most < rocksdb::most_bits_per_key) rocksdb::refuse_target(most_bits);
  for (std::uint64_t bits_per_key = least; bits_per_key <= std::min(least + least / 2, most); ++bits_per_key) {
    const geometry g = geometry_of(capacity, bits_per_key);
    if (least_fpr(g, capacity) <= target_fpr && expected_fpr(g, capacity) <= target_fpr) return g;
  }
  return geometry_of(capacity, least);
}

}  // namespace

constinit const scheme rocksdb_4_scheme = {.name = "rocksdb_4",
                                           .origin = "RocksDB's Bloom filter (C++), up to format_version 4",
                                           .geometry_for = geometry_for,
                                           .check = check,
                                           .positions = positions,
                                           .expected_fpr = expected_fpr,
                                           .current_fpr = current_fpr,
                                           .relative_error = 0.05,
                                           .beginning = beginning};

}  // namespace bloomery
