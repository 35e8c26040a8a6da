// What a filter says of itself, and what that means.
#pragma once

#include <bloomery/estimate.hpp>
#include <bloomery/fill_check.hpp>
#include <bloomery/generations.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bloomery::playground {

struct layer_facts {
  std::uint64_t first_cell = 0;
  std::uint64_t cells = 0;
  std::uint64_t capacity = 0;
  std::uint64_t keys = 0;  ///< certainly new when it took them
  std::uint64_t ones = 0;
  double share = 0;  ///< error rate that it keeps at its capacity
};

/// What the filter says of itself.
struct filter_facts {
  std::uint64_t counted = 0;
  bool count_is_estimate = false;  ///< bits were cleared by force, or a file says so: then nobody has counted
  estimate estimated;
  std::uint64_t ones = 0;
  std::uint64_t cells = 0;
  double certified = 0;
  double predicted = 0;         ///< at so many distinct keys as were said to be in
  std::uint64_t keys_left = 0;  ///< until the promise is broken; of a growing filter until it grows
  std::string alarm;            ///< the bits do not fit the count; empty: they do
  bool fuller = false;          ///< they are more
  std::vector<layer_facts> layers;
  std::optional<window_facts> window;
  bool overfull = false;  ///< a generation of the window has more keys than the promise allows
};

/// What is wrong with a count that does not fit the bits. Requires that it is is_inconsistent.
std::string alarm_of(const fill_check& count);

/// Keys that may come until the promise is broken; of a filter that promises nothing 0.
/// @param keys       distinct ones that are in
/// @param certified  the rate now
/// @param most       keys within the promise, if somebody knows; else they are found, which is dear, and noted
std::uint64_t keys_left(const params& p, std::uint64_t keys, double certified, std::optional<std::uint64_t>& most);

/// The same, where nobody knows them.
std::uint64_t keys_left(const params& p, std::uint64_t keys, double certified);

}  // namespace bloomery::playground
