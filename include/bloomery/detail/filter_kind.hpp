// filter_kind: the parts of a filter type that do not depend on storage: parameters, and hashing keys in batches.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/params.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace BLOOMERY_EXPORT bloomery {

/// The combination of key type, layout and hash of filter<> and concurrent_filter<>.
template <class Key, layout Layout, class Hash>
  requires hash_of<Hash, Key>
struct filter_kind {
  /// Number of keys hashed together: a multiple of 64, so that they fill whole words of a bitmap.
  static constexpr std::size_t batch = 256;

  /// The type as which keys are hashed: std::string_view, std::uint64_t or, with a user-defined hash, Key.
  using plain = detail::plain_key<Key>;

  /// The parameters of such a filter. @throws error invalid_argument: the hash does not support the seed
  static params describe(const geometry& g, std::uint64_t capacity, double rate, const Hash& hash) {
    params p;
    p.layout = Layout::name;
    p.hash = Hash::name;
    p.keys = std::same_as<plain, std::uint64_t> ? key_kind::u64le : key_kind::bytes;
    if constexpr (requires { hash.seed(); }) {
      p.seed = hash.seed();
    } else if constexpr (requires { hash.seed; }) {
      p.seed = hash.seed;
    }
    if constexpr (std::same_as<Hash, siphash>) {
      p.secret = hash.key;
      p.key_check = key_check(hash.key);
    }
    if constexpr (requires { Hash::most_seed; }) {
      if (p.seed > Hash::most_seed) {
        throw error(errc::invalid_argument, {"seed of " + p.hash, "seed", "at most " + std::to_string(Hash::most_seed),
                                             std::to_string(p.seed), ""});
      }
    }
    p.geometry = g;
    p.capacity = capacity;
    p.target_fpr = rate;
    return p;
  }

  /// Checks the geometry; sets a missing target FPR to the exact FPR at capacity.
  /// @throws error invalid_argument or too_large: not a geometry of this layout
  static params checked(params p) {
    Layout::check(p.geometry);
    if (p.target_fpr == 0 && p.capacity > 0) {
      p.target_fpr = Layout::expected_fpr(p.geometry, p.capacity);
    }
    return p;
  }

  /// The parameters of a filter for n keys with target FPR p. @throws error as Layout::geometry_for
  static params params_for(std::uint64_t capacity, double rate, const Hash& hash) {
    return describe(Layout::geometry_for(capacity, rate), capacity, rate, hash);
  }

  /// Calls work(span, first) for the keys from `first` on, where `first` is a multiple of `batch`. Integers that the
  /// kernels hash are passed unhashed in one span; other keys are hashed batch by batch.
  template <class Work>
  static void each_source(const Hash& hash, std::span<const Key> keys, Work work) {
    if constexpr (!std::same_as<Key, plain>) {
      each_source_of(hash, keys.begin(), keys.size(), work);
    } else if constexpr (hashed_by_kernels) {
      work(hash_span::mixed(keys, hash), std::size_t{0});
    } else if constexpr (std::same_as<plain, std::uint64_t> && std::same_as<Hash, identity> &&
                         hash_bits_of<Layout>() == 64) {
      work(hash_span::hash64s(keys), std::size_t{0});
    } else {
      batch_hashes hashes;
      for (std::size_t first = 0; first < keys.size(); first += batch) {
        const std::size_t count = keys.size() - first < batch ? keys.size() - first : batch;
        work(hashed(hash, keys.subspan(first, count), hashes), first);
      }
    }
  }

  /// The same for `total` keys from an iterator on, each converted to Key as by the functions for single keys.
  template <class Iterator, class Work>
  static void each_source_of(const Hash& hash, Iterator next, std::size_t total, Work work) {
    using element = decltype(*next);
    batch_hashes hashes;
    for (std::size_t first = 0; first < total; first += batch) {
      const std::size_t count = total - first < batch ? total - first : batch;
      if constexpr (std::same_as<plain, std::uint64_t>) {
        std::array<plain, batch> some;
        for (std::size_t i = 0; i < count; ++i, ++next) some[i] = static_cast<plain>(static_cast<Key>(*next));
        if constexpr (hashed_by_kernels) {
          work(hash_span::mixed({some.data(), count}, hash), first);
        } else {
          work(hashed(hash, std::span<const plain>(some.data(), count), hashes), first);
        }
      } else if constexpr (std::same_as<plain, std::string_view> &&
                           (std::is_lvalue_reference_v<element> || !std::is_class_v<element> ||
                            std::same_as<std::remove_cv_t<element>, std::string_view>)) {
        std::array<plain, batch> some;
        for (std::size_t i = 0; i < count; ++i, ++next) some[i] = *next;
        work(hashed(hash, std::span<const plain>(some.data(), count), hashes), first);
      } else {  // elements may be temporaries: each is hashed before the next one is read
        for (std::size_t i = 0; i < count; ++i, ++next) {
          const key_hash one = hash(detail::key_view<Key>(*next));
          if constexpr (by_hash64)
            hashes[i] = one.hash64;
          else
            hashes[i] = one;
        }
        work(span_of(hashes, count), first);
      }
    }
  }

 private:
  // Whether batches consist of hash64 alone: the layout reads no more, and the hash computes hash64 by itself.
  static constexpr bool by_hash64 =
      hash_bits_of<Layout>() == 64 && requires(const Hash& hash, std::span<const plain> keys, std::uint64_t* out) {
    hash.each_hash64(keys, out);
  };
  using batch_hashes = std::array<std::conditional_t<by_hash64, std::uint64_t, key_hash>, batch>;

  static hash_span span_of(const batch_hashes& hashes, std::size_t count) noexcept {
    if constexpr (by_hash64)
      return hash_span::hash64s({hashes.data(), count});
    else
      return hash_span::hashes({hashes.data(), count});
  }

  template <class K>
  static hash_span hashed(const Hash& hash, std::span<const K> keys, batch_hashes& out) noexcept {
    if constexpr (by_hash64)
      hash.each_hash64(keys, out.data());
    else
      bloomery::hash_each(hash, keys, out.data());
    return span_of(out, keys.size());
  }

  static constexpr bool hashed_by_kernels = std::same_as<plain, std::uint64_t> && std::same_as<Hash, mix>;
};

}  // namespace bloomery
