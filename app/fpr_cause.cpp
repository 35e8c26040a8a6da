#include "app/fpr_cause.hpp"

#include "app/numbers.hpp"

#include <bloomery/layouts/blocked.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/sizing.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

namespace bloomery::app {
namespace {

constexpr double beyond_chance = 3.2e-5;  // four standard deviations, one side

using curve = std::function<double(std::uint64_t keys)>;

struct candidate_cause {
  std::string code;
  std::string text;
  curve fpr;
  double slack = 0;  // relative error of the curve, beyond that of all
};

std::uint32_t probes_of(double wanted) { return static_cast<std::uint32_t>(std::clamp(wanted, 1.0, 255.0)); }

curve curve_of(params p) {
  return [p = std::move(p)](std::uint64_t keys) { return expected_fpr(p, keys); };
}

template <class Layout>
curve layout_curve(std::uint64_t bits, std::uint32_t probes) {
  params p;
  p.layout = Layout::name;
  p.geometry = {std::max<std::uint64_t>(bits, 1), probes};
  return curve_of(std::move(p));
}

curve scheme_curve(const char* scheme, const geometry& g) {
  params p;
  p.scheme = scheme;
  p.geometry = g;
  return curve_of(std::move(p));
}

std::uint64_t whole_blocks(std::uint64_t bits, std::uint64_t block) { return (bits + block - 1) / block * block; }

class hypotheses {
 public:
  explicit hypotheses(const filter_claim& claim) : claim_(claim), n_(claim.expected.capacity) {
    size_ = claim.expected.geometry;
    if (!claim.bits_are_known) size_.bits = std::max<std::uint64_t>(textbook_bits(n_, claim.expected.target_fpr), 1);
    ideal_ = static_cast<double>(size_.bits) / static_cast<double>(n_) * std::numbers::ln2;
    if (!claim.bits_are_known) size_.probes = probes_of(std::round(ideal_));
    add_sizes();
    add_hashes();
    add_missing_bits();
    if (block_bits_of(claim.expected) == 0) add_blocks();
  }

  std::vector<candidate_cause> take() { return std::move(all_); }
  const geometry& size() const noexcept { return size_; }

 private:
  void add(const char* code, std::string text, curve fpr) { all_.push_back({code, std::move(text), std::move(fpr)}); }

  curve base() const {
    return claim_.bits_are_known ? curve_of(claim_.expected) : layout_curve<layouts::classic>(size_.bits, size_.probes);
  }

  void add_sizes() {
    if (claim_.bits_are_known) {
      add("size",
          fmt::format("size: {} and {} do not reach the target FPR", counted(size_.bits, "bit"),
                      counted(size_.probes, "probe")),
          base());
    }
    if (claim_.probes_are_known) return;
    for (const std::uint32_t probes : {probes_of(std::floor(ideal_)), probes_of(std::ceil(ideal_))}) {
      add("rounding",
          fmt::format("rounding: {} with k = {}, where m / n ln 2 is {:.3g}", counted(size_.bits, "bit"), probes,
                      ideal_),
          layout_curve<layouts::classic>(size_.bits, probes));
    }
    if (claim_.bits_are_known) return;
    const auto per_key = static_cast<std::uint64_t>(static_cast<double>(size_.bits) / static_cast<double>(n_));
    if (per_key == 0) return;
    add("rounding",
        fmt::format("rounding: {} bits per key instead of {:.3g}", per_key,
                    static_cast<double>(size_.bits) / static_cast<double>(n_)),
        layout_curve<layouts::classic>(per_key * n_, probes_of(std::floor(static_cast<double>(per_key) * 0.69))));
  }

  void add_hashes() {
    add("hash32", "32-bit hashes: two keys have the same hash with probability 2^-32", [fpr = base()](std::uint64_t n) {
      const double without = fpr(n);
      return without + (1 - without) * -std::expm1(-static_cast<double>(n) * 0x1p-32);
    });
    add("hash16", "16-bit hashes: two halves of a 32-bit hash, which reach only 65,536 (k + 1) bits",
        scheme_curve("pharo", size_));
    add("double_hashing", "double hashing in a small filter: progressions of different keys coincide",
        scheme_curve("guava", {whole_blocks(size_.bits, 64), size_.probes}));
  }

