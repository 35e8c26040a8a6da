// Schemes: other systems' own ways from a key to bits, so that bloomery's bits equal theirs.
//
// They do not split into a hash and a layout: each is one function from the key's bytes to cells, with its own sizing
// rule. They are here to be compatible; for a filter of your own choose a layout.
#pragma once

#include <bloomery/export.hpp>
#include <bloomery/geometry.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

/// One system's rule. Cells are numbered as everywhere in bloomery (byte x>>3, mask 1<<(x&7)); where the other system
/// counts bits from the top of a byte or from 1, positions() has converted already, so the bytes in memory equal its
/// bytes.
struct scheme {
  std::string_view name;
  std::string_view origin;  ///< whose rule, in words

  /// The size that the system itself would choose for n keys at rate p, which may miss p.
  /// @throws error invalid_argument: n is 0, p is outside (0, 1) or NaN; too_large: beyond what the system can address
  geometry (*geometry_for)(std::uint64_t capacity, double target_fpr);

  /// @throws error invalid_argument, too_large: not a size that this system can have
  void (*check)(const geometry& g);

  /// Writes g.probes cells of `key` to `out`. `seed` selects another filter's hashes where the system has such a thing
  /// (perl's salts), and is ignored elsewhere.
  void (*positions)(std::string_view key, const geometry& g, std::uint64_t seed, std::uint64_t* out);

  /// The probability that an absent key is reported, at n keys; how true depends on the system's hashing:
  ///   python, perl  exact for independent probes, and counts the bits that 32-bit hashes modulo m favour
  ///   guava         with what its double hashing adds, some 6 n / m^2: true to 20 % from 1000 bits on, to half at 128
  ///   pharo         from the distribution of its 16-bit halves: true to 5 % from 500 bits on, to 10 % at 50; some 10 ms
  double (*expected_fpr)(const geometry& g, std::uint64_t keys);

  /// The same for these bytes, which are bytes_for(g.bits):
  ///   python, perl  exact for independent probes: (share of hashes that lead to a set bit)^k
  ///   guava         the same, and what double hashing adds at as many keys as the bits suggest
  ///   pharo         exact for a uniform 32-bit hash: all of its 2^32 values are tried, some 0.1 s for each probe;
  ///                 from 16 probes on, an even sample of them
  double (*current_fpr)(const geometry& g, std::span<const std::uint8_t> bytes);

  /// Whether the system counts the bits of a byte from its top: its bit x is then our cell x ^ 7.
  bool from_top = false;
};

/// All schemes: guava, pharo, python, perl.
std::span<const scheme> schemes() noexcept;

/// The scheme of this name, or null.
///
/// Example:
///     const scheme& pharo = *find_scheme("pharo");
///     const geometry g = pharo.geometry_for(10, 0.1);
///     assert((g == geometry{48, 4}));
///     std::uint64_t cells[4];
///     pharo.positions("Madrid", g, 0, cells);
///     assert(cells[0] == (17 ^ 7));  // its bit 18, counted from 1 and from the top of each byte
const scheme* find_scheme(std::string_view name) noexcept;

}  // namespace bloomery
