// Filter requests of the API, and the parameters they lead to. Errors name the invalid field.
#pragma once

#include <bloomery/params.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace bloomery::playground {

/// The fields of a request: two of capacity, rate and bits, and the optional choices.
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

/// The parameters of the requested filter; for scalable filters, those of the first layer.
/// @throws error  invalid_argument, too_large; `where` is the API's name of the invalid field
params params_of(const wanted_filter& wanted);

/// The layouts that requests can name.
std::span<const char* const> layouts_to_choose();

/// The hashes that requests can name. Keyed hashes are excluded, because the API accepts no secrets.
std::span<const char* const> hashes_to_choose() noexcept;

}  // namespace bloomery::playground
