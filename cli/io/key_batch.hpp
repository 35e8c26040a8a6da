// From input to keys to hashes: what build, add, check and dedup do before they differ.
#pragma once

#include "cli/io/input.hpp"
#include "cli/io/progress.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/filter_handle.hpp>

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace bloomery::cli {

/// A chunk of input, cut and hashed.
struct key_batch {
  chunk text;
  std::vector<std::string_view> lines;
  std::vector<std::string_view> cut;       // keys, where they are not the lines
  std::span<const std::string_view> keys;  // one a line
  std::vector<std::uint64_t> integers;     // the keys of a filter of integers
  std::vector<key_hash> hashes;            // unless a scheme reads the keys themselves
  key_span prepared;                       // the keys in the form that a filter_handle takes fastest
  std::vector<std::uint8_t> is_new;        // room for insert()'s answers
  std::vector<std::uint64_t> maybe;        // room for look_up()'s answers, a bit a key

  bool may_contain(std::size_t i) const { return (maybe[i / 64] >> (i % 64) & 1) != 0; }
};

/// Adds the batch; is_new has an answer for each key.
void insert(any_filter& filter, key_batch& batch);

/// Looks the batch up; maybe has an answer for each key.
void look_up(const any_filter& filter, key_batch& batch);

/// A key of a filter of integers. @param source  where it comes from, for the message
/// @throws error invalid_argument: no whole number from 0 to 2^64-1 in decimal
std::uint64_t parse_integer_key(std::string_view key, const std::string& source);

/// How to go through the input.
struct pass_options {
  unsigned threads = 1;
  bool show_progress = true;
  std::string verb;                          ///< for the bar
  const scalable_layers* growing = nullptr;  ///< what is filled, if not the filter that hashes
};

/// Reads all inputs and calls, for each batch, prepare(batch) side by side and finish(batch) in order; finish says
/// false to stop. Batches come with lines, keys and (for layouts) hashes made for `filter`.
///
/// @return  false if a signal stopped it: the last batches, or a line without its end, may be missing
/// @throws error  invalid_argument: a filter of integers and a line that is no integer; io
bool for_each_batch(const any_filter& filter, const input_options& inputs, const pass_options& options,
                    const std::function<void(key_batch&)>& prepare, const std::function<bool(key_batch&)>& finish);

/// The same for keys that are hashed elsewhere: batches have lines, keys and integers, and come in one thread.
bool for_each_batch(key_kind keys, const input_options& inputs, const pass_options& options,
                    const std::function<bool(key_batch&)>& finish);

/// The same for any filter: `prepared` has the keys. Batches are prepared side by side, and finished in order.
bool for_each_batch(filter_handle& filter, const input_options& inputs, const pass_options& options,
                    const std::function<void(key_batch&)>& prepare, const std::function<bool(key_batch&)>& finish);

/// Goes through inputs, looks their keys up in whatever is asked, and calls finish(batch) in order; as for_each_batch.
using lookup_pass = std::function<bool(const input_options& inputs, const pass_options& options,
                                       const std::function<bool(key_batch&)>& finish)>;

/// Lookups in a filter, side by side. The filter must stay.
lookup_pass lookups_in(const any_filter& filter);

/// Lookups in any filter, side by side if it allows that. The filter must stay.
lookup_pass lookups_in(filter_handle& filter);

}  // namespace bloomery::cli
