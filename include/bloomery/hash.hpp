// Hash functions: mix, identity, xxh3, xxh3_64, xxh64, murmur3 and siphash, as small named types. Files store names.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/key_hash.hpp>
#include <bloomery/key.hpp>
#include <bloomery/secret.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace BLOOMERY_EXPORT bloomery {

/// A hash of keys of type Key: a copyable function object with a name of 1 to 31 characters. It must not throw, and
/// several threads may call one object at the same time.
///
/// A user-defined hash is such a type at namespace scope, because a local class cannot have static members. Give it a
/// unique name, and a new name whenever its results change: a file opens only with the hash name that it was created
/// with.
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

/// The 64-bit finalizer behind `mix`: a bijection of 64 bits in which every input bit flips every output bit with
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

/// The default hash of 64-bit integer keys. Distinct keys never share a hash: hash64 = mix64(key ^ mix64(seed)) is a
/// bijection, and high64 = mix64(hash64 + 2^64/phi) is a second one. A seed does not protect against chosen keys.
class mix {
 public:
  static constexpr std::string_view name = "mix";

  constexpr mix() noexcept : mix(0) {}
  constexpr explicit mix(std::uint64_t seed) noexcept : seed_(seed), whitening_(mix64(seed)) {}

  constexpr key_hash operator()(std::uint64_t key) const noexcept { return of_hash64(mix64(key ^ whitening_)); }

  /// The hash with this hash64. For layouts that read hash64 only, the compiler drops the computation of high64.
  static constexpr key_hash of_hash64(std::uint64_t hash64) noexcept {
    return {hash64, mix64(hash64 + 0x9E3779B97F4A7C15u)};
  }

  constexpr std::uint64_t seed() const noexcept { return seed_; }
  constexpr std::uint64_t whitening() const noexcept { return whitening_; }  ///< mix64(seed), which every key needs

 private:
  std::uint64_t seed_;
  std::uint64_t whitening_;
};

/// No hash: hash64 is the key. Use it only for 64-bit integers that have random bits, such as hashes or the output of a
/// cryptographic generator, and that no adversary chooses. With any other keys the filter is useless: sequential
/// numbers share one block and soon set all of its bits, and then almost every lookup of an absent key is a false
/// positive. expected_fpr() cannot detect this; measure_fill() and `bloomery info` report it. high64 = mix64(key +
/// 2^64/phi). It takes no seed.
///
/// Example:
///     filter<std::uint64_t, layouts::split_block, identity> seen(1000, 0.01);
///     const std::uint64_t random_key = 0x6A09E667F3BCC908;
///     assert(seen.insert(random_key) && seen.may_contain(random_key));
struct identity {
  static constexpr std::string_view name = "identity";
  static constexpr std::uint64_t most_seed = 0;

  constexpr key_hash operator()(std::uint64_t key) const noexcept { return {key, mix64(key + 0x9E3779B97F4A7C15u)}; }
};

/// XXH3 with 128 bits: the default for bytes in layouts that read both words of a hash (classic). hash64 and high64 are
/// low64 and high64 of XXH128_hash_t. An integer key is hashed as its 8 little-endian bytes. A seed does not protect
/// against chosen keys.
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

namespace detail {

/// The blocks of a filter, for prefetching the block of each key as soon as the key is hashed. A key's block is number
/// hi64(hash64 * count); where a layout rounds differently, a few other blocks are prefetched.
struct block_prefetch {
  const std::uint8_t* bytes = nullptr;
  std::uint64_t count = 0;
  std::uint32_t block_bytes = 0;
};

}  // namespace detail

/// XXH3 with 64 bits: the default for bytes in layouts that read hash64 only. It takes less time than xxh3. hash64 is
/// XXH3_64bits, which for keys of 4 to 240 bytes differs from the low64 of xxh3, and high64 = mix64(hash64 + 2^64/phi).
/// Two distinct keys therefore share the whole hash with probability 2^-64. If that is too much for layout classic,
/// name xxh3. An integer key is hashed as its 8 little-endian bytes. A seed does not protect against chosen keys.
///
/// Example:
///     assert(xxh3_64{}("").hash64 == 0x2D06800538D394C2);
struct xxh3_64 {
  static constexpr std::string_view name = "xxh3_64";
  std::uint64_t seed = 0;

  // Inline: for layouts that read hash64 only, the compiler drops the computation of high64.
  key_hash operator()(std::string_view key) const noexcept { return of_hash64(hash64(key)); }
  key_hash operator()(std::uint64_t key) const noexcept {
    return (*this)(std::string_view(reinterpret_cast<const char*>(&key), sizeof key));
  }

  /// The hashes of many keys, in one call.
  void each(std::span<const std::string_view> keys, key_hash* out) const noexcept;

  /// The hash64 of many keys, in one call.
  void each_hash64(std::span<const std::string_view> keys, std::uint64_t* out) const noexcept;

  /// The same, prefetching the block of each key.
  void each_hash64(std::span<const std::string_view> keys, std::uint64_t* out,
                   const detail::block_prefetch& blocks) const noexcept;

