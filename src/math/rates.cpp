// Exact false-positive rates: recurrences of positive terms, and the errors for impossible sizes.
#include "math/rates.hpp"

#include <bloomery/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace bloomery::rates {

// A triangular matrix M for the probabilities a(d, t) that d given bits are all set after t uniform probes. The next
// probe hits one of the d bits with probability d/m:
//
//   a(d, t+1) = (1 - d/m) a(d, t) + d/m a(d-1, t),    a(0, t) = 1,  a(d, 0) = 0 for d > 0
//
// so a(., t) = M^t a(., 0) with a lower triangular M of non-negative entries. Powers of M by repeated squaring add and
// multiply positive numbers only; the textbook's alternating sum loses all digits if the result is small.
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
      for (std::uint32_t column = 0; column <= row; ++column) {
        long double sum = 0;
        for (std::uint32_t middle = column; middle <= row; ++middle) sum += at(row, middle) * at(middle, column);
        result.at(row, column) = sum;
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

namespace {

// distinct[d]: probability that k probes into m bits select d different bits.
std::vector<long double> distinct_bits(std::uint64_t m, std::uint32_t k) {
  const long double bits = static_cast<long double>(m);
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
  return distinct;
}

// The probability that one of k given bits is clear after i keys is at most k (1 - 1/m)^(ki). With this many probes per
// bit it is below the precision of long double.
constexpr long double probes_that_fill_a_bit = 48;

}  // namespace

long double classic(std::uint64_t m, std::uint32_t k, std::uint64_t n) {
  const long double bits = static_cast<long double>(m);
  if (static_cast<long double>(n) * k > probes_that_fill_a_bit * bits) return 1;
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

  const std::vector<long double> distinct = distinct_bits(m, k);
  long double rate = 0;
  for (std::uint32_t d = 1; d <= k; ++d) rate += distinct[d] * all_set[d];
  return rate < 1 ? rate : 1;
}

// A key is k probes, so multiplying by P = M^k advances all_set_ by one key. Double precision suffices for P, since at
// most a few thousand factors are multiplied. Larger distances are covered by powers of P, squared in long double.
block_rates::block_rates(std::uint64_t m, std::uint32_t k)
    : m_(m), k_(k), distinct_(k + 1), key_(std::size_t{k + 1} * (k + 1)), all_set_(k + 1), next_(k + 1) {
  const std::vector<long double> distinct = distinct_bits(m, k);
  std::copy(distinct.begin(), distinct.end(), distinct_.begin());
  triangle power(k + 1);
  std::vector<long double> v(k + 1);
  for (std::uint32_t column = 0; column <= k; ++column) {
    std::fill(v.begin(), v.end(), 0);
    v[column] = 1;
    for (std::uint32_t probe = 0; probe < k; ++probe) {
      for (std::uint32_t d = std::min(column + probe + 1, k); d > column; --d) v[d] += hit(d) * (v[d - 1] - v[d]);
      v[column] *= 1 - hit(column);
    }
    for (std::uint32_t d = column; d <= k; ++d) {
      key_[std::size_t{column} * (k + 1) + d] = static_cast<double>(v[d]);
      power.at(d, column) = v[d];
    }
  }
  powers_.push_back(std::move(power));
  restart();
}

block_rates::~block_rates() = default;
block_rates::block_rates(block_rates&&) noexcept = default;

long double block_rates::hit(std::uint32_t d) const {
  return d >= m_ ? 1 : static_cast<long double>(d) / static_cast<long double>(m_);
}

void block_rates::restart() {
  std::fill(all_set_.begin(), all_set_.end(), 0);
  all_set_[0] = 1;
  keys_ = 0;
}

void block_rates::jump(std::size_t keys) {
  std::vector<long double> v(k_ + 1, 0);
  v[0] = 1;
  for (std::size_t i = 0; keys >> i != 0; ++i) {
    if (powers_.size() <= i) powers_.push_back(powers_.back().squared());
    if ((keys >> i & 1) != 0) powers_[i].apply_to(v);
  }
  std::copy(v.begin(), v.end(), all_set_.begin());
  keys_ = keys;
}

void block_rates::add_key(const double* from, double* to) const {
  std::fill_n(to, k_ + 1, 0);
  for (std::uint32_t column = 0; column <= k_; ++column) {
    const double factor = from[column];
    const double* const of_key = &key_[std::size_t{column} * (k_ + 1)];
    for (std::uint32_t d = column; d <= k_; ++d) to[d] += of_key[d] * factor;
  }
}

void block_rates::step() {
  add_key(all_set_.data(), next_.data());
  all_set_.swap(next_);
  ++keys_;
}

long double block_rates::operator()(long double i) {
  if (i * k_ > probes_that_fill_a_bit * static_cast<long double>(m_)) return 1;
  const auto wanted = static_cast<std::size_t>(i);
  if (wanted < rates_.size() && rates_[wanted] >= 0) return rates_[wanted];

  constexpr std::size_t chunk = 64;
  const std::size_t begin = wanted / chunk * chunk;
  const std::size_t worth_a_jump = chunk + 16 * std::size_t{k_};  // the number of steps with the same cost
  if (keys_ > begin) restart();
  if (begin - keys_ > worth_a_jump) jump(begin);
  if (rates_.size() < begin + chunk) rates_.resize(begin + chunk, unknown);
  for (; keys_ < begin + chunk; step()) {
    double rate = 0;
    for (std::uint32_t d = 1; d <= k_; ++d) rate += distinct_[d] * all_set_[d];
    rates_[keys_] = std::min(rate, 1.0);
  }
  return rates_[wanted];
}

const double* block_rates::covered(std::size_t i) {
  const std::size_t size = std::size_t{k_} + 1;
  const auto full = static_cast<std::size_t>(probes_that_fill_a_bit * static_cast<long double>(m_) / k_) + 1;
  i = std::min(i, full);
  if (covered_.empty()) {
    covered_.resize(size);
    covered_[0] = 1;
  }
  for (std::size_t known = covered_.size() / size; known <= i; ++known) {
    covered_.resize((known + 1) * size);
    double* const last = &covered_[(known - 1) * size];
    add_key(last, last + size);
  }
  return &covered_[i * size];
}

std::vector<double> blocked_covered(block_rates& in_block, std::uint64_t n, long double B) {
  const std::uint32_t k = in_block.probes();
  const auto of = [&](long double i) {
    const double* const first = in_block.covered(i < 1e6L ? static_cast<std::size_t>(i) : std::size_t{1'000'000});
    std::vector<double> result(first, first + k + 1);
    for (double& value : result) value = std::min(value, 1.0);  // rounding may exceed 1
    return result;
  };
  const long double keys = static_cast<long double>(n);
  const long double mode = std::floor((keys + 1) / B);
  if (n == 0) return of(0);
  if (B == 1 || mode > 1e6L) return of(B == 1 ? keys : mode);

  // As in blocked(): weights relative to the mode's, summed outwards from the mode until the smallest term, that of k
  // bits, is negligible.
  constexpr long double negligible = 1e-21L;
  const long double odds = 1 / (B - 1);
  std::vector<double> sum = of(mode);
  long double mass = 1;
  const auto add = [&](long double weight, long double i) {
    const double* const some = in_block.covered(static_cast<std::size_t>(i));
    const auto w = static_cast<double>(weight);
    for (std::uint32_t d = 0; d <= k; ++d) sum[d] += w * some[d];
    mass += weight;
    return w * some[k];
  };
  long double weight = 1;
  double last = sum[k];
  for (long double i = mode + 1; i <= keys; ++i) {
    weight *= (keys - i + 1) / i * odds;
    const double term = add(weight, i);
    if (weight < negligible * mass && term < static_cast<double>(negligible) * sum[k] && term <= last) break;
    last = term;
  }
  weight = 1;
  for (long double i = mode; i >= 1; --i) {
    weight *= i / ((keys - i + 1) * odds);
    const double term = add(weight, i - 1);
    if (weight < negligible * mass && term < static_cast<double>(negligible) * sum[k]) break;
  }
  for (double& value : sum) value = std::min(value / static_cast<double>(mass), 1.0);
  return sum;
}

void check_blocks(const char* name, std::uint64_t bits, std::uint32_t block_bits, std::uint64_t max_blocks) {
  const std::string what = std::string("invalid number of bits for a ") + name + " filter";
  if (bits == 0 || bits % block_bits != 0) {
    throw error(errc::invalid_argument, {what, "geometry", "a multiple of " + std::to_string(block_bits) + ", not 0",
                                         std::to_string(bits), ""});
  }
  if (bits / block_bits > max_blocks) {
    throw error(errc::too_large,
                {what, "geometry", "at most " + std::to_string(max_blocks) + " blocks of " + std::to_string(block_bits),
                 std::to_string(bits), hint::use_classic_layout});
  }
}

void check_probes(const char* name, std::uint32_t probes, std::uint32_t fixed) {
  if (fixed != 0 ? probes == fixed : probes != 0 && probes <= max_probes) return;
  throw error(errc::invalid_argument,
              {std::string("invalid number of probes for a ") + name + " filter", "geometry",
               fixed != 0 ? std::to_string(fixed) : "1 to " + std::to_string(max_probes), std::to_string(probes), ""});
}

void refuse_target_fpr(const char* name, std::uint64_t n, double p) {
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.3g", p);
  throw error(errc::too_large, {std::string("no ") + name + " filter keeps the target FPR", "rate",
                                "no more blocks than the layout supports, and an FPR above that of hash collisions",
                                std::to_string(n) + " keys at " + rate, hint::use_fewer_keys_or_classic});
}

void check_target_fpr(std::uint64_t n, double p) {
  if (n == 0) {
    throw error(errc::invalid_argument, {"the capacity must be at least one key", "capacity", "at least 1", "0", ""});
  }
  if (!(p > 0 && p < 1)) {
    throw error(errc::invalid_argument, {"the target FPR is not a probability", "rate",
                                         "a number above 0 and below 1, such as 0.01", std::to_string(p), ""});
  }
}

}  // namespace bloomery::rates
