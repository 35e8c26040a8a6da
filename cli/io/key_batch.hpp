// Batches of keys and hashes from input: the common front end of build, add, check and dedup.
#pragma once

#include "cli/io/input.hpp"
#include "cli/io/progress.hpp"
#include "cli/io/records.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/filter_handle.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace bloomery::cli {

/// A chunk of input with its keys and hashes.
struct key_batch : records {
  chunk text;
  std::unique_ptr<record_cutter> cutter;
  std::vector<std::uint64_t> integers;   // the keys of a filter of integers
  std::vector<key_hash> hashes;          // empty for schemes that hash the keys themselves
  key_span prepared;                     // the keys in the fastest form for a filter_handle
  std::vector<std::uint8_t> is_new;      // results of insertions
  std::vector<std::uint64_t> maybe;      // results of lookups, one bit per key
  std::vector<std::uint32_t> order;      // for passes in steps: the keys' numbers, those of the first step first
  std::vector<std::uint32_t> step_ends;  // where the keys of each step end in `order`

  bool may_contain(std::size_t i) const { return (maybe[i / 64] >> (i % 64) & 1) != 0; }
};

/// Parses a key of a filter of integers. @param source  name of the input, for the message
/// @throws error invalid_argument: not a decimal number from 0 to 2^64-1
std::uint64_t parse_integer_key(std::string_view key, const std::string& source);

/// Options for reading the input.
struct pass_options {
  unsigned threads = 1;
  bool show_progress = true;
  std::string verb = {};     ///< for the progress bar
  bool only_hashes = false;  ///< the filter only hashes, so the progress bar does not show it
  unsigned steps = 0;        ///< steps between prepare and finish, as in app/pipeline.hpp
  std::function<void(key_batch&, unsigned)> step = {};
};

/// An empty filter that hashes keys as a filter of these parameters does, whatever its size.
std::unique_ptr<filter_handle> make_hasher(const params& hashing);

/// Reads all inputs and calls prepare(batch) in parallel and finish(batch) in order for each batch; finish returns
/// false to stop. Batches have lines and keys; `prepared` has the keys in the fastest form for `filter`.
///
/// @return  false after a signal: the last batches, or an incomplete line, may be missing
/// @throws error  invalid_argument: a line that is not an integer, for a filter of integers; io
bool for_each_batch(filter_handle& filter, const input_options& inputs, const pass_options& options,
                    const std::function<void(key_batch&)>& prepare, const std::function<bool(key_batch&)>& finish);

/// Hashes the keys of all inputs as a filter of these parameters does, whatever its size. Batches are hashed in
/// parallel; take(hashes) is called in order.
///
/// @return  the number of keys
/// @throws error as for_each_batch; interrupted: a signal came
std::uint64_t for_each_hash(const params& hashing, const input_options& inputs, const pass_options& options,
                            const std::function<void(std::span<const key_hash>)>& take);

/// Looks up the keys of all inputs and calls finish(batch) in order, like for_each_batch().
using lookup_pass = std::function<bool(const input_options& inputs, const pass_options& options,
                                       const std::function<bool(key_batch&)>& finish)>;

/// Lookups in any filter, in parallel if it supports that. The filter must outlive the result.
lookup_pass lookups_in(filter_handle& filter);

}  // namespace bloomery::cli
