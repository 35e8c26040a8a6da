// layout_facts: the properties of a layout: family, block, cells, probes. Code that treats layouts differently tests a
// property and never compares names.
#pragma once

#include <bloomery/detail/export.hpp>
#include <cstdint>
#include <string_view>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// Families of filters by the operations that they support.
enum class family : std::uint8_t {
  plain,     ///< insert and look up; the layouts of layout_names(), and all schemes
  counting,  ///< also remove: layout "counting"
  windowed,  ///< sliding-window filters: layouts "sliding" and "sliding64"
  sealed,    ///< static filters, built once from all keys: layouts "fuse8", "fuse16", "fuse32"
};

/// "plain", "counting", "windowed" or "sealed".
const char* name_of(bloomery::family f) noexcept;

/// The properties shared by all filters of a layout.
struct layout_facts {
  std::string_view name;
  bloomery::family family = bloomery::family::plain;
  std::uint32_t block_bits = 0;          ///< bits of the block that contains all cells of a key; 0: no blocks
  std::uint64_t max_blocks = 0;          ///< maximum number of blocks; without blocks the maximum number of bits
  std::uint32_t cell_bits = 1;           ///< bits of a cell
  std::uint32_t lanes = 0;               ///< words of a block, one probe in each; 0: probes are independent
  std::uint32_t fixed_probes = 0;        ///< probes of every filter of the layout; 0: the user chooses k
  std::uint32_t most_chosen_probes = 0;  ///< maximum number of probes that geometry_for() chooses
  std::uint32_t hash_bits = 64;          ///< bits of a key's hash that the layout reads: 64 or 128
  bool may_be_shared = false;            ///< supported by redis_filter: all cells of a key in one block of 64 bytes

  /// Sizes of filters are multiples of this number of bits.
  constexpr std::uint64_t unit_bits() const noexcept { return block_bits == 0 ? 1 : block_bits; }
  constexpr bool user_chooses_probes() const noexcept { return fixed_probes == 0; }

  friend bool operator==(const layout_facts&, const layout_facts&) = default;
};

/// The facts of the layout with this name, of any family; null if there is none.
///
/// Example:
///     assert(find_layout_facts("split_block512")->fixed_probes == 8 && find_layout_facts("classic")->user_chooses_probes());
///     assert(find_layout_facts("split_block512")->hash_bits == 64 && find_layout_facts("classic")->hash_bits == 128);
///     assert(find_layout_facts("") == nullptr);
const layout_facts* find_layout_facts(std::string_view name) noexcept;

/// The layouts of a family: plain ones from the fastest to the slowest, in other families the default first.
///
/// Example:
///     assert(layouts_of(family::plain).front().name == "split_block");
///     assert(layouts_of(family::windowed).front().name == "sliding");
std::vector<layout_facts> layouts_of(bloomery::family f);

}  // namespace bloomery
