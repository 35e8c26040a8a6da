// rocksdb: the Bloom filter of RocksDB's tables from format_version 5 on (FastLocalBloom), in lines of 512 bits.
//
//   h = xxh3_preview(key);  line = ((h mod 2^32) * lines) >> 32;  g = h >> 32
//   k times:  bit = 512 line + (g >> 23);  g *= 0x9E3779B9  (mod 2^32)
//
// Bit i is bit i % 8 of byte i / 8, which is bloomery's order. All bits of a key are in one line, so lines with more
// keys than others have a higher FPR: expected_fpr() is the mean over the number of keys of a line.
#include "schemes/rocksdb.hpp"
#include "hash/xxh3_preview.hpp"
#include "math/rates.hpp"
#include "schemes/schemes.hpp"

#include <bloomery/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace bloomery {
namespace {

using rocksdb::line_bits;

constexpr std::uint64_t most_bits = 8 * std::uint64_t{0xFFFF'FFC0};
constexpr std::uint32_t factor = 0x9E37'79B9;

void check(const geometry& g) { rocksdb::check(g, most_bits); }

void positions(std::string_view key, const geometry& g, const hash_choice& /*choice*/, std::uint64_t* out) {
  const std::uint64_t hash = hashes::xxh3_preview(key);
  const std::uint64_t line = (hash & 0xFFFF'FFFF) * (g.bits / line_bits) >> 32;
  auto probe = static_cast<std::uint32_t>(hash >> 32);
  for (std::uint32_t i = 0; i < g.probes; ++i, probe *= factor) out[i] = line * line_bits + (probe >> 23);
}

// Keys of a line that share the other 32 bits of the hash have the same bits.
double expected_fpr(const geometry& g, std::uint64_t keys) {
  const std::uint64_t lines = g.bits / line_bits;
  rates::block_rates in_line(line_bits, g.probes);
  const auto rate = rates::blocked(keys, static_cast<long double>(lines), [&](long double n) { return in_line(n); });
  return static_cast<double>(rates::either(rate, rates::collision(0x1p32L * static_cast<long double>(lines), keys)));
}

double current_fpr(const geometry& g, const scheme_bits& seen) {
  double sum = 0;
  for (std::size_t ones = 1; ones < seen.lines.size(); ++ones) {
    sum += static_cast<double>(seen.lines[ones]) *
           std::pow(static_cast<double>(ones) / static_cast<double>(line_bits), g.probes);
  }
  return sum * static_cast<double>(line_bits) / static_cast<double>(g.bits);
}

// ---- size -----------------------------------------------------------------------------------------------------------

// The number of probes that RocksDB selects for a whole number of bits per key.
std::uint32_t probes_for(std::uint64_t bits_per_key) {
  constexpr std::array<std::uint64_t, 12> most = {2, 3, 5, 6, 8, 10, 11, 14, 16, 18, 22, 25};  // for 1, 2, ... probes
  const auto found = std::lower_bound(most.begin(), most.end(), bits_per_key);
  if (found != most.end()) return static_cast<std::uint32_t>(found - most.begin() + 1);
  return bits_per_key > 50 ? 24 : static_cast<std::uint32_t>((1000 * bits_per_key - 1) / 2000 - 1);
}

geometry geometry_of(std::uint64_t capacity, std::uint64_t bits_per_key) {
  return {(capacity * bits_per_key + line_bits - 1) / line_bits * line_bits, probes_for(bits_per_key)};
}

// RocksDB takes a number of bits per key instead of a target FPR. Chooses the smallest whole number whose expected FPR
// meets the target; 100 if none does.
geometry geometry_for(std::uint64_t capacity, double target_fpr) {
  const std::uint64_t most = rocksdb::most_bits_per_key_for(capacity, target_fpr, most_bits);
  for (std::uint64_t bits_per_key = 1; bits_per_key <= most; ++bits_per_key) {
    const geometry g = geometry_of(capacity, bits_per_key);
    if (independent_rate(g, capacity) <= target_fpr && expected_fpr(g, capacity) <= target_fpr) return g;
  }
  if (most < rocksdb::most_bits_per_key) rocksdb::refuse_target(most_bits);
  return geometry_of(capacity, most);
}

}  // namespace

constinit const scheme rocksdb_scheme = {.name = "rocksdb",
                                         .origin = "RocksDB's Bloom filter (C++), format_version 5 and later",
                                         .geometry_for = geometry_for,
                                         .check = check,
                                         .positions = positions,
                                         .expected_fpr = expected_fpr,
                                         .current_fpr = current_fpr,
                                         .relative_error = 0.05,
                                         .line_bits = line_bits};

// ---- common parts with rocksdb_4 ------------------------------------------------------------------------------------

void rocksdb::check(const geometry& g, std::uint64_t limit) {
  check_words(g, limit, line_bits);
  if (g.probes > most_probes) {
    throw error(errc::invalid_argument, {"invalid number of probes", "geometry", "1 to " + std::to_string(most_probes),
                                         std::to_string(g.probes), ""});
  }
}

std::uint64_t rocksdb::most_bits_per_key_for(std::uint64_t capacity, double target_fpr, std::uint64_t limit) {
  rates::check_target_fpr(capacity, target_fpr);
  if (capacity > limit) refuse_target(limit);
  return std::min(most_bits_per_key, limit / capacity);
}

void rocksdb::refuse_target(std::uint64_t limit) {
  throw error(errc::too_large,
              {"too many keys or too low a false-positive rate for this scheme", "geometry",
               limit == most_bits ? "at most 4 GiB" : "at most 512 MiB", "", hint::use_fewer_keys_or_layout});
}

}  // namespace bloomery
