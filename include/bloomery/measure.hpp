// Measuring a filter: its fill ratio, its false-positive rates, its number of keys, and whether these agree.
//
// There are three false-positive rates. The expected FPR, expected_fpr(n), is the mean over all filters with n keys.
// The current FPR, measure_fill(), is the exact rate of the present bits of this filter. The measured FPR,
// measure_rate(), comes from lookups of absent keys. In a consistent filter the three agree.
//
// estimated_keys() and estimate_overlap() estimate numbers of keys from the bits, with standard deviations.
// check_fill() is the consistency check: it compares the number of set bits with the number expected from the key
// count. A significant difference means chosen keys, a wrong count, or damaged bits.
//
// In formulas: Z zeros of m bits, n keys, B blocks; q is the probability that a key sets a given bit of its block.
#pragma once

#include <bloomery/detail/estimate.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/detail/function_ref.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

class any_filter;
class filter_handle;
struct layout_row;
struct scheme;

/// Statistics of the present bits of a filter.
struct fill_statistics {
  std::uint64_t ones = 0;  ///< bits set; for counting filters: non-zero counters
  double current_fpr = 0;  ///< the probability that a random absent key is reported, given these bits; 0 to 1

  friend bool operator==(const fill_statistics&, const fill_statistics&) = default;
};

/// Computes the statistics in one pass, at memory speed.
///
/// The current FPR is the mean over blocks of the probability that a key of that block finds all its bits set:
///
///   classic                      (X/m)^k                     X of m bits are set
///   blocked, blocked_page        mean of (x/b)^k             x of the b bits of a block are set
///   counting                     mean of (x/128)^k           x of the 128 counters of a cache line are not 0
///   split_block, split_block512  mean of product of (x_j/w)  x_j of the w bits of word j of a block are set
///
/// plus the hash collisions of the number of keys that the bits suggest. Blocks are weighted by the probability that a
/// key chooses them. The rate does not depend on n and does not assume an even fill. It is exact for the present bits,
/// provided that the bits of an absent key are independent of each other within its block and of the set bits. For all
/// layouts, tests find no deviation from this, whatever keys were inserted. Bits that did not come from keys can be
/// arranged to make the rate wrong. For schemes the rate follows the scheme's own hashing (scheme.hpp); for guava it is
/// approximate.
///
/// @param bytes  bytes_for(p.geometry.bits) bytes; unused bits of the last byte are ignored
/// @throws error  invalid_argument: unknown layout or scheme, or another number of bytes
///
/// Example:
///     any_filter seen(complete({.layout = "classic", .capacity = 1000, .target_fpr = 0.01}));
///     assert(measure_fill(seen.parameters(), seen.bytes()).current_fpr == 0);
///     for (int i = 0; i < 1000; ++i) seen.insert(std::to_string(i));
///     const double rate = measure_fill(seen.parameters(), seen.bytes()).current_fpr;
///     assert(rate > 0.007 && rate < 0.013);
fill_statistics measure_fill(const params& p, std::span<const std::uint8_t> bytes);

/// measure_fill() for bytes that come in slices, such as those of a file that does not fit into memory.
///
/// Example:
///     const any_filter seen(complete({.layout = "blocked", .capacity = 100'000, .target_fpr = 0.01}));
///     fill_scan scan(seen.parameters());
///     scan.add(seen.bytes().first(16 * fill_scan::slice_unit));
///     scan.add(seen.bytes().subspan(16 * fill_scan::slice_unit));
///     assert(scan.result() == measure_fill(seen.parameters(), seen.bytes()));
class fill_scan {
 public:
  /// The size of a slice is a multiple of this number of bytes, except for the last.
  static constexpr std::uint64_t slice_unit = 4096;

  /// @throws error  invalid_argument: unknown layout or scheme
  explicit fill_scan(const params& p);

  /// Adds the next bytes. Sliding-window and static filters accept only all bytes at once.
  /// @throws error  invalid_argument: another number of bytes
  void add(std::span<const std::uint8_t> bytes);

  /// Requires all bytes.
  fill_statistics result() const;

 private:
  geometry geometry_;
  const layout_row* layout_;  // one of layout and scheme is set
  const scheme* scheme_;
  std::uint64_t read_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t favoured_ = 0;
  long double hit_ = 0;
  long double hash_values_ = 0;
  std::vector<std::uint8_t> beginning_;
  std::vector<std::uint64_t> lines_;  // by number of set bits
};

