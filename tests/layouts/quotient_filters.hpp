// Quotient filters for tests.
#pragma once

#include <bloomery/any_filter.hpp>

#include <cstdint>
#include <string>

namespace bloomery_tests {

inline std::string quotient_layout(unsigned width) { return "quotient" + std::to_string(width); }

/// An empty filter of integers with slots of `width` bits.
inline bloomery::any_filter quotient_filter(unsigned width, std::uint64_t blocks) {
  return bloomery::any_filter(bloomery::complete(
      {.layout = quotient_layout(width), .keys = bloomery::key_kind::u64le, .geometry = {512 * blocks, 2}}));
}

}  // namespace bloomery_tests
