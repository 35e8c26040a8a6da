// SipHash-c-d with 8 or 16 bytes of output: a pseudorandom function with a 128-bit key.
// [Aumasson & Bernstein 2012, "SipHash: a fast short-input PRF"; the authors added the longer output later]
#pragma once

#include <bloomery/detail/key_hash.hpp>
#include <bloomery/secret.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace bloomery::hashes {

/// The result as little-endian numbers: one of 64 bits, or hash64 and high64.
template <std::size_t output_bytes>
using siphash_result = std::conditional_t<output_bytes == 16, key_hash, std::uint64_t>;

/// c rounds for each eight bytes of input, d rounds before each eight bytes of output. Instantiated for <1, 3, 16>
/// (filters), <2, 4, 16> (check value) and <2, 4, 8> (the original).
template <int c, int d, std::size_t output_bytes>
siphash_result<output_bytes> siphash(std::string_view bytes, const secret_key& key) noexcept;

/// SipHash-1-3 of a slice of bytes as Rust hashes it: of its length as a word of eight bytes, and then of its bytes.
/// [trait Hash of Rust's standard library, for [u8], on a processor of 64 bits]
std::uint64_t siphash_of_rust_slice(std::string_view bytes, const secret_key& key) noexcept;

}  // namespace bloomery::hashes
