// Batches of keys and hashes from input: the common front end of build, add, check and dedup.
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

/// A chunk of input with its keys and hashes.
struct key_batch {
  chunk text;
  std::vector<std::string_view> lines;
  std::vector<std::string_view> cut;       // keys, if they are not entire lines
  std::span<const std::string_view> keys;  // one per line
  std::vector<std::uint64_t> integers;     // the keys of a filter of integers
  std::vector<key_hash> hashes;            // empty for schemes that hash the keys themselves
  key_span prepared;                       // the keys in the fastest form for a filter_handle
  std::vector<std::uint8_t> is_new;        // results of insert()
  std::vector<std::uint64_t> maybe;        // results of look_up(), one bit per key

  bool may_contain(std::size_t i) const { return (maybe[i / 64] >> (i % 64) & 1) != 0; }
};

/// Inserts the batch; sets is_new for each key.
void insert(any_filter& filter, key_batch& batch);

/// Looks the batch up; sets a bit of `maybe` for each key.
void look_up(const any_filter& filter, key_batch& batch);

/// Parses a key of a filter of integers. @param source  name of the input, for the message
/// @throws error invalid_argument: not a decimal number from 0 to 2^64-1
std::uint64_t parse_integer_key(std::string_view key, const std::string& source);

/// Options for reading the input.
struct pass_options {
  unsigned threads = 1;
  bool show_progress = true;
  std::string verb;                          ///< for the progress bar
  const scalable_layers* growing = nullptr;  ///< the scalable filter being filled, if any
};

/// Reads all inputs and calls prepare(batch) in parallel and finish(batch) in order for each batch; finish returns
/// false to stop. Batches have lines, keys and (for layouts) the hashes of `filter`.
///
/// @return  false after a signal: the last batches, or an incomplete line, may be missing
/// @throws error  invalid_argument: a line that is not an integer, for a filter of integers; io
bool for_each_batch(const any_filter& filter, const input_options& inputs, const pass_options& options,
                    const std::function<void(key_batch&)>& prepare, const std::function<bool(key_batch&)>& finish);

/// The same without hashes, in one thread: batches have lines, keys and integers.
bool for_each_batch(key_kind keys, const input_options& inputs, const pass_options& options,
                    const std::function<bool(key_batch&)>& finish);

/// The same for any filter: `prepared` has the keys. Batches are prepared in parallel and finished in order.
bool for_each_batch(filter_handle& filter, const input_options& inputs, const pass_options& options,
                    const std::function<void(key_batch&)>& prepare, const std::function<bool(key_batch&)>& finish);

/// Looks up the keys of all inputs and calls finish(batch) in order, like for_each_batch().
using lookup_pass = std::function<bool(const input_options& inputs, const pass_options& options,
                                       const std::function<bool(key_batch&)>& finish)>;

/// Lookups in a filter, in parallel. The filter must outlive the result.
lookup_pass lookups_in(const any_filter& filter);

/// Lookups in any filter, in parallel if it supports that. The filter must outlive the result.
lookup_pass lookups_in(filter_handle& filter);

}  // namespace bloomery::cli