  void add_missing_bits() {
    add("half", "half of the bits: the filter was folded, or its size is half of the stated one",
        layout_curve<layouts::classic>(size_.bits / 2, size_.probes));
    for (const int width : {31, 32}) {
      const std::uint64_t reach = std::uint64_t{1} << width;
      if (size_.bits <= reach) continue;
      add(width == 31 ? "reach31" : "reach32",
          fmt::format("{}-bit positions: the bits beyond 2^{} are never set", width, width),
          layout_curve<layouts::classic>(reach, size_.probes));
    }
  }

  // Sizes for filters without blocks: Parquet's rule, -8 n / ln(1 - p^(1/8)), the textbook's rule, or given bits.
  void add_blocks() {
    const auto split = [&](const char* code, const char* size, std::uint64_t bits) {
      add(code, fmt::format("blocks of 256 bits in {}, which assumes evenly filled blocks", size),
          layout_curve<layouts::split_block>(whole_blocks(bits, 256), 8));
    };
    if (claim_.bits_are_known) {
      split("blocks", "this size", size_.bits);
    } else {
      const double parquet =
          -8.0 * static_cast<double>(n_) / std::log1p(-std::pow(claim_.expected.target_fpr, 1.0 / 8));
      split("parquet_blocks", "a size by Parquet's rule", static_cast<std::uint64_t>(parquet));
      split("blocks", "a size by the textbook's rule", size_.bits);
    }
    add("blocks512", "blocks of 512 bits in a size that assumes evenly filled blocks",
        layout_curve<layouts::blocked>(whole_blocks(size_.bits, 512), size_.probes));
  }

