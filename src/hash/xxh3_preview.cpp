// XXH3 as of xxHash 0.7.2. The released XXH3 has the same secret and the same steps, but
//
// - another multiplier in the last step of lengths above 8, and other formulas for lengths 1 to 8
// - above 240 bytes: words are added to the other accumulator of a pair, and the last 64 bytes are always read again
//
// so it has the same value for no length. The hash of an empty key is RocksDB's own: in the preview it was 0.
#include "hash/xxh3_preview.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

namespace bloomery::hashes {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t prime32_1 = 0x9E3779B1;
constexpr std::uint64_t prime32_2 = 0x85EBCA77;
constexpr std::uint64_t prime32_3 = 0xC2B2AE3D;
constexpr std::uint64_t prime64_1 = 0x9E3779B185EBCA87;
constexpr std::uint64_t prime64_2 = 0xC2B2AE3D27D4EB4F;
constexpr std::uint64_t prime64_3 = 0x165667B19E3779F9;
constexpr std::uint64_t prime64_4 = 0x85EBCA77C2B2AE63;
constexpr std::uint64_t prime64_5 = 0x27D4EB2F165667C5;

constexpr std::size_t secret_bytes = 192;
constexpr std::uint8_t secret[secret_bytes] = {
    0xB8, 0xFE, 0x6C, 0x39, 0x23, 0xA4, 0x4B, 0xBE, 0x7C, 0x01, 0x81, 0x2C, 0xF7, 0x21, 0xAD, 0x1C, 0xDE, 0xD4,
    0x6D, 0xE9, 0x83, 0x90, 0x97, 0xDB, 0x72, 0x40, 0xA4, 0xA4, 0xB7, 0xB3, 0x67, 0x1F, 0xCB, 0x79, 0xE6, 0x4E,
    0xCC, 0xC0, 0xE5, 0x78, 0x82, 0x5A, 0xD0, 0x7D, 0xCC, 0xFF, 0x72, 0x21, 0xB8, 0x08, 0x46, 0x74, 0xF7, 0x43,
    0x24, 0x8E, 0xE0, 0x35, 0x90, 0xE6, 0x81, 0x3A, 0x26, 0x4C, 0x3C, 0x28, 0x52, 0xBB, 0x91, 0xC3, 0x00, 0xCB,
    0x88, 0xD0, 0x65, 0x8B, 0x1B, 0x53, 0x2E, 0xA3, 0x71, 0x64, 0x48, 0x97, 0xA2, 0x0D, 0xF9, 0x4E, 0x38, 0x19,
    0xEF, 0x46, 0xA9, 0xDE, 0xAC, 0xD8, 0xA8, 0xFA, 0x76, 0x3F, 0xE3, 0x9C, 0x34, 0x3F, 0xF9, 0xDC, 0xBB, 0xC7,
    0xC7, 0x0B, 0x4F, 0x1D, 0x8A, 0x51, 0xE0, 0x4B, 0xCD, 0xB4, 0x59, 0x31, 0xC8, 0x9F, 0x7E, 0xC9, 0xD9, 0x78,
    0x73, 0x64, 0xEA, 0xC5, 0xAC, 0x83, 0x34, 0xD3, 0xEB, 0xC3, 0xC5, 0x81, 0xA0, 0xFF, 0xFA, 0x13, 0x63, 0xEB,
    0x17, 0x0D, 0xDD, 0x51, 0xB7, 0xF0, 0xDA, 0x49, 0xD3, 0x16, 0x55, 0x26, 0x29, 0xD4, 0x68, 0x9E, 0x2B, 0x16,
    0xBE, 0x58, 0x7D, 0x47, 0xA1, 0xFC, 0x8F, 0xF8, 0xB8, 0xD1, 0x7A, 0xD0, 0x31, 0xCE, 0x45, 0xCB, 0x3A, 0x8F,
    0x95, 0x16, 0x04, 0x28, 0xAF, 0xD7, 0xFB, 0xCA, 0xBB, 0x4B, 0x40, 0x7E};

constexpr std::size_t stripe_bytes = 64;
constexpr std::size_t stripes_of_block = (secret_bytes - stripe_bytes) / 8;
constexpr std::size_t least_secret_bytes = 136;  // of a secret of the user's own

template <class T = std::uint64_t>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// The exclusive or of both halves of a product.
std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t finish(std::uint64_t sum) {
  sum = (sum ^ sum >> 37) * prime64_3;
  return sum ^ sum >> 32;
}

std::uint64_t mix(const char* words, std::size_t secret_at) {
  return fold(load(words) ^ load(secret + secret_at), load(words + 8) ^ load(secret + secret_at + 8));
}

std::uint64_t of_up_to_16(const char* key, std::size_t bytes) {
  if (bytes > 8) {
    const std::uint64_t first = load(key) ^ load(secret);
    const std::uint64_t last = load(key + bytes - 8) ^ load(secret + 8);
    return finish(bytes + first + last + fold(first, last));
  }
  if (bytes >= 4) {
    const std::uint64_t last = load<std::uint32_t>(key + bytes - 4);
    const std::uint64_t word = (last << 32 | load<std::uint32_t>(key)) ^ load(secret);
    const std::uint64_t product = bytes + (word ^ word >> 51) * prime32_1;
    return finish((product ^ product >> 47) * prime64_2);
  }
  if (bytes == 0) return fold(load(secret), prime64_2);
  const auto byte = [&](std::size_t i) { return std::uint64_t{static_cast<unsigned char>(key[i])}; };
  const std::uint64_t word = byte(0) | byte(bytes / 2) << 8 | byte(bytes - 1) << 16 | std::uint64_t{bytes} << 24;
  return finish((word ^ load<std::uint32_t>(secret)) * prime64_1);
}

// 17 to 128 bytes: pairs of words from both ends.
std::uint64_t of_up_to_128(const char* key, std::size_t bytes) {
  std::uint64_t sum = bytes * prime64_1;
  for (std::size_t i = 0; i <= (bytes - 1) / 32; ++i)
    sum += mix(key + 16 * i, 32 * i) + mix(key + bytes - 16 * (i + 1), 32 * i + 16);
  return finish(sum);
}

std::uint64_t of_up_to_240(const char* key, std::size_t bytes) {
  std::uint64_t sum = bytes * prime64_1;
  for (std::size_t i = 0; i < 8; ++i) sum += mix(key + 16 * i, 16 * i);
  sum = finish(sum);
  for (std::size_t i = 8; i < bytes / 16; ++i) sum += mix(key + 16 * i, 16 * (i - 8) + 3);
  return finish(sum + mix(key + bytes - 16, least_secret_bytes - 17));
}

using accumulators = std::array<std::uint64_t, 8>;

void add_stripe(accumulators& sums, const char* stripe, std::size_t secret_at) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::uint64_t word = load(stripe + 8 * i);
    const std::uint64_t keyed = word ^ load(secret + secret_at + 8 * i);
    sums[i] += word + (keyed & 0xFFFF'FFFF) * (keyed >> 32);
  }
}

