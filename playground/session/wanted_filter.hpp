// A filter that a request asks for, and its parameters. Errors name the field at fault.
#pragma once

#include <bloomery/params.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace bloomery::playground {

/// The fields of a request: two of capacity, rate and bits, and what else is chosen.
struct wanted_filter {
  std::string layout = {};
  std::string scheme = {};
  std::string hash = {};
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> capacity = {};
  std::optional<double> rate = {};
  std::optional<std::uint64_t> bits = {};
  std::optional<std::uint64_t> probes = {};
  std::optional<window_length> window = {};
  bool grows = false;  ///< a scalable filter, whose first layer is for `capacity` keys
};

/// The parameters of such a filter; of a scalable filter those of its first layer.
/// @throws error  invalid_argument, too_large; `where` is the field at fault, as the API names it
params params_of(const wanted_filter& wanted);

/// The layouts that a request can name.
std::span<const char* const> layouts_to_choose();

/// The hashes that a request can name; keyed hashes are not among them, because the API takes no secrets.
std::span<const char* const> hashes_to_choose() noexcept;

}  // namespace bloomery::playground
