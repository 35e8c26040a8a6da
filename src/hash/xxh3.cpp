// XXH3 from libxxhash's header, inlined, so that short keys need no second call and users need not link libxxhash.
#include <bloomery/hash.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace bloomery {

namespace {

inline key_hash hash_of_bytes(std::string_view key, std::uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(key.data(), key.size(), seed);
  return {hash.low64, hash.high64};
}

}  // namespace

key_hash xxh3::operator()(std::string_view key) const noexcept { return hash_of_bytes(key, seed); }

void xxh3::each(std::span<const std::string_view> keys, key_hash* out) const noexcept {
  for (const std::string_view key : keys) *out++ = hash_of_bytes(key, seed);
}

key_hash xxh3::operator()(std::uint64_t key) const noexcept {
  return (*this)(std::string_view(reinterpret_cast<const char*>(&key), sizeof key));
}

std::uint64_t xxh3_64::hash64(std::string_view key) const noexcept {
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

void xxh3_64::each(std::span<const std::string_view> keys, key_hash* out) const noexcept {
  for (const std::string_view key : keys) *out++ = of_hash64(XXH3_64bits_withSeed(key.data(), key.size(), seed));
}

void xxh3_64::each_hash64(std::span<const std::string_view> keys, std::uint64_t* out) const noexcept {
  for (const std::string_view key : keys) *out++ = XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

}  // namespace bloomery
