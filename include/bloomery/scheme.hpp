// Schemes: the filter formats of other systems, reproduced bit for bit.
//
// A scheme does not separate hash and layout: it is one function from the key's bytes to cells, with its own sizing
// rule. Schemes exist for compatibility; for new filters choose a layout.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/geometry.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

/// Consecutive bits of a filter, which may continue at its first bit.
struct bit_range {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// The bits that a scheme's current FPR depends on.
struct scheme_bits {
  std::uint64_t ones = 0;                        ///< set bits
  std::uint64_t ones_favoured = 0;               ///< set bits of scheme::favoured
  std::span<const std::uint8_t> beginning = {};  ///< the bytes of scheme::beginning
  std::span<const std::uint64_t> lines = {};     ///< the number of lines with 0, 1, ... scheme::line_bits set bits
};

/// The choice among the hashes of a scheme: a seed, or salts (params::seed, params::salts()).
struct hash_choice {
  std::uint64_t seed = 0;
  std::span<const std::string> salts = {};  ///< if not empty, as scheme::salts states, and the seed is 0
};

/// The salts that a scheme accepts.
struct salt_shape {
  std::uint32_t count = 0;  ///< 0: one per probe
  std::uint32_t bytes = 0;  ///< the length of each; 0: any up to salt_list::longest
};

/// The rule of one system. Cells are numbered as everywhere in bloomery (byte x>>3, mask 1<<(x&7)). If the other system
/// counts bits from the top of a byte or from 1, positions() converts them, so that the bytes in memory are the same.
struct scheme {
  std::string_view name;
  std::string_view origin;  ///< the system that defines the rule, as text

  /// The size that the system itself chooses for n keys at target FPR p; its FPR may exceed p.
  /// @throws error invalid_argument: n is 0, or p is outside (0, 1) or NaN; too_large: beyond the limit of the system
  geometry (*geometry_for)(std::uint64_t capacity, double target_fpr);

  /// @throws error invalid_argument, too_large: not a size of this system
  void (*check)(const geometry& g);

  /// Writes the g.probes cells of `key` to `out`. `choice` selects the hashes if the system supports that (salts of
  /// perl and valkey_bloom; the seed of spark2, datasketches and bloom_filters); other schemes ignore it.
  void (*positions)(std::string_view key, const geometry& g, const hash_choice& choice, std::uint64_t* out);

  /// Expected FPR at n keys. The accuracy depends on the system's hashing:
  ///   python, perl  exact for independent probes, including the bias of 32-bit hashes modulo m
  ///   bits_and_blooms  exact for independent probes
  ///   dcso          the same, including the groups of bits that its hashing makes if m is even: within 5%; within 20%
  ///                 from 500 bits if a high power of two divides m; up to 24 probes
  ///   guava, guava32, spark, spark2
  ///                 includes the effect of double hashing, about 6 n / m^2: within 20% from 1000 bits, 50% at 128;
  ///                 guava32 and spark also that no key has a bit beyond 2^31; below 1e-4 a factor of 2
  ///   redisbloom, valkey_bloom
  ///                 includes double hashing and steps that return to the first bit: within 20% from 1000 bits, with
  ///                 up to 14 probes and a quarter of the bits set; otherwise within a factor of 2
  ///   datasketches  the same, with effects that are smaller than those of guava unless m is a power of two: within 30%
  ///   bloom_filters, bloomfilter_js
  ///                 includes keys whose hashes are equal modulo m: within 5% from 64 bits; beyond 2^30 bits up to 9%
  ///                 too low for one probe, 1.5% for 7
  ///   pharo         from the distribution of its 16-bit hashes: within 5% from 500 bits, 10% at 50 bits; takes 10 ms
  ///   leveldb       from a sample of its 32-bit hashes: within 15% from 200 bits, up to 10 probes; the FPR can be 1.7
  ///                 times as high if 17 or 257 divides m
  ///   rocksdb       exact for independent probes in lines of 512 bits: within 3%
  ///   rocksdb_4     from sampled lines: within 5% up to 2^28 bits
  double (*expected_fpr)(const geometry& g, std::uint64_t keys);

  /// Current FPR of the present bits; measure_fill() collects them:
  ///   python, perl  exact for independent probes: (fraction of hashes that select a set bit)^k
  ///   bits_and_blooms  (fraction of bits set)^k
  ///   dcso          the same for odd m; for even m up to 2^27 bits from the bits of each group
  ///   guava, guava32, spark, spark2, redisbloom, valkey_bloom, datasketches, bloom_filters, bloomfilter_js
  ///                 the same, plus the effect of double hashing at the number of keys that the bits suggest
  ///   pharo         exact for a uniform 32-bit hash: tries all 2^32 values, about 0.1 s per probe;
  ///                 from 16 probes on, an evenly spaced sample of them
  ///   leveldb       up to 2^27 bits the share of 2^20 hashes whose bits are all set, 15 ms; below 1e-4 and in larger
  ///                 filters (fraction of bits set)^k, times the factor that expected_fpr() has at this number of keys
  ///   rocksdb       (fraction of bits set)^k, the mean over all lines
  ///   rocksdb_4     the share of keys of a line whose bits are all set, the mean over the lines of the first 256 KiB,
  ///                 up to 60 ms; plus what 32-bit hashes add at the number of keys that the bits suggest
  double (*current_fpr)(const geometry& g, const scheme_bits& seen);

  /// How far current_fpr() may be from the share of random absent keys that are reported, since some systems make the
  /// bits of a key depend on each other: by relative_error times itself plus error_of_bits / m. Measured.
  double relative_error = 0;
  double error_of_bits = 0;

  /// The bits that one hash more selects than the others, numbered as in that system. Null: current_fpr() needs none.
  bit_range (*favoured)(const geometry& g) = nullptr;

  /// The number of bytes that current_fpr() needs from the first on. Null: none.
  std::uint64_t (*beginning)(const geometry& g) = nullptr;

  /// current_fpr() needs the numbers of set bits of lines of this many bits, a multiple of 8. 0: it does not.
  std::uint32_t line_bits = 0;

  /// Whether the system counts the bits of a byte from the top: its bit x is cell x ^ 7.
  bool from_top = false;

  /// The salt with this number, counted from 0, that a seed selects. Null: the hashes have no salts.
  std::string (*salt_for)(std::uint64_t seed, std::uint32_t number) = nullptr;

  /// The number and the length of the salts that it accepts in place of those of a seed. Requires salt_for.
  salt_shape salts = {};
};

/// All schemes: guava, guava32, spark, spark2, dcso, bits_and_blooms, pharo, python, perl, redisbloom, datasketches,
/// bloom_filters, bloomfilter_js, leveldb, rocksdb, rocksdb_4, valkey_bloom. WebAssembly has guava, guava32, pharo,
/// python and perl.
std::span<const scheme> schemes() noexcept;

/// The scheme with this name, or null.
///
/// Example:
///     const scheme& pharo = *find_scheme("pharo");
///     const geometry g = pharo.geometry_for(10, 0.1);
///     assert((g == geometry{48, 4}));
///     std::uint64_t cells[4];
///     pharo.positions("Madrid", g, {}, cells);
///     assert(cells[0] == (17 ^ 7));  // its bit 18, counted from 1 and from the top of each byte
const scheme* find_scheme(std::string_view name) noexcept;

}  // namespace bloomery