  const filter_claim& claim_;
  std::uint64_t n_;
  geometry size_;
  double ideal_ = 0;  // m / n ln 2
  std::vector<candidate_cause> all_;
};

// Curves of filters that grow, and of filters of fingerprints. Their numbers of layers or bits are unknown, so the
// curves are fitted.
std::vector<candidate_cause> growth_causes(std::span<const fill_level> levels) {
  double hits = 0, lookups = 0, weighted = 0;
  for (const fill_level& level : levels) {
    hits += static_cast<double>(level.measured.hits);
    lookups += static_cast<double>(level.measured.queries);
    weighted += static_cast<double>(level.measured.queries) * static_cast<double>(level.keys);
  }
  const double mean = hits / lookups;
  const double per_key = hits / weighted;
  if (levels.size() < 3 || hits < 100 || mean > 0.3) return {};
  return {
      {"layers",
       "growth: the FPR hardly depends on the number of keys, as with small layers, or fingerprints of a fixed table",
       [mean](std::uint64_t) { return mean; }, 0.3},
      {"equal_layers",
       "growth: the FPR is proportional to the number of keys, as with equal layers, or short hashes or fingerprints",
       [per_key](std::uint64_t keys) { return per_key * static_cast<double>(keys); }, 0.05}};
}

// A classic filter with the number of bits that explains the last level.
candidate_cause fewer_bits(const geometry& size, const fill_level& last) {
  double low = 0, high = 1;
  const auto bits = [&](double share) {
    return std::max<std::uint64_t>(static_cast<std::uint64_t>(share * static_cast<double>(size.bits)), 1);
  };
  for (int step = 0; step < 30; ++step) {
    const double middle = (low + high) / 2;
    const double fpr = layout_curve<layouts::classic>(bits(middle), size.probes)(last.keys);
    (fpr > last.measured.rate() ? low : high) = middle;
  }
  return {"fewer_bits", fmt::format("the filter behaves like one with {:.0f}% of the bits", 100 * high),
          layout_curve<layouts::classic>(bits(high), size.probes), 0.05};
}

// Relative standard deviation of the FPR among classic filters of this size: the number of set bits varies.
double deviation_of_filters(const geometry& size, std::uint64_t keys) {
  const auto bits = static_cast<double>(size.bits);
  const double load = static_cast<double>(size.probes) * static_cast<double>(keys) / bits;
  const double clear = std::exp(-load);
  return size.probes * std::sqrt(clear * (1 - (1 + load) * clear) / bits) / -std::expm1(-load);
}

// Squared distance of the measured number of false positives from the expected one, in standard deviations.
double squared_distance(const measured_rate& m, double rate, double deviation) {
  const double expected = rate * static_cast<double>(m.queries);
  const double variance = expected * (1 - std::min(rate, 1.0)) + deviation * deviation * expected * expected;
  const double difference = static_cast<double>(m.hits) - expected;
  return difference * difference / std::max(variance, 1.0);
}

bool agrees(const measured_rate& m, double rate, double slack) {
  const double nearest = std::clamp(m.rate(), rate * (1 - slack), std::min(rate * (1 + slack), 1.0));
  return chance_of(m.hits, m.queries, nearest) >= beyond_chance;
}

struct fit {
  fpr_cause cause;
  double distance = 0;  // sum of the squared distances of all levels, and a penalty
};

// The causes that agree with all levels, the likeliest first.
std::vector<fit> fits_of(const std::vector<candidate_cause>& candidates, const geometry& size,
                         std::span<const fill_level> levels, double slack, double penalty) {
  std::vector<fit> fits;
  for (const candidate_cause& candidate : candidates) {
    fit f{{candidate.code, candidate.text, 0}, candidate.code == "size" ? 0 : penalty};
    const bool all = std::all_of(levels.begin(), levels.end(), [&](const fill_level& level) {
      f.cause.fpr = candidate.fpr(level.keys);
      f.distance += squared_distance(level.measured, f.cause.fpr, deviation_of_filters(size, level.keys));
      return agrees(level.measured, f.cause.fpr, slack + candidate.slack);
    });
    if (all) fits.push_back(std::move(f));
  }
  std::stable_sort(fits.begin(), fits.end(), [](const fit& a, const fit& b) { return a.distance < b.distance; });
  return fits;
}

}  // namespace

std::vector<fpr_cause> likely_causes(const filter_claim& claim, std::span<const fill_level> levels) {
  constexpr std::uint64_t enough_hits = 50;
  constexpr double in_doubt = 2;            // prefers a wrong size to other causes with the same rates
  constexpr double fitted = 3;              // the curve of fewer bits has a fitted number
  constexpr double indistinguishable = 10;  // of squared distances
  if (levels.empty() || claim.expected.capacity == 0) return {};
  const measured_rate& last = levels.back().measured;
  std::vector<fpr_cause> full;
  if (last.rate() > 0.99) full = {{"full", "a full filter: nearly every key is reported as present", last.rate()}};
  if (claim.expected.geometry.probes > layouts::classic::most_chosen_probes || last.hits < enough_hits) return full;
  hypotheses known(claim);
  const geometry size = known.size();
  // The FPR of a filter varies with its number of set bits.
  const double slack = 0.02 + 2.0 * size.probes / std::sqrt(static_cast<double>(size.bits));
  if (slack > 1) return full;  // a few keys

  std::vector<fit> fits = fits_of(known.take(), size, levels, slack, in_doubt);
  if (fits.empty()) fits = fits_of(growth_causes(levels), size, levels, slack, in_doubt);
  if (fits.empty() && !full.empty()) return full;
  const std::vector<fit> fewer = fits_of({fewer_bits(size, levels.back())}, size, levels, slack, fitted);
  if (!fewer.empty()) {
    if (fits.empty() || fewer.front().distance + indistinguishable < fits.front().distance)
      return {fewer.front().cause};
    if (fewer.front().distance < fits.front().distance)
      fits.insert(fits.begin() + 1, fewer.front());  // neither is certain
  }

  std::vector<fpr_cause> result;
  for (fit& f : fits) {
    const bool is_close = f.distance < fits.front().distance + indistinguishable;
    const bool is_known = !result.empty() && (result.front().code == f.cause.code ||
                                              std::abs(result.front().fpr - f.cause.fpr) < 0.01 * f.cause.fpr);
    if (is_close && !is_known && result.size() < 2) result.push_back(std::move(f.cause));
  }
  return result;
}

}  // namespace bloomery::app
