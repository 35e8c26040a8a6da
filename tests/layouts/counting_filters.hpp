// Counting filters of given geometries, and the number of runs of a random test.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/params.hpp>

#include "support/long_tests.hpp"

namespace bloomery_tests {

template <class Key>
using counting_filter = bloomery::filter<Key, bloomery::layouts::counting>;

inline bloomery::params params_of(const bloomery::geometry& g) {
  return bloomery::complete({.layout = "counting", .keys = bloomery::key_kind::u64le, .geometry = g, .capacity = 100});
}

inline int runs(int usual) { return is_long() ? 20 * usual : usual; }

}  // namespace bloomery_tests
