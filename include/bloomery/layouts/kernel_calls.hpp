// The calls that the one-line layouts make to their kernels: code for each instruction set, chosen once (kernel.hpp).
//
// All kernels write the bits that the layout's `cells` define; they only differ in speed.
#pragma once

#include <bloomery/detail/hash_span.hpp>
#include <bloomery/export.hpp>
#include <bloomery/layout.hpp>

#include <cstdint>

namespace BLOOMERY_EXPORT bloomery {

/// Base of a layout L whose blocks have kernels: split_block, layouts::split_block512, blocked.
template <class L>
class kernel_calls {
 public:
  /// Inserts keys one after another, as layout_with_kernels wants it.
  static std::uint64_t insert_batch(std::uint8_t* bytes, const geometry& g, const hash_span& keys,
                                    std::uint8_t* is_new) noexcept;
  static void has_batch(const std::uint8_t* bytes, const geometry& g, const hash_span& keys,
                        std::uint64_t* bitmap) noexcept;

  /// One key: the block's address is computed in place, the rest is one direct call.
  static bool insert_one(std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept {
    return insert_into(bytes + offset(g, hash), hash.hash64, g.probes);
  }
  static bool has_one(const std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept {
    return has_in(bytes + offset(g, hash), hash.hash64, g.probes);
  }

 private:
  static std::uint64_t offset(const geometry& g, key_hash hash) noexcept {
    return L::block_of(hash.hash64, g.bits / L::block_bits) * (L::block_bits / 8);
  }
  static bool insert_into(std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept;
  // Pure: the compiler may keep a filter's size and address in registers from one lookup to the next.
  [[gnu::pure]] static bool has_in(const std::uint8_t* block, std::uint64_t hash64, std::uint32_t probes) noexcept;
};

}  // namespace bloomery