/// Estimated distinct keys of a filter with `ones` set bits; for counting filters, with `ones` non-zero counters.
///
///   n = ln(Z/m) / ln(1 - q/B),   sigma(n) = sigma(Z) / |dZ/dn|
///
/// where the variance of Z is the exact sum over all pairs of bits of their covariance; for classic that is linear
/// counting's m (e^r - 1 - r) / k^2, r = kn/m [Swamidass & Baldi 2007; Whang et al. 1990]. Infinite if all bits are
/// set. For static filters, whose cells do not depend on the number of keys: exactly the capacity.
///
/// @throws error invalid_argument: unknown layout or scheme
///
/// Example:
///     const params p = complete({.layout = "classic", .capacity = 1000, .target_fpr = 0.01});
///     const estimate keys = estimated_keys(p, p.geometry.bits / 2);
///     assert(keys.value > 900 && keys.value < 1000);
///     assert(keys.sigma > 1 && keys.sigma < 20);
estimate estimated_keys(const params& p, std::uint64_t ones);

/// Expected number of set bits, or non-zero counters, with `keys` distinct keys: m (1 - (1 - q/B)^n), and its standard
/// deviation.
/// @throws error invalid_argument: unknown layout or scheme
///
/// Example:
///     const params p = complete({.layout = "classic", .geometry = {1000, 1}, .capacity = 100});
///     const estimate ones = expected_ones(p, 100);
///     assert(ones.value > 95.2 && ones.value < 95.3 && ones.sigma > 2 && ones.sigma < 2.2);
estimate expected_ones(const params& p, double keys);

/// Set bits of two filters of the same size.
struct shared_ones {
  std::uint64_t a = 0;     ///< of the first
  std::uint64_t b = 0;     ///< of the second
  std::uint64_t both = 0;  ///< set in both

  std::uint64_t either() const noexcept { return a + b - both; }
};

/// Counts the set bits in one pass. @throws error invalid_argument: `a` and `b` differ in size
///
/// Example:
///     const std::uint8_t a[] = {0x0F}, b[] = {0x3C};
///     const shared_ones ones = count_shared(a, b);
///     assert(ones.a == 4 && ones.b == 4 && ones.both == 2 && ones.either() == 6);
shared_ones count_shared(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b);

/// The estimated overlap of two filters.
struct overlap {
  estimate keys_a;
  estimate keys_b;
  estimate keys_either;         ///< distinct keys of the union
  estimate keys_both;           ///< distinct keys in both
  estimate jaccard;             ///< keys_both / keys_either, 0 to 1; 0 if both are empty
  double shared_by_chance = 0;  ///< expected common set bits of two such filters without a common key
};

/// n(A and B) = n(A) + n(B) - n(A or B), each estimated from its zeros. The errors of the three estimates are
/// correlated: with G(n) = Var(Z)/E(Z)^2 at n keys,
///
///   Var n(A and B) = (B/q)^2 (G(n_either) - G(n_a) - G(n_b) + 2 G(n_both))
///
/// If all bits of the union are set, the overlap is unknown: 0 with infinite sigma.
///
/// @param p  parameters of both filters, which must be compatible: difference(a, b) is empty
/// @throws error  incompatible: the cells are not single bits
///
/// Example:
///     const params p = complete({.layout = "classic", .capacity = 10'000, .target_fpr = 0.01});
///     any_filter a(p), b(p);
///     for (int i = 0; i < 9000; ++i) a.insert(std::to_string(i));
///     for (int i = 6000; i < 15000; ++i) b.insert(std::to_string(i));
///     const overlap o = estimate_overlap(p, count_shared(a.bytes(), b.bytes()));
///     assert(o.keys_both.value > 2800 && o.keys_both.value < 3200);  // 3000
///     assert(!o.keys_both.is_noise());
overlap estimate_overlap(const params& p, const shared_ones& ones);

/// The number of set bits of a filter, and the number expected from its key count.
struct fill_check {
  std::uint64_t ones = 0;   ///< bits set
  estimate expected;        ///< for random keys, of which the given count were certainly new
  bool conclusive = false;  ///< false: the count says too little (an overfull filter leaves most keys uncounted; a
                            ///< counting filter with fewer used cells than copies may hold repeated keys), or the
                            ///< filter uses a scheme, or more than 64 probes

  /// The z-score of the set bits; above 0: more bits than the keys explain.
  double deviation() const noexcept;

  /// Whether they differ by more than six standard deviations and seven bits. By chance this happens about once in 500
  /// million filters; other causes are pollution by chosen keys, a wrong count, or damaged pages.
  bool is_inconsistent() const noexcept;
};

