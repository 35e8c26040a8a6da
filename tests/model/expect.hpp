// Expectations of a trial: a violated property throws a message; and exact binomial probabilities, for properties that
// hold on average.
#pragma once

#include <bloomery/filter_handle.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>

namespace bloomery_model {

/// A property that does not hold.
struct violated : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void expect(bool holds, const std::string& what) {
  if (!holds) throw violated(what);
}

template <class A, class B>
void expect_equal(const A& found, const B& expected, const std::string& what) {
  if (found == expected) return;
  std::ostringstream text;
  text << what << ": expected " << expected << ", found " << found;
  throw violated(text.str());
}

/// Every capability has its expected value.
inline void expect_same(const bloomery::capabilities& found, const bloomery::capabilities& wanted) {
  const auto same = [](bool is, bool should_be, const char* which) {
    expect_equal(is, should_be, std::string("capability ") + which);
  };
  same(found.can_insert, wanted.can_insert, "can_insert");
  same(found.can_remove, wanted.can_remove, "can_remove");
  same(found.can_merge, wanted.can_merge, "can_merge");
  same(found.can_clear, wanted.can_clear, "can_clear");
  same(found.counts_copies, wanted.counts_copies, "counts_copies");
  same(found.has_window, wanted.has_window, "has_window");
  same(found.grows, wanted.grows, "grows");
  same(found.is_remote, wanted.is_remote, "is_remote");
  same(found.commits_whole, wanted.commits_whole, "commits_whole");
  same(found.has_cells, wanted.has_cells, "has_cells");
}

/// Probability of at least h of n independent events of probability p.
inline double binomial_tail(std::uint64_t h, std::uint64_t n, double p) {
  if (h == 0) return 1;
  if (p <= 0) return 0;
  if (p >= 1) return 1;
  double sum = 0;
  const auto count = static_cast<double>(n);
  for (std::uint64_t i = h; i <= n; ++i) {
    const auto x = static_cast<double>(i);
    const double term = std::exp(std::lgamma(count + 1) - std::lgamma(x + 1) - std::lgamma(count - x + 1) +
                                 x * std::log(p) + (count - x) * std::log1p(-p));
    sum += term;
    if (x > count * p && term < sum * 1e-17) break;
  }
  return std::min(sum, 1.0);
}

/// Probability of at most h of n independent events of probability p.
inline double binomial_head(std::uint64_t h, std::uint64_t n, double p) {
  return h >= n ? 1 : binomial_tail(n - h, n, 1 - p);
}

}  // namespace bloomery_model
