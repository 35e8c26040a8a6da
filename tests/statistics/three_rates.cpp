// Agreement of the three FPRs of a filter: the expected FPR, the exact FPR of the present bits, and the measured FPR.
//
// Every layout, hash and kind of key, at half the capacity, at capacity and beyond. Kernels are chosen once per
// process, so ctest runs this program once for each set, by BLOOMERY_KERNEL. The sets that this processor supports
// divide the combinations among them; other tests check that all sets write and read the same bits. With
// BLOOMERY_LONG=1, each set runs all combinations, also at lower FPRs, with enough queries to resolve a difference of
// 2% at four standard deviations. Prints a table. Exit status 0: the rates agree; 1: they do not; 2: an error; 77: this
// processor lacks the kernels.
//
// n keys.
#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/kernel.hpp>
#include <bloomery/layouts/blocked.hpp>
#include <bloomery/layouts/blocked_page.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/layouts/split_block512.hpp>
#include <bloomery/measure.hpp>

#include "kernels/kernels.hpp"
#include "registry/tables.hpp"
#include "support/rate_variance.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace bloomery;

// ---- what is combined -----------------------------------------------------------------------------------------------

struct layout_under_test {
  std::string_view name;
  double (*variance_of_rate)(const params& p, double n);
  double most_fill = 2;
};
template <class Layout>
constexpr layout_under_test row_of() {
  return {Layout::name,
          [](const params& p, double n) { return bloomery_tests::variance_of_rate<Layout>(p.geometry, n); }};
}
double variance_of_quotient(const params& p, double n) {
  return find_layout(p.layout)->slots->relative_variance(p.geometry, static_cast<std::uint64_t>(n));
}
constexpr layout_under_test layouts[] = {row_of<layouts::split_block>(),
                                         row_of<layouts::split_block512>(),
                                         row_of<layouts::blocked>(),
                                         row_of<layouts::blocked_page>(),
                                         row_of<layouts::classic>(),
                                         {"quotient", variance_of_quotient, 1},
                                         {"quotient_growing", variance_of_quotient, 1}};

struct hash_under_test {
  std::string_view name;
  key_kind keys;
};
constexpr hash_under_test hashes[] = {{"xxh3_64", key_kind::bytes}, {"xxh3", key_kind::bytes},
                                      {"xxh3", key_kind::u64le},    {"murmur3", key_kind::bytes},
                                      {"murmur3", key_kind::u64le}, {"mix", key_kind::u64le},
                                      {"siphash", key_kind::bytes}, {"siphash", key_kind::u64le}};

constexpr std::uint64_t capacity = 1'000'000;
constexpr double fills[] = {0.5, 1, 1.5};  // of capacity

// ---- precision ------------------------------------------------------------------------------------------------------

constexpr double sigmas = 4;
constexpr double relative = 0.02;         // the difference to be resolved at `sigmas`
constexpr double lowest_measured = 1e-4;  // below, only expected and exact FPRs are compared

// The sets of kernels of this processor, and which of them runs.
struct turns {
  std::size_t all = 1;
  std::size_t mine = 0;
};

turns chosen_turns() {
  const char* const wanted = std::getenv("BLOOMERY_KERNEL");
  if (wanted == nullptr) return {};
  std::size_t all = 0;
  turns t;
  for (const kernels::kernel_set* set : kernels::kernel_sets) {
    if (!set->supported()) continue;
    if (std::string_view(wanted) == set->name) t.mine = all;
    t.all = ++all;
  }
  return t;
}

struct form {
  std::vector<double> targets;  // target FPRs
  std::uint64_t most_queries;   // if they do not resolve 2%, `sigmas` still applies
  turns shared;                 // the sets that divide the combinations
};

form chosen_form() {
  if (std::getenv("BLOOMERY_LONG") == nullptr) return {{0.01}, 16'000'000, chosen_turns()};
  return {{0.01, 1e-3, 1e-5}, 160'000'000, {}};
}

// ---- the filter and its rates ---------------------------------------------------------------------------------------

// Keys number `first` up to `last`: sequential integers, or texts.
void insert_range(any_filter& filter, std::uint64_t first, std::uint64_t last) {
  constexpr std::uint64_t some = 10'000;
  std::vector<std::uint64_t> integers;
  std::vector<std::string> texts;
  std::vector<std::string_view> views;
  for (; first < last; first += some) {
    const std::uint64_t end = std::min(first + some, last);
    integers.clear();
    texts.clear();
    for (std::uint64_t i = first; i < end; ++i) {
      if (filter.parameters().keys == key_kind::u64le)
        integers.push_back(i);
      else
        texts.push_back("key-" + std::to_string(i));
    }
    views.assign(texts.begin(), texts.end());
    if (filter.parameters().keys == key_kind::u64le)
      filter.insert(integers);
    else
      filter.insert(views);
  }
}

