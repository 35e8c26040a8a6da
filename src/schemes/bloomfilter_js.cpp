// bloomfilter_js: bloomfilter.js of Jason Davies, npm package bloomfilter 1.1.
//
//   h = FNV-1a, 64 bits, of the UTF-16 code units of the key;  a, b = its high and low 32 bits, signed, modulo m
//   bit i = (a + i b + (i^3 - i) / 6) mod m                                          i = 0 .. k - 1
//
// Bit i is bit i % 32 of the 32-bit word i / 32. With little-endian words this is bloomery's order. The hash of valid
// UTF-8 is that of the same text in JavaScript; see each_utf16_unit() for other bytes.
#include "hash/fnv.hpp"
#include "hash/utf16.hpp"
#include "math/rates.hpp"
#include "schemes/javascript.hpp"
#include "schemes/schemes.hpp"

#include <cmath>

namespace bloomery {
namespace {

constexpr std::uint64_t word_bits = 32;

void check(const geometry& g) { check_words(g, javascript::most_bits, word_bits); }

// m0 = ceil(-n log2(p) / ln(2)),  m = 32 ceil(m0 / 32),  k = ceil(ln(2) m0 / n), in the order of the package's
// operations.
geometry geometry_for(std::uint64_t capacity, double target_fpr) {
  rates::check_target_fpr(capacity, target_fpr);
  const auto n = static_cast<double>(capacity);
  const double bits = std::ceil(-n * std::log2(target_fpr) / std::log(2.0));
  return javascript::geometry_of(word_bits * std::ceil(bits / word_bits), std::ceil(std::log(2.0) * bits / n));
}

// The remainder of a signed 32-bit number, never negative.
std::uint64_t remainder(std::uint64_t hash, const geometry& g) {
  const auto bits = static_cast<std::int64_t>(g.bits);
  const std::int64_t rest = static_cast<std::int32_t>(static_cast<std::uint32_t>(hash)) % bits;
  return static_cast<std::uint64_t>(rest < 0 ? rest + bits : rest);
}

void positions(std::string_view key, const geometry& g, const hash_choice& /*choice*/, std::uint64_t* out) {
  std::uint64_t hash = hashes::fnv_start;
  hashes::each_utf16_unit(key, [&](std::uint16_t unit) { hash = hashes::fnv1a_64(hash, unit); });
  javascript::positions(remainder(hash >> 32, g), remainder(hash, g), g, out);
}

}  // namespace

constinit const scheme bloomfilter_js_scheme = {.name = "bloomfilter_js",
                                                .origin = "bloomfilter.js 1.1 of Jason Davies (npm)",
                                                .geometry_for = geometry_for,
                                                .check = check,
                                                .positions = positions,
                                                .expected_fpr = javascript::expected_fpr,
                                                .current_fpr = javascript::current_fpr,
                                                .relative_error = 0.1,
                                                .error_of_bits = 0.5};

}  // namespace bloomery
