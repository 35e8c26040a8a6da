// What somebody asks for, and the parameters of such a filter. What cannot be had is refused by the name of a field.
#pragma once

#include <bloomery/params.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace bloomery::playground {

/// What somebody asks for: two of keys, rate and bits, and what else is to be so and not otherwise.
struct wanted_filter {
  std::string layout = {};
  std::string scheme = {};
  std::string hash = {};
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> capacity = {};
  std::optional<double> rate = {};
  std::optional<std::uint64_t> bits = {};
  std::optional<std::uint64_t> probes = {};
  std::uint64_t window_keys = 0;
  std::uint64_t window_milliseconds = 0;
  bool grows = false;  ///< layers upon layers; the first has room for `capacity` keys
};

/// The parameters of such a filter; of a growing one those of its first layer.
/// @throws error  invalid_argument, too_large; `where` is the field at fault, as the API names it
params params_of(const wanted_filter& wanted);

/// The layouts that can be asked for.
std::span<const char* const> layouts_to_choose() noexcept;

/// The hashes that can be asked for: a secret is not sent about.
std::span<const char* const> hashes_to_choose() noexcept;

}  // namespace bloomery::playground
