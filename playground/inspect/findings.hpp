// Findings: facts, forecasts and lookup results, in the same form for filters in files and on servers.
#pragma once

#include "playground/json/json.hpp"

#include <bloomery/filter_facts.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/measure.hpp>

#include <optional>

namespace bloomery::playground {

/// All findings from facts and a measurement; those that need shards or cells are null. Requires facts.fill.
json finding_of(const filter_facts& facts, const std::optional<measured_rate>& measured);

/// The lookup results for keys, with the cells of local filters of bits or counters, which have one layer.
/// @throws error  invalid_argument: addresses; as contains() and explain()
json answers_of(const key_list& keys, filter_handle& filter);

}  // namespace bloomery::playground
