// kernel_calls: the connection of cache-line layouts to their kernels, which are selected once per process
// (kernel.hpp).
//
// All kernels write the bits that the layout's `cells` define; only their speed differs.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/single_key.hpp>

#include <cstdint>

namespace BLOOMERY_EXPORT bloomery {

/// Base of a layout L with kernels: split_block, split_block512, blocked.
template <class L>
class kernel_calls : public layout_base<L> {
 public:
  /// The functions that layout_with_kernels requires.
  static std::uint64_t insert_batch(std::uint8_t* bytes, const geometry& g, const hash_span& keys,
                                    std::uint8_t* is_new) noexcept;
  static void has_batch(const std::uint8_t* bytes, const geometry& g, const hash_span& keys,
                        std::uint64_t* bitmap) noexcept;

  /// For one key: inlined where single_key.hpp has the instructions of this layout and processor, otherwise a call.
  static bool insert_one(std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept {
    std::uint8_t* const block = bytes + offset(g, hash);
    if constexpr (detail::with_neon_code<L>) return detail::single_key<L>::insert_neon(block, hash.hash64);
    if constexpr (detail::with_x86_code<L>) {
      if (detail::chosen_inline_set == detail::inline_set::avx512) [[likely]]
        return detail::single_key<L>::insert_avx512(block, hash.hash64);
      if (detail::chosen_inline_set == detail::inline_set::avx2) [[likely]]
        return detail::single_key<L>::insert_avx2(block, hash.hash64);
    }
    return insert_into(block, hash.hash64, g.probes);
  }
  static bool has_one(const std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept {
    const std::uint8_t* const block = bytes + offset(g, hash);
    if constexpr (detail::with_neon_code<L>) return detail::single_key<L>::has_neon(block, hash.hash64);
    if constexpr (detail::with_x86_code<L>) {
      if (detail::chosen_inline_set == detail::inline_set::avx512) [[likely]]
        return detail::single_key<L>::has_avx512(block, hash.hash64);
      if (detail::chosen_inline_set == detail::inline_set::avx2) [[likely]]
        return detail::single_key<L>::has_avx2(block, hash.hash64);
    }
    return has_in(block, hash.hash64, g.probes);
  }

 private:
  static std::uint64_t offset(const geometry& g, key_hash hash) noexcept {
    return L::block_of(hash.hash64, g.bits / L::block_bits) * (L::block_bits / 8);
  }
  static bool insert_into(std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept;
  // Pure: the compiler may keep the filter's size and address in registers between lookups.
  [[gnu::pure]] static bool has_in(const std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept;
};

}  // namespace bloomery
