// The rows of the table of schemes, one file each, and common functions. Read guava.cpp first: it is the simplest.
#pragma once

#include <bloomery/detail/geometry.hpp>
#include <bloomery/scheme.hpp>

#include <cstdint>

namespace bloomery {

extern const scheme guava_scheme;
extern const scheme guava32_scheme;
extern const scheme spark_scheme;
extern const scheme spark2_scheme;
extern const scheme dcso_scheme;
extern const scheme bits_and_blooms_scheme;
extern const scheme pharo_scheme;
extern const scheme python_scheme;
extern const scheme perl_scheme;
extern const scheme redisbloom_scheme;
extern const scheme datasketches_scheme;
extern const scheme bloom_filters_scheme;
extern const scheme bloomfilter_js_scheme;
extern const scheme leveldb_scheme;
extern const scheme rocksdb_scheme;
extern const scheme rocksdb_4_scheme;
extern const scheme valkey_bloom_scheme;

/// @throws error  invalid_argument: no bits, or probes outside 1 .. 255; too_large: more than `most_bits`
void check_scheme_geometry(const geometry& g, std::uint64_t most_bits);

/// The same for filters of whole words, or bytes.
void check_words(const geometry& g, std::uint64_t most_bits, std::uint64_t word_bits = 64);

/// Far fewer bits than 64-bit hashes, so that none is selected more often.
constexpr std::uint64_t most_go_bits = std::uint64_t{1} << 48;

/// -n ln(p) / ln(2)^2 bits, computed as by the libraries in Go. @throws error  invalid_argument
double go_bits(std::uint64_t capacity, double target_fpr);

/// m = max(1, bits),  k = max(1, ceil(ln(2) m / n)). @throws error  too_large: more than most_go_bits or 255 probes
geometry ceil_probes_geometry(std::uint64_t capacity, double bits);

/// Expected FPR at n keys for k independent uniform probes.
double independent_rate(const geometry& g, std::uint64_t keys);

/// Current FPR for such probes: (fraction of set bits)^k.
double independent_current_fpr(const geometry& g, const scheme_bits& seen);

/// Number of keys that leave about as many bits clear.
std::uint64_t keys_of(const geometry& g, const scheme_bits& seen);

/// The second bit of a key whose bits are h1 + i h2 modulo m, i = 0 .. k - 1.
enum class second_bit : std::uint8_t {
  in_progression,  ///< h1 + h2
  step,            ///< h2
};

/// `rate`, and what double hashing (bits h1 + i h2 modulo m) adds to the rate of independent probes: about 6 n / m^2 at
/// a fill ratio of 1/2.
/// @param share  of the progressions that stay the same modulo m, because no sum leaves the range of the hashes
double with_double_hashing(long double rate, const geometry& g, std::uint64_t keys, long double share = 1,
                           second_bit second = second_bit::in_progression);

/// `rate`, and what steps h2 add that return to the first bit in fewer than k steps: such a key has fewer bits.
/// @param share  of these steps
/// @param order  of a second step modulo m, which is sometimes added to a position of the key
double with_short_cycles(long double rate, const geometry& g, std::uint64_t keys, long double share = 1,
                         std::uint64_t order = 1, second_bit second = second_bit::in_progression);

/// `rate`, and what sums h1 + i h2 add that are reduced modulo 2^63 or 2^64, and then modulo m. If m is a power of two,
/// the positions of a key are a progression, whatever its sums: a step may return to the first bit in fewer than k
/// steps, and another key may have nearly the same progression. Otherwise, each sum that leaves the range shifts the
/// rest of the progression, so that only a part of it repeats. Measured for 2^64: 0.26, 0.5 and 0.64 of the effect at
/// fill ratios of 1/4, 1/2 and 3/4 with 8 probes; 0.3, 0.22 and 0.17 at 1/2 with 14, 20 and 30 probes.
double with_progressions(long double rate, const geometry& g, std::uint64_t keys,
                         second_bit second = second_bit::in_progression);

/// Expected FPR at n keys for k independent probes `hash % m` with `hashes` equally likely hashes. If m is not small
/// compared to their number, the lower `hashes` mod m bits are selected noticeably more often, which increases the FPR
/// by up to half.
double remainder_rate(const geometry& g, std::uint64_t keys, std::uint64_t hashes);

/// The same for hashes of 32 bits.
double remainder_rate_of_32_bits(const geometry& g, std::uint64_t keys);

/// The bits that one hash more selects, for a scheme whose hashes are `hashes` consecutive integers from `first` on.
bit_range remainder_favoured(const geometry& g, std::int64_t first, std::uint64_t hashes = std::uint64_t{1} << 32);

/// Current FPR of such a scheme.
double remainder_current_fpr(const geometry& g, const scheme_bits& seen, std::uint64_t hashes = std::uint64_t{1} << 32);

}  // namespace bloomery