 private:
  static constexpr key_hash of_hash64(std::uint64_t hash64) noexcept {
    return {hash64, mix64(hash64 + 0x9E3779B97F4A7C15u)};
  }
  std::uint64_t hash64(std::string_view key) const noexcept;
};

/// XXH64, the hash of the Bloom filters in Apache Parquet files: with seed 0, a filter of layout split_block has the
/// same bits as there. Slower than xxh3_64 for short keys. high64 = mix64(hash64 + 2^64/phi). An integer key is hashed
/// as its 8 little-endian bytes, like a Parquet column of type INT64.
///
/// Example:
///     assert(xxh64{}("hello").hash64 == 0x26C7827D889F6DA3);
struct xxh64 {
  static constexpr std::string_view name = "xxh64";
  std::uint64_t seed = 0;

  // Inline: for layouts that read hash64 only, the compiler drops the computation of high64.
  key_hash operator()(std::string_view key) const noexcept {
    const std::uint64_t hash = hash64(key);
    return {hash, mix64(hash + 0x9E3779B97F4A7C15u)};
  }
  key_hash operator()(std::uint64_t key) const noexcept {
    return (*this)(std::string_view(reinterpret_cast<const char*>(&key), sizeof key));
  }

 private:
  std::uint64_t hash64(std::string_view key) const noexcept;
};

/// MurmurHash3_x64_128, used by Guava and others; slower than xxh3. hash64 and high64 are its first and second eight
/// bytes, little-endian. An integer key is hashed as its 8 little-endian bytes.
///
/// The published algorithm has a 32-bit seed: the upper 32 bits of `seed` must be 0 (filters check this).
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
/// its results are indistinguishable from random [Aumasson & Bernstein 2012]; docs/security.md describes the
/// consequences for filters. hash64 and high64 are its first and second eight bytes, little-endian. An integer key is
/// hashed as its 8 little-endian bytes.
///
/// There is no default key: the constructor takes the secret.
///
/// Example:
///     const siphash hash(random_secret());
///     filter<std::string_view, layouts::split_block, siphash> seen(1000, 0.01, hash);
///     assert(seen.insert("Madrid") && seen.may_contain("Madrid"));
///     assert(siphash(secret_key{1, 2})("Madrid") != siphash(secret_key{1, 3})("Madrid"));
struct siphash {
  static constexpr std::string_view name = "siphash";
  static constexpr std::uint64_t most_seed = 0;  ///< the secret is its only parameter
  secret_key key;

  explicit siphash(const secret_key& secret) noexcept : key(secret) {}

  key_hash operator()(std::string_view bytes) const noexcept;
  key_hash operator()(std::uint64_t number) const noexcept;

  /// The hashes of many keys, in one call.
  void each(std::span<const std::string_view> keys, key_hash* out) const noexcept;
  void each(std::span<const std::uint64_t> keys, key_hash* out) const noexcept;
};

namespace detail {

// Stands in for a missing hash, so that an unsupported key type causes a single compiler error.
struct no_hash {
  static constexpr std::string_view name = "none";
  template <class Key>
  key_hash operator()(const Key&) const noexcept;
};

}  // namespace detail

/// The bits of a key's hash that layout L reads: L::hash_bits, or 128 if L does not define it.
template <class L>
constexpr std::uint32_t hash_bits_of() noexcept {
  if constexpr (requires { L::hash_bits; })
    return L::hash_bits;
  else
    return 128;
}

/// The default hash of keys of type Key in a layout that reads this number of bits of a hash, 64 or 128. Integers:
/// mix. Text: xxh3_64 for 64 bits, xxh3 for 128 bits.
///
/// Example:
///     static_assert(std::is_same_v<default_hash<std::string, 64>::type, xxh3_64>);
///     static_assert(std::is_same_v<default_hash<std::string>::type, xxh3>);
///     static_assert(std::is_same_v<default_hash<int>::type, mix>);
template <class Key, std::uint32_t HashBits = 128>
struct default_hash {
  static_assert(text_key<Key> || integer_key<Key>,
                "keys of a filter are text (std::string, std::string_view) or integers of up to 64 bits (not bool, not "
                "char); for keys of another type name a hash that takes them: filter<Key, Layout, Hash>");
  using type = detail::no_hash;
};
template <text_key Key, std::uint32_t HashBits>
struct default_hash<Key, HashBits> {
  using type = std::conditional_t<HashBits == 64, xxh3_64, xxh3>;
};
template <integer_key Key, std::uint32_t HashBits>
struct default_hash<Key, HashBits> {
  using type = mix;
};

/// The default hash of filter<Key, Layout>.
///
/// Example:
///     static_assert(std::is_same_v<default_hash_for<std::string, layouts::split_block>, xxh3_64>);
///     static_assert(std::is_same_v<default_hash_for<std::string, layouts::classic>, xxh3>);
template <class Key, class Layout>
using default_hash_for = typename default_hash<Key, hash_bits_of<Layout>()>::type;

/// Sets out[i] = hash(keys[i]), using the hash's `each` if it has one.
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
