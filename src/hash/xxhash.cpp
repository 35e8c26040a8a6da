// Hashes from libxxhash's header, inlined, so that short keys need no second call and users need not link it.
#include <bloomery/hash.hpp>

#include "hash/xxh32.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <type_traits>

namespace bloomery {

namespace {

// The default seed, 0, as a constant: the compiler folds it into XXH3's own constants, which saves a fifth of the time
// of keys of 43 bytes.
[[gnu::always_inline]] inline key_hash hash_of_bytes(std::string_view key, std::uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(key.data(), key.size(), seed);
  return {hash.low64, hash.high64};
}

[[gnu::always_inline]] inline std::uint64_t hash64_of_bytes(std::string_view key, std::uint64_t seed) {
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

// Calls work with the seed, as a constant if it is the default.
template <class Work>
[[gnu::always_inline]] inline auto with_seed(std::uint64_t seed, Work work) {
  return seed == 0 ? work(std::integral_constant<std::uint64_t, 0>()) : work(seed);
}

}  // namespace

key_hash xxh3::operator()(std::string_view key) const noexcept {
  return with_seed(seed, [&](auto with) { return hash_of_bytes(key, with); });
}

void xxh3::each(std::span<const std::string_view> keys, key_hash* out) const noexcept {
  with_seed(seed, [&](auto with) {
    for (const std::string_view key : keys) *out++ = hash_of_bytes(key, with);
  });
}

key_hash xxh3::operator()(std::uint64_t key) const noexcept {
  return (*this)(std::string_view(reinterpret_cast<const char*>(&key), sizeof key));
}

std::uint64_t xxh3_64::hash64(std::string_view key) const noexcept {
  return with_seed(seed, [&](auto with) { return hash64_of_bytes(key, with); });
}

std::uint64_t xxh64::hash64(std::string_view key) const noexcept { return XXH64(key.data(), key.size(), seed); }

std::uint32_t hashes::xxh32(std::span<const std::uint8_t> bytes) noexcept {
  return XXH32(bytes.data(), bytes.size(), 0);
}

void xxh3_64::each(std::span<const std::string_view> keys, key_hash* out) const noexcept {
  with_seed(seed, [&](auto with) {
    for (const std::string_view key : keys) *out++ = of_hash64(hash64_of_bytes(key, with));
  });
}

void xxh3_64::each_hash64(std::span<const std::string_view> keys, std::uint64_t* out) const noexcept {
  with_seed(seed, [&](auto with) {
    for (const std::string_view key : keys) *out++ = hash64_of_bytes(key, with);
  });
}

void xxh3_64::each_hash64(std::span<const std::string_view> keys, std::uint64_t* out,
                          const detail::block_prefetch& blocks) const noexcept {
  with_seed(seed, [&](auto with) {
    for (const std::string_view key : keys) {
      const std::uint64_t hash = hash64_of_bytes(key, with);
      __builtin_prefetch(blocks.bytes + multiply_high(hash, blocks.count) * blocks.block_bytes, 0, 3);
      *out++ = hash;
    }
  });
}

}  // namespace bloomery
