// What is told alike of filters in files and on servers: their facts, what more keys would do, and answers for keys.
#pragma once

#include "playground/filter_facts.hpp"
#include "playground/json.hpp"
#include "playground/shown_filter.hpp"

#include <bloomery/measure.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace bloomery::playground {

json json_of(const measured_rate& m);

/// The rates that some more keys would bring. @param keys  distinct ones that are in
json forecast_of(const std::function<double(std::uint64_t)>& rate_at, std::uint64_t keys);

/// Adds what follows from facts: rates, verdict, forecast. @param keys  distinct ones that are in
void add_facts(json& seen, const shown_filter& filter, const filter_facts& facts, std::uint64_t keys);

/// The API's answer for keys.
/// @param filter  tells their cells; null: nobody does
/// @throws error  invalid_argument: addresses; as may_contain
json answers_of(const key_list& keys, const std::function<bool(const std::string&)>& may_contain,
                const shown_filter* filter);

}  // namespace bloomery::playground
