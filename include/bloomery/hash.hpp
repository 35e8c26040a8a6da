// From a key to its 128 bits. A hash is a small type with a name; a file remembers the name.
#pragma once

#include <bloomery/export.hpp>
#include <bloomery/key.hpp>
#include <bloomery/key_hash.hpp>
#include <bloomery/secret.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

/// A hash of keys of type Key: a copyable function object with a name of 1 to 31 characters. It throws nothing, and one
/// object serves several threads at once.
///
/// A hash of your own is such a type, at namespace scope since a local class can have no static member. Give it a name
/// that no one else has, and another name whenever its results change: a file made with it opens only with that name.
///
///     struct one_at_a_time {
///       static constexpr std::string_view name = "example.one-at-a-time/1";
///       bloomery::key_hash operator()(std::string_view key) const noexcept {
///         std::uint64_t h = 0;
///         for (const char c : key) h = bloomery::mix64(h + static_cast<unsigned char>(c));
///         return bloomery::mix{}(h);
///       }
///     };
///     bloomery::filter<std::string_view, bloomery::layouts::classic, one_at_a_time> seen(1000, 0.01);
///
/// Example:
///     static_assert(hash_of<xxh3, std::string_view> && hash_of<murmur3, std::uint64_t>);
///     static_assert(!hash_of<mix, std::string_view>);  // integers only
template <class Hash, class Key>
concept hash_of = std::copyable<Hash> && requires(const Hash hash, const Key key) {
  { hash(key) } -> std::same_as<key_hash>;
  { Hash::name } -> std::convertible_to<std::string_view>;
};

/// The 64-bit finaliser behind `mix`: a bijection of 64 bits in which every input bit flips every output bit with
/// probability 1/2.  x ^= x>>27; x *= a; x ^= x>>33; x *= b; x ^= x>>27  [constants: Pelle Evensen, "moremur", 2019].
/// Shifts, xors and multiplications only, so that eight of them fit one vector register.
///
/// Example:
///     assert(mix64(0) == 0);
///     assert(mix64(1) != mix64(2));
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x ^= x >> 27;
  x *= 0x3C79AC492BA7B653u;
  x ^= x >> 33;
  x *= 0x1C69B3F74AC4AE35u;
  return x ^ (x >> 27);
}

/// Hash of 64-bit integer keys, the default for them. Distinct keys never share a hash: lo = mix64(key ^ mix64(seed))
/// is a bijection, hi = mix64(lo + 2^64/phi) a second one. A seed is no secret.
class mix {
 public:
  static constexpr std::string_view name = "mix";

  constexpr mix() noexcept : mix(0) {}
  constexpr explicit mix(std::uint64_t seed) noexcept : seed_(seed), whitening_(mix64(seed)) {}

  constexpr key_hash operator()(std::uint64_t key) const noexcept { return of_lo(mix64(key ^ whitening_)); }

  /// The hash whose first half is lo. Layouts that read lo alone leave the other half uncomputed.
  static constexpr key_hash of_lo(std::uint64_t hash64) noexcept {
    return {hash64, mix64(hash64 + 0x9E3779B97F4A7C15u)};
  }

  constexpr std::uint64_t seed() const noexcept { return seed_; }
  constexpr std::uint64_t whitening() const noexcept { return whitening_; }  ///< mix64(seed), which every key needs

 private:
  std::uint64_t seed_;
  std::uint64_t whitening_;
};

/// XXH3, 128 bits: the default for bytes. lo and hi are XXH128_hash_t's low64 and high64. An integer key is hashed as
/// its 8 little-endian bytes. A seed is no secret: it does not stop an adversary who chooses keys.
///
/// Example:
///     assert((xxh3{}("") == key_hash{0x6001C324468D497F, 0x99AA06D3014798D8}));
struct xxh3 {
  static constexpr std::string_view name = "xxh3";
  std::uint64_t seed = 0;

