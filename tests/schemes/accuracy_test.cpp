// How far the current FPR of a scheme is from lookups: no further than the scheme states.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "schemes/scheme_filter.hpp"
#include "support/long_tests.hpp"
#include "support/random_keys.hpp"
#include "support/scheme_sizes.hpp"

namespace bloomery_tests {
namespace {

TEST(SchemeRates, OfGivenBitsAreAsAccurateAsTheSchemeStates) {
  const int queries = under_sanitizer ? 5000 : 50'000;
  random_keys key;
  for (const scheme& rule : schemes()) {
    if (rule.name == "pharo") continue;  // takes seconds, and has tests of its own
    for (const geometry size :
         {geometry{64, 5}, {192, 7}, {512, 10}, {704, 4}, {2048, 13}, {7680, 6}, {8640, 7}, {65'536, 7}}) {
      if (!accepts(rule, size)) continue;
      for (const double load : {0.4, 0.7, 1.0}) {  // probes of all keys, divided by m
        scheme_filter filter(rule.name, size);
        const int keys = static_cast<int>(load * static_cast<double>(size.bits) / size.probes) + 1;
        for (int i = 0; i < keys; ++i) filter.insert(key());
        double found = 0;
        for (int i = 0; i < queries; ++i) found += filter.may_contain(key()) ? 1 : 0;

        const double stated = filter.current_fpr();

        const double measured = found / queries;
        const double noise = 5 * std::sqrt(std::max(found, 1.0)) / queries;
        const double error = rule.relative_error * stated + rule.error_of_bits / static_cast<double>(size.bits);
        EXPECT_NEAR(stated, measured, error + noise)
            << rule.name << ", " << size.bits << " bits, " << size.probes << " probes, load " << load;
      }
    }
  }
}

}  // namespace
}  // namespace bloomery_tests
