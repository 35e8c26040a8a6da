// Visualised filters: any in-memory filter with its numbered cells (bloomery/cells.hpp) and the cells of keys.
#pragma once

#include "playground/session/wanted_filter.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/cells.hpp>
#include <bloomery/detail/generations.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::playground {

/// Parses a key of a filter of integers. @throws error  invalid_argument: not a number
std::uint64_t number_of_key(std::string_view key);

/// Looks a key up; keys of a filter of integers are given in decimal.
/// @throws error  invalid_argument: not a number, for a filter of integers; as filter_handle::contains()
bool contains(filter_handle& filter, std::string_view key);

/// The same for filter_handle::explain().
key_explanation explain(filter_handle& filter, std::string_view key);

/// A cell of a key.
struct place {
  std::uint64_t cell = 0;
  std::uint32_t layer = 0;

  friend bool operator==(const place&, const place&) = default;
};

/// The cells of an explained key in the order of its probes, layer by layer from the oldest on.
std::vector<place> places_of(const key_explanation& why, const cell_view& cells);

/// The cells that lookups see now, and the FPR of these bits. Requires a sliding-window filter.
fill_facts fill_of_window(const filter_handle& filter);

/// The fill ratio of ranges of cells.
struct fill_ranges {
  std::uint64_t cells_of_range = 0;
  std::vector<std::uint64_t> ones;
};

/// Cells per range such that there are at most `most` ranges: whole blocks, or a divisor of a block.
/// @param block  cells per block; 0: no blocks
std::uint64_t range_for(std::uint64_t cells, std::uint64_t most, std::uint64_t block);

/// A filter in memory, of any kind. The clock of a sliding-window filter runs until it is stopped.
///
/// Example:
///     shown_filter cities({.scheme = "pharo", .capacity = 10, .rate = 0.1});
///     assert(cities.insert("Madrid"));
///     assert(cities.places_of("Madrid").front().cell == 17);  // the tutorial's bit 18, counted from 0
class shown_filter {
 public:
  explicit shown_filter(const wanted_filter& wanted);
  explicit shown_filter(any_filter filter);

  const params& parameters() const noexcept { return params_; }  ///< for scalable filters those of the first layer
  bloomery::capabilities capabilities() const { return filter_->capabilities(); }
  bool has_layers() const noexcept { return filter_->local() == nullptr; }  ///< a scalable filter
  bool has_window() const { return capabilities().has_window; }

  /// @throws error invalid_argument: not a number, for a filter of integers
  void check_key(std::string_view key) const;

  /// @throws error incompatible: a static filter
  void check_takes_keys() const;

  std::uint64_t epoch() const;  ///< of the newest generation; 0 without a window

  /// Returns true if the key was certainly new.
  /// @throws error  incompatible: a static filter; invalid_argument: as check_key(); too_large: no memory for another
  ///                layer
  bool insert(std::string_view key) const;
  bool may_contain(std::string_view key) const { return contains(*filter_, key); }

  /// Removes one copy. @throws error incompatible: not a counting filter
  removal remove(std::string_view key) const;

  /// Clears the bits of a key, which removes other keys that share them.
  /// @throws error incompatible: cells that are not bits, or layers
  /// @return  false: the filter does not contain the key, and nothing is cleared
  bool remove_by_force(std::string_view key);

  void clear() const { filter_->clear(); }  ///< requires capabilities().can_clear

  /// Stops the clock of a window by time at the filter's newest generation; without keys, at the beginning of the
  /// generation of this moment. Other filters ignore it. @param milliseconds  since 1970
  void stop_clock_at(std::uint64_t milliseconds);

  /// Copies cached results of slow computations from a filter with the same parameters.
  void learn_from(const shown_filter& other) { most_ = other.most_; }

  /// Advances a stopped clock. @throws error  incompatible: the clock is not stopped
  void tick(std::uint64_t milliseconds);

  std::vector<place> places_of(std::string_view key) const { return places_of(key, view()); }
  std::vector<place> places_of(std::string_view key, const cell_view& cells) const {  ///< for many keys with one view()
    return playground::places_of(explained(key), cells);
  }
  std::optional<key_hash> hash_of(std::string_view key) const { return explained(key).hash; }  ///< empty for schemes

  /// The numbers whose remainders modulo the number of bits are the cells of the key, one per probe. Empty for layouts,
  /// and for keys with a number below 0 or from 2^53 on, which the schemes guava and python have.
  std::vector<std::uint64_t> numbers_of(std::string_view key) const;

  cell_view view() const { return filter_->cells(); }
  std::uint64_t cells() const { return view().size(); }
  std::uint64_t block_cells() const { return view().block_cells(); }  ///< 0: no blocks

  /// The values of these cells; 0 or 1 for cells wider than a byte.
  std::vector<std::uint8_t> values(std::uint64_t from, std::uint64_t count) const;

  /// Counts the non-zero cells of from .. to - 1 in at most `most` ranges of the size range_for(); the last may be
  /// shorter. Requires from < to <= cells().
  fill_ranges fill(std::uint64_t from, std::uint64_t to, std::uint64_t most) const;

  /// filter_handle::info() with all bits read; keys_left of a scalable filter until it grows, of a sliding-window
  /// filter until its window holds as many keys as its capacity.
  /// @param keys  distinct keys in it, if known exactly: the expected FPR and keys_left are for this number then
  filter_facts facts(std::optional<std::uint64_t> keys) const;

  /// The filter itself. Requires a filter without layers.
  const any_filter& filter() const noexcept { return *filter_->local(); }

  /// The filter as the bytes of a file. @throws error incompatible: a scalable filter
  std::string file() const;

 private:
  key_explanation explained(std::string_view key) const { return explain(*filter_, key); }
  filter_facts facts_of_bits(std::optional<std::uint64_t> keys) const;

  std::unique_ptr<filter_handle> filter_;
  params params_;
  std::optional<std::uint64_t> now_;           // of a stopped clock, milliseconds since 1970
  mutable std::optional<std::uint64_t> most_;  // keys_within() of the target FPR; slow for some schemes
};

}  // namespace bloomery::playground
