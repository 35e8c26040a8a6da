// layout_facts of a layout, from the constants of its type.
#pragma once

#include <bloomery/layout.hpp>
#include <bloomery/layouts/sliding.hpp>

#include <cstdint>

namespace bloomery {

template <class L>
constexpr family family_in() noexcept {
  if constexpr (sliding_window_layout<L>)
    return family::sliding_window;
  else if constexpr (layout_with_removal<L>)
    return family::counting;
  else
    return family::plain;
}

/// Redis filters support layouts with blocks of 64 bytes: a shard
/// is a string of such blocks.
template <class L>
constexpr layout_facts facts_of() noexcept {
  layout_facts facts{.name = L::name, .family = family_in<L>()};
  facts.hash_bits = hash_bits_of<L>();
  facts.max_blocks = std::uint64_t{1} << 62;
  facts.cell_bits = sliding_window_layout<L> ? window_generations : cell_bits_in<L>();
  if constexpr (requires { L::block_bits; }) {
    facts.block_bits = L::block_bits;
    facts.max_blocks = L::max_blocks;
    facts.may_be_shared = L::block_bits == 512 && !sliding_window_layout<L>;
  }
  if constexpr (requires { L::lanes; }) {
    facts.lanes = facts.fixed_probes = facts.most_chosen_probes = L::lanes;
  } else {
    facts.most_chosen_probes = L::most_chosen_probes;
  }
  return facts;
}

}  // namespace bloomery
