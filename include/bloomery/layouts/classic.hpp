// classic: the original Bloom filter, with k bits per key anywhere among all m. Least memory, k cache lines per key.
//
//   x = hash64
//   k times:  cell = hi64(x * m);  x = x * 0xD1342543DE82EF95 + hi  (mod 2^64)
//
// The cell is x scaled to 0 .. m-1. Each probe remixes all 128 bits of the hash. Double hashing, which steps by a
// constant, would add about 6n/m^2 to the FPR: five times the target FPR at m = 1021 and k = 14. [Multiplier: Steele &
// Vigna, "Computationally easy, spectrally good multipliers", 2021]
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/layout.hpp>

#include <cstdint>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

namespace layouts {

class classic : public layout_base<classic> {
 public:
  static constexpr std::string_view name = "classic";

  /// Maximum number of probes that geometry_for() chooses: with 64 the FPR is below 2^-64 already, and more cost time.
  static constexpr std::uint32_t most_chosen_probes = 64;

  /// The k cells of a key.
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

  /// Example:
  ///     const geometry g = layouts::classic::geometry_for(1'000'000, 0.01);
  ///     assert(g.probes == 7);
  ///     assert(g.bits < 9'600'000);  // 9.59 bits per key
  static geometry geometry_for(std::uint64_t capacity, double target_fpr);

  /// The number of probes with the lowest exact FPR for n keys in m bits.
  ///
  /// Example:
  ///     assert(layouts::classic::best_probes(9'585'059, 1'000'000) == 7);
  static std::uint32_t best_probes(std::uint64_t bits, std::uint64_t capacity);

  /// @throws error invalid_argument: bits is 0 or above 2^63, or probes is outside 1 .. 255
  static void check(const geometry& g);

  /// The probability that k independent probes all hit bits set by n*k other independent probes [Bose et al. 2008;
  /// Christensen, Roginsky & Jimeno 2010]. It exceeds Bloom's (1 - (1 - 1/m)^(kn))^k by 6.6% at m = 96, k = 7, n = 10;
  /// at a million keys the two agree. Computed without cancellation in k^3 log(kn) steps.
  ///
  /// Example:
  ///     const double exact = layouts::classic::expected_fpr({96, 7}, 10);
  ///     assert(exact > 0.010888 && exact < 0.010889);
  static double expected_fpr(const geometry& g, std::uint64_t keys);

  /// n = ln(z / m) / (k ln(1 - 1/m)), infinity for z = 0.  [Swamidass & Baldi 2007]
  static double keys_from_zeros(const geometry& g, std::uint64_t zeros);
};

}  // namespace layouts

}  // namespace bloomery
