// What the API reports alike about filters in files and on servers: their facts, forecasts, and answers for keys.
#pragma once

#include "playground/json/json.hpp"

#include <bloomery/filter_facts.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/measure.hpp>

#include <optional>

namespace bloomery::playground {

/// All that follows from facts and a measurement; what it takes shards and cells for is null. Requires facts.fill.
json finding_of(const filter_facts& facts, const std::optional<measured_rate>& measured);

/// The API's answer for keys; with the cells of local filters that have bits or counters.
/// @throws error  invalid_argument: addresses; as contains() and explain()
json answers_of(const key_list& keys, filter_handle& filter);

}  // namespace bloomery::playground
