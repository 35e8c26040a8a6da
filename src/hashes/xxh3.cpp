// XXH3 itself comes from libxxhash's header, inlined here so that short keys pay no second call and users link nothing.
#include <bloomery/hash.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace bloomery {

key_hash xxh3::operator()(std::string_view key) const noexcept {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(key.data(), key.size(), seed);
  return {hash.low64, hash.high64};
}

key_hash xxh3::operator()(std::uint64_t key) const noexcept {
  return (*this)(std::string_view(reinterpret_cast<const char*>(&key), sizeof key));
}

}  // namespace bloomery
