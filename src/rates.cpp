#include "rates.hpp"

#include <bloomery/error.hpp>

#include <string>
#include <vector>

namespace bloomery::rates {
namespace {

// Let a(d, t) be the probability that d given bits are all set after t uniform probes. The next probe hits one of the d
// with probability d/m:
//
//   a(d, t+1) = (1 - d/m) a(d, t) + d/m a(d-1, t),    a(0, t) = 1,  a(d, 0) = 0 for d > 0
//
// so a(., t) = M^t a(., 0) with a lower triangular M of non-negative entries. Powers of M by repeated squaring add and
// multiply positive numbers only; the textbook's alternating sum loses all digits where the rate is small.
class triangle {
 public:
  explicit triangle(std::uint32_t size) : size_(size), rows_(std::size_t{size} * (size + 1) / 2) {}

  long double& at(std::uint32_t row, std::uint32_t column) { return rows_[std::size_t{row} * (row + 1) / 2 + column]; }
  long double at(std::uint32_t row, std::uint32_t column) const {
    return rows_[std::size_t{row} * (row + 1) / 2 + column];
  }

  triangle squared() const {
    triangle result(size_);
    for (std::uint32_t row = 0; row < size_; ++row) {
      for (std::uint32_t middle = 0; middle <= row; ++middle) {
        const long double factor = at(row, middle);
        for (std::uint32_t column = 0; column <= middle; ++column) {
          result.at(row, column) += factor * at(middle, column);
        }
      }
    }
    return result;
  }

  void apply_to(std::vector<long double>& v) const {
    for (std::uint32_t row = size_; row-- > 0;) {
      long double sum = 0;
      for (std::uint32_t column = 0; column <= row; ++column) sum += at(row, column) * v[column];
      v[row] = sum;
    }
  }

 private:
  std::uint32_t size_;
  std::vector<long double> rows_;
};

}  // namespace

long double classic(std::uint64_t m, std::uint32_t k, std::uint64_t n) {
  const long double bits = static_cast<long double>(m);
  triangle power(k + 1);
  for (std::uint32_t d = 0; d <= k; ++d) {
    const long double hit = d >= m ? 1 : static_cast<long double>(d) / bits;
    power.at(d, d) = 1 - hit;
    if (d > 0) power.at(d, d - 1) = hit;
  }
  std::vector<long double> all_set(k + 1, 0);
  all_set[0] = 1;
  __extension__ using wide = unsigned __int128;
  for (wide probes = static_cast<wide>(n) * k; probes > 0;) {
    if ((probes & 1) != 0) power.apply_to(all_set);
    probes >>= 1;
    if (probes > 0) power = power.squared();
  }

  // distinct[d]: probability that the k probes of the absent key fall on d different bits.
  std::vector<long double> distinct(k + 1, 0);
  distinct[0] = 1;
  for (std::uint32_t probe = 0; probe < k; ++probe) {
    for (std::uint32_t d = probe + 1; d > 0; --d) {
      const long double old_bit = static_cast<long double>(d) / bits;
      const long double new_bit = d > m ? 0 : (bits - static_cast<long double>(d) + 1) / bits;
      distinct[d] = distinct[d] * old_bit + distinct[d - 1] * new_bit;
    }
    distinct[0] = 0;
  }
  long double rate = 0;
  for (std::uint32_t d = 1; d <= k; ++d) rate += distinct[d] * all_set[d];
  return rate < 1 ? rate : 1;
}

void check_promise(std::uint64_t n, double p) {
  if (n == 0) {
    throw error(errc::invalid_argument, {"a filter is made for at least one key", "capacity", "1 or more", "0", ""});
  }
  if (!(p > 0 && p < 1)) {
    throw error(errc::invalid_argument, {"the false-positive rate is a probability", "rate",
                                         "more than 0 and less than 1, such as 0.01", std::to_string(p), ""});
  }
}

}  // namespace bloomery::rates
