// classic: Bloom's own filter. k bits of a key anywhere among all m: the least memory, k cache lines a key.
//
//   x = hash64
//   k times:  cell = hi64(x * m);  x = x * 0xD1342543DE82EF95 + hi  (mod 2^64)
//
// The cell is x scaled to 0 .. m-1. Each probe is a fresh remix of all 128 bits: stepping by a constant (double
// hashing) keeps a floor of about 6n/m^2 under the rate, five times the promise at m = 1021 and k = 14. [Multiplier:
// Steele & Vigna, "Computationally easy, spectrally good multipliers", 2021]
#pragma once

#include <bloomery/export.hpp>
#include <bloomery/layout.hpp>

#include <cstdint>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

namespace layouts {

class classic {
 public:
  static constexpr std::string_view name = "classic";

  /// The most probes geometry_for() chooses: beyond 64 the rate is below 2^-64, and more of them only cost time.
  static constexpr std::uint32_t most_chosen_probes = 64;

  /// The k cells of a key; two of them may be equal.
  class cells {
   public:
    constexpr cells(const geometry& g, key_hash hash) noexcept
        : bits_(g.bits), x_(hash.hash64), step_(hash.high64), count_(g.probes) {}
    constexpr std::uint32_t count() const noexcept { return count_; }
    constexpr std::uint64_t next() noexcept {
      const std::uint64_t cell = multiply_high(x_, bits_);
      x_ = x_ * 0xD1342543DE82EF95u + step_;
      return cell;
    }

   private:
    std::uint64_t bits_;
    std::uint64_t x_;
    std::uint64_t step_;
    std::uint32_t count_;
  };

  /// The fewest bits, with the number of probes that allows them, whose exact rate at n keys is at most p.
  ///
  /// @param capacity             n, keys, at least 1
  /// @param target_fpr  p, a probability in (0, 1)
  /// @throws error  invalid_argument: n is 0, p is outside (0, 1) or NaN; too_large: more than 2^63 bits are needed
  ///
  /// Example:
  ///     const geometry g = layouts::classic::geometry_for(1'000'000, 0.01);
  ///     assert(g.probes == 7);
  ///     assert(g.bits < 9'600'000);  // 9.59 bits a key
  static geometry geometry_for(std::uint64_t capacity, double target_fpr);

  /// geometry_for(n, p).bits
  static std::uint64_t bits_for(std::uint64_t capacity, double target_fpr) {
    return geometry_for(capacity, target_fpr).bits;
  }

  /// The number of probes with the lowest exact rate when n keys share m bits.
  ///
  /// Example:
  ///     assert(layouts::classic::best_probes(9'585'059, 1'000'000) == 7);
  static std::uint32_t best_probes(std::uint64_t bits, std::uint64_t capacity);

  /// @throws error invalid_argument: bits is 0 or above 2^63, probes is outside 1 .. 255
  static void check(const geometry& g);

  /// Exact rate at n distinct keys: the probability that k independent probes all meet bits that n*k independent ones
  /// have set [Bose et al. 2008; Christensen, Roginsky & Jimeno 2010], above Bloom's (1 - (1 - 1/m)^(kn))^k by 6.6 % at
  /// m = 96, k = 7, n = 10 and by nothing at a million keys. Computed without cancellation; costs k^3 log(kn) steps.
  ///
  /// Example:
  ///     const double exact = layouts::classic::expected_fpr({96, 7}, 10);
  ///     assert(exact > 0.010888 && exact < 0.010889);
  static double expected_fpr(const geometry& g, std::uint64_t keys);

  /// n = ln(z / m) / (k ln(1 - 1/m)) for z zeros of m bits; infinity for z = 0.  [Swamidass & Baldi 2007]
  static double keys_from_zeros(const geometry& g, std::uint64_t zeros);
};

}  // namespace layouts

}  // namespace bloomery