  key_hash operator()(std::string_view key) const noexcept;
  key_hash operator()(std::uint64_t key) const noexcept;

  /// The hashes of many keys, in one call.
  void each(std::span<const std::string_view> keys, key_hash* out) const noexcept;
};

/// MurmurHash3_x64_128: what Guava and many others use; slower than xxh3. lo and hi are its first and second eight
/// bytes, little-endian. An integer key is hashed as its 8 little-endian bytes.
///
/// The published algorithm has a 32-bit seed: the upper half of `seed` must be 0 (filters check it).
///
/// Example:
///     assert(murmur3{}("hello").hash64 == 0xCBD8A7B341BD9B02);
struct murmur3 {
  static constexpr std::string_view name = "murmur3";
  static constexpr std::uint64_t most_seed = 0xFFFFFFFF;
  std::uint64_t seed = 0;

  key_hash operator()(std::string_view key) const noexcept;
  key_hash operator()(std::uint64_t key) const noexcept;
};

/// SipHash-1-3 with 128 bits of output: the hash for filters whose keys an adversary may choose. Without the secret,
/// its results are as good as random [Aumasson & Bernstein 2012]; docs/security.md says what follows for a filter. lo
/// and hi are its first and second eight bytes, little-endian. An integer key is hashed as its 8 little-endian bytes.
///
/// There is no default: each such hash is given its key.
///
/// Example:
///     const siphash hash(random_secret());
///     filter<std::string_view, layouts::split_block, siphash> seen(1000, 0.01, hash);
///     assert(seen.insert("Madrid") && seen.may_contain("Madrid"));
///     assert(siphash(secret_key{1, 2})("Madrid") != siphash(secret_key{1, 3})("Madrid"));
struct siphash {
  static constexpr std::string_view name = "siphash";
  static constexpr std::uint64_t most_seed = 0;  ///< the key is its only parameter
  secret_key key;

  explicit siphash(const secret_key& secret) noexcept : key(secret) {}

  key_hash operator()(std::string_view bytes) const noexcept;
  key_hash operator()(std::uint64_t number) const noexcept;

  /// The hashes of many keys, in one call.
  void each(std::span<const std::string_view> keys, key_hash* out) const noexcept;
  void each(std::span<const std::uint64_t> keys, key_hash* out) const noexcept;
};

namespace detail {

// Takes the place of a hash that is missing, so that a wrong type of key is one error and no others follow from it.
struct no_hash {
  static constexpr std::string_view name = "none";
  template <class Key>
  key_hash operator()(const Key&) const noexcept;
};

}  // namespace detail

/// The hash that filter<Key> uses when none is named: xxh3 for text, mix for integers.
///
/// Example:
///     static_assert(std::is_same_v<default_hash<std::string>::type, xxh3>);
///     static_assert(std::is_same_v<default_hash<int>::type, mix>);
template <class Key>
struct default_hash {
  static_assert(text_key<Key> || integer_key<Key>,
                "keys of a filter are text (std::string, std::string_view) or integers of up to 64 bits (not bool, not "
                "char); for keys of another type name a hash that takes them: filter<Key, Layout, Hash>");
  using type = detail::no_hash;
};
template <text_key Key>
struct default_hash<Key> {
  using type = xxh3;
};
template <integer_key Key>
struct default_hash<Key> {
  using type = mix;
};

/// out[i] = hash(keys[i]), by the hash's own `each` if it has one.
///
/// Example:
///     const std::uint64_t keys[] = {1, 2};
///     key_hash hashes[2];
///     hash_each(mix{}, std::span<const std::uint64_t>(keys), hashes);
///     assert(hashes[1] == mix{}(2));
template <class Key, hash_of<Key> Hash>
void hash_each(const Hash& hash, std::span<const Key> keys, key_hash* out) noexcept {
  if constexpr (requires { hash.each(keys, out); }) {
    hash.each(keys, out);
  } else {
    for (const Key& key : keys) *out++ = hash(key);
  }
}

}  // namespace bloomery
