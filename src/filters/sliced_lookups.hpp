// Lookups of random absent keys in a filter whose bytes come in slices.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/measure.hpp>

#include "filters/absent_keys.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace bloomery {

/// Each key waits for the first slice that has cells of it. If these are set, it waits for the next one. So all keys
/// together take little memory, however many cells they have.
class sliced_lookups {
 public:
  /// @param cells        computes the cells of keys; outlives this
  /// @param slice_bytes  of all slices but the last
  sliced_lookups(const any_filter& cells, std::uint64_t queries, std::uint64_t seed, std::uint64_t slice_bytes);

  /// The slices in order.
  void add(std::uint64_t first, std::span<const std::uint8_t> bytes);

  /// Requires all slices.
  measured_rate result() const noexcept { return {queries_, hits_}; }

 private:
  std::uint64_t slice_of(std::uint64_t cell) const noexcept { return cell * cell_bits_ / 8 / slice_bytes_; }

  const any_filter& cells_;
  absent_keys keys_;
  std::uint32_t cell_bits_;
  std::uint64_t slice_bytes_;
  std::uint64_t queries_;
  std::uint64_t hits_ = 0;
  std::vector<std::vector<std::uint64_t>> waiting_;  // numbers of keys by slice
};

}  // namespace bloomery
