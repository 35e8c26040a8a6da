// scheme_filter: a filter of a scheme without the library's classes, for tests of the schemes.
#pragma once

#include <bloomery/detail/bits.hpp>
#include <bloomery/error.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/params.hpp>
#include <bloomery/scheme.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery_tests {

using namespace bloomery;

// The least that makes a filter of a scheme.
class scheme_filter {
 public:
  scheme_filter(std::string_view name, const geometry& size) : rule(*find_scheme(name)), size_(size) {
    rule.check(size);
    bytes.resize(bytes_for(size.bits));
  }
  scheme_filter(std::string_view name, std::uint64_t n, double p)
      : scheme_filter(name, find_scheme(name)->geometry_for(n, p)) {}

  std::vector<std::uint64_t> positions(std::string_view key) const {
    std::vector<std::uint64_t> cells(size_.probes);
    rule.positions(key, size_, {}, cells.data());
    return cells;
  }
  void insert(std::string_view key) {
    for (const std::uint64_t cell : positions(key)) set_bit(bytes.data(), cell);
  }
  bool may_contain(std::string_view key) const {
    for (const std::uint64_t cell : positions(key)) {
      if (!test_bit(bytes.data(), cell)) return false;
    }
    return true;
  }
  std::uint64_t ones() const { return count_ones(bytes); }
  double current_fpr() const {
    return measure_fill({.scheme = std::string(rule.name), .geometry = size_}, bytes).current_fpr;
  }

  std::string hex() const {
    std::string digits;
    for (const std::uint8_t byte : bytes) {
      for (const int shift : {4, 0}) digits += "0123456789abcdef"[byte >> shift & 15];
    }
    return digits;
  }

  const scheme& rule;
  std::vector<std::uint8_t> bytes;

 private:
  geometry size_;
};

inline errc code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const error& e) {
    return e.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return errc::io;
}

// The measured FPR of many small filters, each of which has its own keys.
inline double measured_rate_of_small_filters(std::string_view name, const geometry& size, int n, int filters,
                                             int queries) {
  std::uint64_t reported = 0;
  for (int round = 0; round < filters; ++round) {
    scheme_filter filter(name, size);
    const std::string prefix = std::to_string(round) + '-';
    for (int i = 0; i < n; ++i) filter.insert("in-" + prefix + std::to_string(i));
    for (int i = 0; i < queries; ++i) reported += filter.may_contain("out-" + prefix + std::to_string(i)) ? 1 : 0;
  }
  return static_cast<double>(reported) / (static_cast<double>(filters) * queries);
}

}  // namespace bloomery_tests
