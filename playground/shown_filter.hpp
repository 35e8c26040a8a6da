// A filter that can be looked into while it is used: whatever its family, it has cells with numbers, and keys have
// cells. Which number a cell has: cell_reader.hpp.
#pragma once

#include "playground/cell_reader.hpp"
#include "playground/filter_facts.hpp"
#include "playground/wanted_filter.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/fill_statistics.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/generations.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::playground {

/// A key of a filter of numbers. @throws error invalid_argument: it is none
std::uint64_t number_of_key(std::string_view key);

/// A cell of a key.
struct place {
  std::uint64_t cell = 0;
  std::uint32_t layer = 0;

  friend bool operator==(const place&, const place&) = default;
};

/// How full ranges of cells are.
struct fill_ranges {
  std::uint64_t cells_of_range = 0;
  std::vector<std::uint64_t> ones;
};

/// A filter in memory, one of all kinds. The clock of a window that goes by time runs, unless it is stopped.
///
/// Example:
///     shown_filter cities({.scheme = "pharo", .capacity = 10, .rate = 0.1});
///     assert(cities.insert("Madrid"));
///     assert(cities.places_of("Madrid").front().cell == 17);  // the tutorial's bit 18, counted from 0
class shown_filter {
 public:
  explicit shown_filter(const wanted_filter& wanted);

  /// A filter as it was read from a file.
  explicit shown_filter(any_filter filter);

  /// A filter that was opened for its facts: no key can be inserted or looked up. Requires opened->local().
  explicit shown_filter(std::unique_ptr<filter_handle> opened);

  shown_filter(shown_filter&&) noexcept;
  shown_filter& operator=(shown_filter&&) noexcept;
  ~shown_filter();

  const params& parameters() const noexcept;  ///< of a growing filter those of its first layer
  bool grows() const noexcept;
  std::uint64_t byte_size() const noexcept;

  /// @throws error invalid_argument: no number, of a filter of numbers
  void check_key(std::string_view key) const;

  /// @throws error incompatible: a sealed filter
  void check_takes_keys() const;

  bool forgets() const noexcept;               ///< it has a window
  std::optional<window_facts> window() const;  ///< nothing for others
  std::uint64_t epoch() const;                 ///< the newest generation's; requires forgets()

  /// True: it is certainly new. @throws error  incompatible: a sealed filter; invalid_argument: no number, of a filter
  /// of
  ///                                                  numbers; too_large: it had to grow beyond all memory
  bool insert(std::string_view key);
  bool may_contain(std::string_view key) const;

  /// Takes a copy out of a counting filter. @throws error incompatible: of any other
  removal remove(std::string_view key);

  /// Clears the bits of a key, which no filter can stand: whatever shares them is lost, too.
  /// @throws error incompatible: cells that are not bits, or layers
  /// @return  false: it was not there, by the filter, and nothing is cleared
  bool remove_by_force(std::string_view key);

  void clear();  ///< not of a sealed filter: without its bytes it is none

  /// Stops the clock of a window that goes by time, at the filter's newest generation; where it has none, where the
  /// part of the window begins in which this moment lies. For others nothing.
  /// @param milliseconds  since 1970
  void stop_clock_at(std::uint64_t milliseconds);

  /// Takes over what was dear to find of another of the same parameters.
  void learn_from(const shown_filter& other) { most_ = other.most_; }

  /// Lets time pass for a clock that stands still. @throws error incompatible: there is none
  void tick(std::uint64_t milliseconds);

  /// The cells of a key in the order of its probes; of a growing filter in every layer, the oldest first.
  std::vector<place> places_of(std::string_view key) const;
  std::optional<key_hash> hash_of(std::string_view key) const;  ///< none: a scheme reads the key itself

  std::uint64_t bits() const;  ///< of a growing filter, of all its layers
  std::uint64_t cells() const;
  std::vector<std::uint8_t> values(std::uint64_t from,
                                   std::uint64_t count) const;  ///< of cells; requires that they exist. Of those wider
                                                                ///< than a byte whether they are not 0
  std::uint32_t layer_of(std::uint64_t cell) const;
  std::uint32_t newest_layer() const;  ///< its number; 0 unless it grows

  /// Cells of a block; 0: there are no blocks.
  std::uint64_t block_cells() const;

  /// Counts the cells of from .. to - 1 that are not 0, in at most `most` ranges of equally many cells, the last
  /// perhaps fewer. A range is a whole number of blocks, or a part that divides one. Requires from < to <= cells().
  fill_ranges fill(std::uint64_t from, std::uint64_t to, std::uint64_t most) const;

  /// How many cells are not 0 of each of the runs of `run` cells that begin at `from`, one after another; the filter's
  /// last may be shorter. Several threads may count at once.
  void count_runs(std::uint64_t from, std::uint64_t run, std::span<std::uint64_t> ones) const;

  /// @param keys  distinct keys that are in, if somebody knows
  filter_facts facts(std::optional<std::uint64_t> keys) const;

  /// The rate once so many distinct keys are in.
  double rate_at(std::uint64_t keys) const;

  /// Everything that a filter which was opened for its facts reports about itself.
  bloomery::filter_facts info(info_depth depth) const { return opened_->info(depth); }

  /// The filter itself. Not of one that grows, or that was opened for its facts.
  const any_filter& filter() const noexcept { return *filter_; }

  /// Its bytes. Not of one that grows.
  std::span<const std::uint8_t> bytes() const noexcept {
    return opened_ ? opened_->local()->bytes() : filter_->bytes();
  }

  /// The filter as a file's bytes. @throws error incompatible: a growing one has no file
  std::string file() const;

 private:
  struct layers;
  cell_reader reading() const;
  filter_facts facts_of_layers(filter_facts f) const;
  fill_statistics bits_now() const;
  std::optional<any_filter> filter_;
  std::unique_ptr<filter_handle> opened_;      // instead of the filter
  std::unique_ptr<layers> layers_;             // of a growing filter
  std::unique_ptr<std::uint64_t> now_;         // milliseconds since 1970, of a clock that was stopped
  std::optional<generations> generations_;     // of a filter that forgets: its epoch, quickly
  mutable std::optional<std::uint64_t> most_;  // keys within the promise: dear to find
};

}  // namespace bloomery::playground
