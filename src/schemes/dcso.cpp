// dcso: the Bloom filter of DCSO (Go) and of Flor (Python), in which CIRCL publishes hashlookup.
//
//   h = FNV-1, 64 bits, of the key, % M         M = 2^64 - 59, the largest prime below 2^64
//   k times:  h = (h * g mod 2^64) % M;  bit = h % m         g = 2^64 - 1469
//
// Bit i is bit i % 64 of the little-endian word i / 64, which is bloomery's order.
#include "hash/fnv.hpp"
#include "math/rates.hpp"
#include "schemes/schemes.hpp"

#include <algorithm>
#include <cmath>

namespace bloomery {
namespace {

constexpr std::uint64_t prime = 0xFFFF'FFFF'FFFF'FFC5u;
constexpr std::uint64_t generator = 0xFFFF'FFFF'FFFF'FA43u;
constexpr std::uint64_t most_bits = std::uint64_t{1} << 48;  // far fewer than the hashes, so none is favoured

void check(const geometry& g) { check_scheme_geometry(g, most_bits); }

// m = floor(-n ln(p) / ln(2)^2),  k = ceil(ln(2) m / n). The Go source rounds the negative number up, which is down.
geometry geometry_for(std::uint64_t capacity, double target_fpr) {
  rates::check_target_fpr(capacity, target_fpr);
  const geometry g = ceil_probes_geometry(capacity, std::floor(go_bits(capacity, target_fpr)));
  check(g);
  return g;
}

void positions(std::string_view key, const geometry& g, std::uint64_t /*seed*/, std::uint64_t* out) {
  std::uint64_t hash = hashes::fnv1_64(key) % prime;
  for (std::uint32_t i = 0; i < g.probes; ++i) {
    hash = hash * generator % prime;
    out[i] = hash % g.bits;
  }
}

}  // namespace

constinit const scheme dcso_scheme = {.name = "dcso",
                                      .origin = "DCSO bloom (Go), Flor (Python), hashlookup",
                                      .geometry_for = geometry_for,
                                      .check = check,
                                      .positions = positions,
                                      .expected_fpr = independent_rate,
                                      .current_fpr = independent_current_fpr};

}  // namespace bloomery