/// Compares the set bits with the number expected from the count. The count must be exact: not an estimate
/// (count_is_estimate()), not from a file whose writer was killed, and not from threads that inserted the same keys at
/// the same time.
///
/// @param counted  keys that were certainly new when inserted: insert_count()
/// @param ones     bits set, as measure_fill() counts them
/// @throws error   invalid_argument: unknown layout or scheme
///
/// Example:
///     any_filter seen(complete({.layout = "split_block512", .capacity = 1000, .target_fpr = 0.01}));
///     for (int i = 0; i < 1000; ++i) seen.insert(std::to_string(i));
///     const std::uint64_t ones = measure_fill(seen.parameters(), seen.bytes()).ones;
///     assert(!check_fill(seen.parameters(), seen.insert_count(), ones).is_inconsistent());
///     assert(check_fill(seen.parameters(), seen.insert_count() / 2, ones).is_inconsistent());
fill_check check_fill(const params& p, std::uint64_t counted, std::uint64_t ones);

/// The interval from `low` to `high`.
struct interval {
  double low = 0;
  double high = 1;

  bool holds(double value) const noexcept { return low <= value && value <= high; }
};

/// Wilson's score interval for a probability after `hits` successes in `trials` trials. It stays within 0 to 1 and is
/// meaningful even without a hit. [Wilson 1927]
///
/// @param sigmas  half its width, in standard deviations; 1.96 covers the true probability in about 95% of all cases
///                (with few hits only 87%)
///
/// Example:
///     const interval i = wilson(0, 100, 1.96);
///     assert(i.low == 0 && i.high > 0.036 && i.high < 0.038);
interval wilson(std::uint64_t hits, std::uint64_t trials, double sigmas = 1.96);

/// The exact binomial tail: the probability of `hits` successes, or a number further from the mean on the same side, if
/// each trial succeeds with probability `rate`. For few hits it is more precise than wilson().
///
/// @param hits    at most trials
/// @param trials  up to 10^12; beyond, digits are lost
/// @param rate    a probability, 0 and 1 included
///
/// Example:
///     assert(chance_of(1, 1000, 1e-5) > 0.0099 && chance_of(1, 1000, 1e-5) < 0.01);
///     assert(chance_of(500, 1000, 0.5) > 0.5);
double chance_of(std::uint64_t hits, std::uint64_t trials, double rate);

/// Number of lookups needed to measure `rate` with a relative error of `relative`, at `sigmas` standard deviations:
/// (z/d)^2 (1 - p)/p. At least 1, at most 2^62.
///
/// Example:
///     assert(queries_to_resolve(0.001, 0.02, 4) == 39'960'000);
std::uint64_t queries_to_resolve(double rate, double relative, double sigmas);

/// The result of looking up absent keys.
struct measured_rate {
  std::uint64_t queries = 0;
  std::uint64_t hits = 0;  ///< false positives
  double rate() const noexcept { return queries == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(queries); }
  interval within(double sigmas = 1.96) const { return wilson(hits, queries, sigmas); }
};

/// Looks up `queries` random keys: strings of 16 random bytes, or 64-bit integers. The probability that such a key is
/// in a filter of n other keys is n / 2^128, or n / 2^64.
///
/// @param seed     selects the keys
/// @param threads  0: one per processor; does not change the result
/// @param go_on    called occasionally by all threads; if it returns false, measuring stops early with fewer lookups
///
/// Example:
///     any_filter seen(complete({.capacity = 1000, .target_fpr = 0.01}));
///     for (int i = 0; i < 1000; ++i) seen.insert(std::to_string(i));
///     const measured_rate m = measure_rate(seen, 100'000);
///     assert(m.within(5).holds(measure_fill(seen.parameters(), seen.bytes()).current_fpr));
measured_rate measure_rate(const any_filter& filter, std::uint64_t queries, std::uint64_t seed = 0,
                           unsigned threads = 0, const function_ref<bool()>& go_on = {});

/// Measures a filter of any kind with the same keys; in one thread if its lookups cannot run in parallel.
/// @throws error  as filter_handle::contains
///
/// Example:
///     any_filter seen(complete({.capacity = 1000, .target_fpr = 0.01}));
///     for (int i = 0; i < 1000; ++i) seen.insert(std::to_string(i));
///     const std::uint64_t hits = measure_rate(seen, 100'000).hits;
///     assert(measure_rate(*make_handle(std::move(seen)), 100'000).hits == hits);
measured_rate measure_rate(filter_handle& filter, std::uint64_t queries, std::uint64_t seed = 0, unsigned threads = 0,
                           const function_ref<bool()>& go_on = {});

}  // namespace bloomery
