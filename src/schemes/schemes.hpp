// The rows of the table of schemes, one file each, and common functions. Read guava.cpp first: it is the simplest.
#pragma once

#include <bloomery/detail/geometry.hpp>
#include <bloomery/scheme.hpp>

#include <cstdint>

namespace bloomery {

extern const scheme guava_scheme;
extern const scheme pharo_scheme;
extern const scheme python_scheme;
extern const scheme perl_scheme;

/// @throws error  invalid_argument: no bits, or probes outside 1 .. 255; too_large: more than `most_bits`
void check_scheme_geometry(const geometry& g, std::uint64_t most_bits);

/// Expected FPR at n keys for k independent probes `hash % m` with 32-bit hashes. If m is not small compared to 2^32,
/// the lower 2^32 mod m bits are selected noticeably more often, which increases the FPR by up to half.
double remainder_rate(const geometry& g, std::uint64_t keys);

/// The bits that one hash more selects, for a scheme whose hashes are `hashes` consecutive integers from `first` on.
bit_range remainder_favoured(const geometry& g, std::int64_t first, std::uint64_t hashes = std::uint64_t{1} << 32);

/// Current FPR of such a scheme.
double remainder_current_fpr(const geometry& g, const scheme_bits& seen, std::uint64_t hashes = std::uint64_t{1} << 32);

}  // namespace bloomery
