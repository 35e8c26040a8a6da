// valkey_bloom: the layers of the Bloom filters of valkey-bloom (BF.RESERVE, BF.ADD), which are those of the crate
// bloomfilter 3 (Rust).
//
//   a, b = SipHash-1-3 of the key as a slice of Rust, with two keys of 16 bytes: the halves of a seed of 32 bytes
//   bit 0 = a % m,  bit 1 = b % m,  bit i = ((a + i b  mod 2^64) % (2^64 - 59)) % m        i = 2 .. k - 1
//
// Bit i is bit i % 8 of byte i / 8, which is bloomery's order. m is a multiple of 8. valkey-bloom draws the seed at
// random unless bloom-use-random-seed is off; it is the only salt here. Filters that bloomery makes have the seed that
// valkey-bloom has then. A seed s of bloomery other than 0 selects another one: each word of 8 bytes, XOR s.
#include "hash/siphash.hpp"
#include "math/rates.hpp"
#include "schemes/schemes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

namespace bloomery {
namespace {

using seed_words = std::array<std::uint64_t, 4>;

constexpr std::uint64_t largest_prime = 0xFFFF'FFFF'FFFF'FFC5;

// The bytes 59 0F F5 22 EA 78 ..., as little-endian words.
constexpr seed_words fixed_seed{0xDA1178EA22F50F59, 0xD97B3E3B09D814A7, 0x8788983E738A891D, 0x83330728CD977F30};

seed_words words_of(const hash_choice& choice) {
  seed_words words = fixed_seed;
  if (!choice.salts.empty())
    std::memcpy(words.data(), choice.salts.front().data(), sizeof words);
  else
    for (std::uint64_t& word : words) word ^= choice.seed;
  return words;
}

std::string salt_for(std::uint64_t seed, std::uint32_t /*number*/) {
  const seed_words words = words_of({.seed = seed});
  return {reinterpret_cast<const char*>(words.data()), sizeof words};
}

void check(const geometry& g) { check_words(g, most_go_bits, 8); }

// m / 8 = ceil(-n ln(p) / (8 ln(2)^2)),  k = max(1, round(ln(2) m / n)), rounded as by the crate.
geometry geometry_for(std::uint64_t capacity, double target_fpr) {
  rates::check_target_fpr(capacity, target_fpr);
  const double ln2 = std::log(2.0);
  const double n = static_cast<double>(capacity);
  const double bytes = std::ceil(n * std::log(target_fpr) / (-8 * (ln2 * ln2)));
  if (bytes > static_cast<double>(most_go_bits / 8)) check({2 * most_go_bits, 1});
  const std::uint64_t bits = 8 * static_cast<std::uint64_t>(bytes);
  const double probes = std::round(static_cast<double>(bits) / n * ln2);
  const geometry g{bits, static_cast<std::uint32_t>(std::clamp(probes, 1.0, 1e9))};
  check(g);
  return g;
}

void positions(std::string_view key, const geometry& g, const hash_choice& choice, std::uint64_t* out) {
  const seed_words words = words_of(choice);
  const std::uint64_t a = hashes::siphash_of_rust_slice(key, {words[0], words[1]});
  out[0] = a % g.bits;
  if (g.probes == 1) return;
  const std::uint64_t b = hashes::siphash_of_rust_slice(key, {words[2], words[3]});
  out[1] = b % g.bits;
  for (std::uint32_t i = 2; i < g.probes; ++i) out[i] = (a + i * b) % largest_prime % g.bits;
}

double expected_fpr(const geometry& g, std::uint64_t keys) {
  return with_progressions(rates::classic(g.bits, g.probes, keys), g, keys, second_bit::step);
}

double current_fpr(const geometry& g, const scheme_bits& seen) {
  return with_progressions(independent_current_fpr(g, seen), g, keys_of(g, seen), second_bit::step);
}

}  // namespace

constinit const scheme valkey_bloom_scheme = {.name = "valkey_bloom",
                                              .origin = "valkey-bloom (BF.*)",
                                              .geometry_for = geometry_for,
                                              .check = check,
                                              .positions = positions,
                                              .expected_fpr = expected_fpr,
                                              .current_fpr = current_fpr,
                                              .relative_error = 0.05,
                                              .error_of_bits = 5,
                                              .salt_for = salt_for,
                                              .salts = {.count = 1, .bytes = 32}};

}  // namespace bloomery