// One row of the table: how far two rates are from each other, in standard deviations and in percent.
struct difference_of_rates {
  double off = 0;    // relative
  double sigma = 0;  // relative
  double in_sigmas() const { return sigma > 0 ? off / sigma : 0; }
  bool is_too_much() const { return !(std::abs(in_sigmas()) <= sigmas); }
};

class comparison {
 public:
  explicit comparison(const form& how) : how_(how) {
    std::printf("kernels %s\n%-12s %-7s %-5s %6s %4s | %12s %12s %12s | %17s %17s\n", kernel_name().c_str(), "layout",
                "hash", "keys", "target", "fill", "expected", "exact", "measured", "exact/expected", "measured/exact");
  }

  void fill_and_compare(const layout_under_test& layout, const hash_under_test& hash, double target) {
    params p{.layout = std::string(layout.name),
             .hash = std::string(hash.name),
             .keys = hash.keys,
             .capacity = capacity,
             .target_fpr = target};
    if (hash.name == siphash::name) p.secret = secret_key{1, 2};
    any_filter filter(complete(p));
    std::uint64_t keys = 0;
    for (const double fill : fills) {
      if (fill > layout.most_fill) break;  // the filter would refuse keys
      const auto n = static_cast<std::uint64_t>(fill * static_cast<double>(capacity));
      insert_range(filter, keys, n);
      keys = n;
      std::printf("%-12s %-7s %-5s %6.0e %4.1f | ", layout.name.data(), hash.name.data(), name_of(hash.keys), target,
                  fill);
      compare(filter, n, std::sqrt(layout.variance_of_rate(filter.parameters(), static_cast<double>(n))));
      std::fflush(stdout);
    }
  }

  bool agreed() const { return disagreements_ == 0; }

  void print_summary() const {
    std::printf("%d combinations, %d disagree; at most %.2f%% and %.2f sigma off\n", rows_, disagreements_,
                100 * most_off_, most_sigmas_);
  }

 private:
  void compare(const any_filter& filter, std::uint64_t n, double sigma_of_fill) {
    const double predicted = filter.expected_fpr(n);
    const double certified = measure_fill(filter.parameters(), filter.bytes()).current_fpr;
    const difference_of_rates of_fill{certified / predicted - 1, sigma_of_fill};
    difference_of_rates of_queries;
    double measured = 0;
    if (predicted >= lowest_measured) {
      const std::uint64_t queries = std::min(queries_to_resolve(predicted, relative, sigmas), how_.most_queries);
      measured = measure_rate(filter, queries, /*seed=*/n, /*threads=*/1).rate();
      of_queries = {measured / certified - 1, std::sqrt((1 - certified) / certified / static_cast<double>(queries))};
    }
    const bool wrong = of_fill.is_too_much() || of_queries.is_too_much();
    std::printf("%12.6e %12.6e ", predicted, certified);
    if (measured > 0)
      std::printf("%12.6e", measured);
    else
      std::printf("%12s", "-");
    std::printf(" | %+6.2f%% %+5.2f sd", 100 * of_fill.off, of_fill.in_sigmas());
    if (measured > 0) std::printf(" %+6.2f%% %+5.2f sd", 100 * of_queries.off, of_queries.in_sigmas());
    std::printf("%s\n", wrong ? "  DISAGREE" : "");
    ++rows_;
    disagreements_ += wrong ? 1 : 0;
    for (const difference_of_rates& d : {of_fill, of_queries}) {
      most_off_ = std::max(most_off_, std::abs(d.off));
      most_sigmas_ = std::max(most_sigmas_, std::abs(d.in_sigmas()));
    }
  }

  form how_;
  int rows_ = 0;
  int disagreements_ = 0;
  double most_off_ = 0;
  double most_sigmas_ = 0;
};

// Whether BLOOMERY_KERNEL names a set of this build that this processor cannot run.
const kernels::kernel_set* lacking() {
  const char* const wanted = std::getenv("BLOOMERY_KERNEL");
  for (const kernels::kernel_set* set : kernels::kernel_sets) {
    if (wanted != nullptr && std::string_view(wanted) == set->name && !set->supported()) return set;
  }
  return nullptr;
}

int compare_all() {
  if (const kernels::kernel_set* const set = lacking(); set != nullptr) {
    std::printf("SKIP: this processor has not all of %s, for the kernels %s\n", set->needs, set->name);
    return 77;
  }
  const form how = chosen_form();
  comparison all(how);
  std::size_t number = 0;
  for (const double target : how.targets) {
    for (const layout_under_test& layout : layouts) {
      for (const hash_under_test& hash : hashes) {
        if (number++ % how.shared.all == how.shared.mine) all.fill_and_compare(layout, hash, target);
      }
    }
  }
  all.print_summary();
  return all.agreed() ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return compare_all();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "three_rates: %s\n", e.what());
    return 2;
  }
}
