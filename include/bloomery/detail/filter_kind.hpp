// filter_kind: the parts of a filter type that do not depend on storage: parameters, and hashing keys in batches.
#pragma once

#include <bloomery/detail/checks.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/detail/hash_span.hpp>
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

/// The combination of the key type, layout and hash of filter<> and concurrent_filter<>.
template <class Key, layout Layout, class Hash>
  requires hash_of<Hash, Key>
struct filter_kind {
  /// The type as which keys are hashed: std::string_view, std::uint64_t or, with a user-defined hash, Key.
  using plain = detail::plain_key<Key>;

 private:
  // Whether batches consist of hash64 alone: the layout reads no more, and the hash computes hash64 by itself.
  static constexpr bool by_hash64 =
      hash_bits_of<Layout>() == 64 && requires(const Hash& hash, std::span<const plain> keys, std::uint64_t* out) {
    hash.each_hash64(keys, out);
  };

  // Whether the hash can prefetch the block of each key, and a block is at most one cache line.
  static constexpr bool prefetches_blocks = [] {
    if constexpr (by_hash64 && layout_by_hash64<Layout>) {
      return Layout::block_bits <= 512 && requires(const Hash& hash, std::span<const plain> keys, std::uint64_t* out,
                                                   const detail::block_prefetch& blocks) {
        hash.each_hash64(keys, out, blocks);
      };
    }
    return false;
  }();

 public:
  /// Number of keys hashed together: a multiple of 64, so that they fill whole words of a bitmap. Prefetched blocks
  /// take at most a third of the first-level cache.
  static constexpr std::size_t batch = prefetches_blocks ? 128 : 256;

  /// The blocks of a filter, to be prefetched while keys are hashed; {} if the layout or the hash does not support
  /// that. Without prefetching, the loads of blocks come in bursts between the batches of hashes, and wait there for
  /// the loads of later keys.
  static detail::block_prefetch blocks_of(const std::uint8_t* bytes, const geometry& g) noexcept {
    if constexpr (prefetches_blocks) return {bytes, g.bits / Layout::block_bits, Layout::block_bits / 8};
    return {};
  }

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
        detail::refuse(
            errc::invalid_argument,
            {"seed of " + p.hash, "seed", "at most " + std::to_string(Hash::most_seed), std::to_string(p.seed), ""});
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
  /// kernels hash are passed unhashed in one span; other keys are hashed batch by batch, and the blocks of each batch
  /// are prefetched, see blocks_of().
  template <class Work>
  static void each_source(const Hash& hash, std::span<const Key> keys, Work work,
                          const detail::block_prefetch& blocks = {}) {
    if constexpr (!std::same_as<Key, plain>) {
      each_source_of(hash, keys.begin(), keys.size(), work, blocks);
    } else if constexpr (hashed_by_kernels) {
      work(hash_span::mixed(keys, hash), std::size_t{0});
    } else if constexpr (std::same_as<plain, std::uint64_t> && std::same_as<Hash, identity> &&
                         hash_bits_of<Layout>() == 64) {
      work(hash_span::hash64s(keys), std::size_t{0});
    } else {
      batch_hashes hashes;
      for (std::size_t first = 0; first < keys.size(); first += batch) {
        const std::size_t count = keys.size() - first < batch ? keys.size() - first : batch;
        work(hashed(hash, keys.subspan(first, count), hashes, blocks), first);
      }
    }
  }

  /// The same for `total` keys from an iterator on, each converted to Key as by the functions for single keys.
  template <class Iterator, class Work>
  static void each_source_of(const Hash& hash, Iterator next, std::size_t total, Work work,
                             const detail::block_prefetch& blocks = {}) {
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
          work(hashed(hash, std::span<const plain>(some.data(), count), hashes, blocks), first);
        }
      } else if constexpr (std::same_as<plain, std::string_view> &&
                           (std::is_lvalue_reference_v<element> || !std::is_class_v<element> ||
                            std::same_as<std::remove_cv_t<element>, std::string_view>)) {
        std::array<plain, batch> some;
        for (std::size_t i = 0; i < count; ++i, ++next) some[i] = *next;
        work(hashed(hash, std::span<const plain>(some.data(), count), hashes, blocks), first);
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
  using batch_hashes = std::array<std::conditional_t<by_hash64, std::uint64_t, key_hash>, batch>;

  static hash_span span_of(const batch_hashes& hashes, std::size_t count) noexcept {
    if constexpr (by_hash64)
      return hash_span::hash64s({hashes.data(), count});
    else
      return hash_span::hashes({hashes.data(), count});
  }

  template <class K>
  static hash_span hashed(const Hash& hash, std::span<const K> keys, batch_hashes& out,
                          const detail::block_prefetch& blocks) noexcept {
    if constexpr (prefetches_blocks) {
      if (blocks.bytes != nullptr) {
        hash.each_hash64(keys, out.data(), blocks);
        return span_of(out, keys.size());
      }
    }
    if constexpr (by_hash64)
      hash.each_hash64(keys, out.data());
    else
      bloomery::hash_each(hash, keys, out.data());
    return span_of(out, keys.size());
  }

  static constexpr bool hashed_by_kernels = std::same_as<plain, std::uint64_t> && std::same_as<Hash, mix>;
};

}  // namespace bloomery
