// Plans: the parameters of a filter that was asked for, with its FPRs, its code and the other layouts.
#pragma once

#include "playground/json/json.hpp"
#include "playground/session/wanted_filter.hpp"

#include <bloomery/params.hpp>

#include <cstdint>
#include <functional>

namespace bloomery::playground {

/// PLAN. @param check  called between the points of the curve, which are slow for some schemes; may throw
json plan_of(const wanted_filter& wanted, const std::function<void()>& check);

/// The expected FPR from 0 to `most` keys, as a list of POINT.
/// @param grows  a scalable filter, whose first layer has these parameters
json curve_of(const params& p, bool grows, std::uint64_t most, const std::function<void()>& check);

}  // namespace bloomery::playground
