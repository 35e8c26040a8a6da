// The rows of the table of schemes, one file each, and what they share. Read guava.cpp first: it is the plainest.
#pragma once

#include <bloomery/geometry.hpp>
#include <bloomery/scheme.hpp>

#include <cstdint>
#include <span>

namespace bloomery {

extern const scheme guava_scheme;
extern const scheme pharo_scheme;
extern const scheme python_scheme;
extern const scheme perl_scheme;

/// @throws error  invalid_argument: no bits, or probes outside 1 .. 255; too_large: more than `most_bits`
void check_scheme_geometry(const geometry& g, std::uint64_t most_bits);

/// Rate at n keys of k independent probes `hash % m`, each hash of 32 bits. Where m is no small part of 2^32 the lower
/// 2^32 mod m bits are hit visibly more often than the rest, which costs up to half as much again of the rate.
double remainder_rate(const geometry& g, std::uint64_t keys);

/// Its certified twin: of a filter with these bytes, for a scheme whose hashes are `first` and the integers that follow
/// it, `hashes` in all.
double remainder_certified_rate(const geometry& g, std::span<const std::uint8_t> bytes, std::int64_t first,
                                bool from_top, std::uint64_t hashes = std::uint64_t{1} << 32);

}  // namespace bloomery
