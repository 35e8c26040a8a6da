// What the tables say of layouts whose filters forget, beside what they say of all.
#pragma once

#include <bloomery/census.hpp>
#include <bloomery/error.hpp>
#include <bloomery/export.hpp>
#include <bloomery/layouts/sliding.hpp>
#include <bloomery/params.hpp>

#include "math/occupancy.hpp"

#include <cstdint>
#include <numeric>
#include <span>

namespace BLOOMERY_EXPORT bloomery {  // bloomery::redis is a library of its own

/// Moments and insertions stay below this: what epochs are multiplied with does not overflow.
inline constexpr std::uint64_t most_moments = std::uint64_t{1} << 62;

/// The calls of sliding_blocks, for a layout that is chosen at run time.
struct window_calls {
  window_insertions (*insert)(std::uint8_t* bytes, const geometry& g, const key_source& keys, std::uint32_t epoch,
                              std::uint8_t* is_new) noexcept;
  void (*look_up)(const std::uint8_t* bytes, const geometry& g, const key_source& keys, std::uint32_t epoch,
                  std::uint64_t* bitmap) noexcept;
  void (*unite)(std::uint8_t* bytes, const std::uint8_t* other, const geometry& g, std::uint32_t epoch) noexcept;
  window_cells (*look_at_cells)(const std::uint8_t* bytes, const geometry& g, std::uint32_t epoch);
  double (*rate_of)(const geometry& g, std::span<const std::uint64_t> keys);
  std::uint64_t (*block_at)(const geometry& g, std::uint64_t lo) noexcept;
  occupancy (*lane)(const geometry& g);  ///< how the keys of one generation fall on their bits
};

template <windowed_layout L>
occupancy lane_of(const geometry& g) {
  return {L::blocks_of(g), L::cells_of_block, 0, g.probes};
}

template <windowed_layout L>
inline constexpr window_calls window_calls_of = {L::insert_keys, L::look_up_keys, L::unite,  L::look_at_cells,
                                                 L::rate_of,     L::block_at,     lane_of<L>};

/// Keys of one generation by its bits would be something; of eight, of which each key may be in several, it is not.
inline occupancy no_occupancy(const geometry&) {
  throw error(errc::incompatible,
              {"bits of eight generations tell no number of keys", "", "", "a filter with a window", ""});
}

inline double no_keys_from_zeros(const geometry& g, std::uint64_t) {
  no_occupancy(g);
  return 0;
}

template <windowed_layout L>
census census_of_window(const geometry& g, std::span<const std::uint8_t> bytes) {
  const window_state s = window_state::of(bytes.data());
  const window_cells cells = L::look_at_cells(bytes.data(), g, static_cast<std::uint32_t>(s.newest));
  return {std::accumulate(cells.ones.begin(), cells.ones.end(), std::uint64_t{0}), cells.certified_rate};
}

/// @throws error invalid_argument: a window without length, or with two, or of a filter that has none
void check_window_length(const params& p);

}  // namespace bloomery