std::uint64_t of_long_key(const char* key, std::size_t bytes) {
  accumulators sums = {prime32_3, prime64_1, prime64_2, prime64_3, prime64_4, prime32_2, prime64_5, prime32_1};
  for (std::size_t stripe = 0; stripe < bytes / stripe_bytes; ++stripe) {
    const std::size_t in_block = stripe % stripes_of_block;
    add_stripe(sums, key + stripe * stripe_bytes, 8 * in_block);
    if (in_block + 1 < stripes_of_block) continue;
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] = (sums[i] ^ sums[i] >> 47 ^ load(secret + secret_bytes - stripe_bytes + 8 * i)) * prime32_1;
  }
  if (bytes % stripe_bytes != 0) add_stripe(sums, key + bytes - stripe_bytes, secret_bytes - stripe_bytes - 7);
  std::uint64_t sum = bytes * prime64_1;
  for (std::size_t i = 0; i < sums.size(); i += 2)
    sum += fold(sums[i] ^ load(secret + 11 + 8 * i), sums[i + 1] ^ load(secret + 19 + 8 * i));
  return finish(sum);
}

}  // namespace

std::uint64_t xxh3_preview(std::string_view key) noexcept {
  const auto of = key.size() <= 16    ? of_up_to_16
                  : key.size() <= 128 ? of_up_to_128
                  : key.size() <= 240 ? of_up_to_240
                                      : of_long_key;
  return of(key.data(), key.size());
}

}  // namespace bloomery::hashes
