// The steps of a demo session in JSON: STEPS of docs/playground-api.md.
#pragma once

#include "playground/json/json.hpp"

#include <cstdint>
#include <vector>

namespace bloomery::playground {

/// The field "steps" of a request; none if it is absent.
/// @throws error  invalid_argument: another structure; too_large: more keys than a session may have
///
/// Example:
///     fields body(R"({"steps": [{"keys": ["Madrid"]}, {"remove": "Madrid", "by_force": true}, {"tick": 900}]})");
///     assert(steps_from(body).size() == 3);
std::vector<step> steps_from(fields& body);

json json_of(const std::vector<step>& steps);

/// Bytes of all keys in the steps; address ranges have none.
std::uint64_t text_size_of(const std::vector<step>& steps) noexcept;

}  // namespace bloomery::playground
