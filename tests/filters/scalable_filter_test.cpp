// scalable_filter with any number of layers, compared with sets of keys, with a model written from the definition of
// the layout, and with probability bounds.
#include <bloomery/scalable_filter.hpp>

#include <bloomery/filter.hpp>
#include <bloomery/measure.hpp>

#include "support/long_tests.hpp"
#include "support/processes.hpp"
#include "support/test.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace {

using namespace bloomery;
using namespace bloomery_tests;
using integers = scalable_filter<std::uint64_t>;

// The layers one after another, bit by bit as split_block512::cells has them, with nothing but their geometry and the
// number of new keys at which each was left taken from the filter.
class model {
 public:
  explicit model(std::vector<scalable_layer> layers)
      : facts_(std::move(layers)), bytes_(facts_.size()), sizes_(facts_.size()) {
    for (std::size_t i = 0; i < facts_.size(); ++i) bytes_[i].resize(facts_[i].geometry.bits / 8);
  }

  bool insert(key_hash hash) {
    if (has(hash)) return false;
    if (sizes_[at_] == facts_[at_].size && at_ + 1 < facts_.size()) ++at_;
    insert_cells<layouts::split_block512>(bytes_[at_].data(), facts_[at_].geometry, hash);
    ++sizes_[at_];
    return true;
  }

  bool has(key_hash hash) const {
    for (std::size_t i = 0; i <= at_; ++i) {
      if (has_cells<layouts::split_block512>(bytes_[i].data(), facts_[i].geometry, hash)) return true;
    }
    return false;
  }

 private:
  std::vector<scalable_layer> facts_;
  std::vector<std::vector<std::uint8_t>> bytes_;
  std::vector<std::uint64_t> sizes_;
  std::size_t at_ = 0;
};

std::vector<std::uint64_t> numbers(std::uint64_t from, std::size_t count) {
  std::vector<std::uint64_t> keys(count);
  for (std::size_t i = 0; i < count; ++i) keys[i] = from + i;
  return keys;
}

std::uint64_t hits_among(const integers& seen, std::uint64_t from, std::size_t count) {
  const std::vector<std::uint64_t> keys = numbers(from, count);
  std::vector<std::uint64_t> bitmap((count + 63) / 64);
  seen.may_contain(std::span<const std::uint64_t>(keys), bitmap);
  std::uint64_t hits = 0;
  for (const std::uint64_t word : bitmap) hits += static_cast<std::uint64_t>(__builtin_popcountll(word));
  return hits;
}

void expect_same_filter(const scalable_layers& a, const scalable_layers& b) {
  ASSERT_EQ(a.layers().size(), b.layers().size());
  EXPECT_EQ(a.insert_count(), b.insert_count());
  for (std::size_t i = 0; i < a.layers().size(); ++i) {
    EXPECT_EQ(a.layers()[i].size, b.layers()[i].size) << i;
    EXPECT_TRUE(std::ranges::equal(a.bytes_of(i), b.bytes_of(i))) << i;
  }
}

// ---- the shares -----------------------------------------------------------------------------------------------------

TEST(ScalableShares, SumToAtMostTheRateAndNearlyToIt) {
  for (const double rate : {0.5, 1e-2, 1e-6}) {
    long double sum = 0;
    for (std::size_t layer = 0; layer < 64; ++layer) {
      const double share = share_of_layer(rate, layer);
      EXPECT_GT(share, 0) << layer;
      EXPECT_LE(share, layer == 0 ? rate : share_of_layer(rate, layer - 1)) << layer;
      sum += static_cast<long double>(share);
      EXPECT_LE(sum, static_cast<long double>(rate)) << layer;
    }
    EXPECT_GT(sum, 0.999999L * static_cast<long double>(rate));
  }
}

TEST(ScalableShares, OfLayersWithoutEndAreStillNoMoreThanTheRate) {
  double sum = 0;
  for (std::size_t layer = 0; layer < 5000; ++layer) sum += share_of_layer(0.25, layer);

  EXPECT_LE(sum, 0.25);
  EXPECT_GE(share_of_layer(0.25, ~std::size_t{0}), 0);
}

// ---- the rate beforehand --------------------------------------------------------------------------------------------

TEST(ScalableRate, IsThatOfAFilterWithAFewKeysMoreOrFewer) {
  for (const double rate : {0.2, 0.01, 1e-6}) {
    scalable_layers seen(rate, 1000);
    std::uint64_t in = 0;
    for (const std::uint64_t count : {1u, 500u, 1000u, 1700u, 4000u, 30'000u, 100'000u}) {
      for (; in < count; ++in) seen.insert(mix{}(in));

      // Those that are taken for seen, and for each layer one that it does without.
      const auto few = static_cast<std::uint64_t>(10 + rate * static_cast<double>(count));
      EXPECT_GE(seen.expected_fpr(), scalable_fpr(rate, count - std::min(few, count), 1000)) << count;
      EXPECT_LE(seen.expected_fpr(), scalable_fpr(rate, count + few, 1000)) << count;
    }
  }
}

TEST(ScalableRate, RisesWithTheKeysAndKeepsTheTarget) {
  for (const double rate : {0.5, 0.01, 1e-9}) {
    double before = scalable_fpr(rate, 0, 100);
    EXPECT_EQ(before, 0);
    for (std::uint64_t keys = 1; keys < 1'000'000; keys *= 3) {
      const double now = scalable_fpr(rate, keys, 100);
      EXPECT_GT(now, before) << keys;
      EXPECT_LT(now, rate) << keys;
      before = now;
    }
  }
}

TEST(ScalableRate, OfOneFullLayerIsTheLayersOwn) {
  const scalable_layer first = scalable_layer_at(0.01, 0, 5000);

  EXPECT_EQ(scalable_fpr(0.01, 5000, 5000), layouts::split_block512::expected_fpr(first.geometry, 5000));
}

// ---- what is refused ------------------------------------------------------------------------------------------------

TEST(ScalableFilter, RefusesInvalidProbabilitiesAndFirstLayers) {
  for (const double rate : {0.0, 1.0, -0.1, 1.5, std::nan("")}) {
    EXPECT_EQ(code_of([&] { integers seen(rate); }), errc::invalid_argument) << rate;
  }
  EXPECT_EQ(code_of([] { integers seen(0.01, {}, 0); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { integers seen(0.01, {}, (std::uint64_t{1} << 40) + 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { integers seen(1e-30); }), errc::too_large);  // the hash itself collides more often
  EXPECT_EQ(code_of([] { scalable_filter<std::string_view, murmur3> seen(0.01, murmur3{std::uint64_t{1} << 32}); }),
            errc::invalid_argument);
}

// ---- against models -------------------------------------------------------------------------------------------------

TEST(ScalableFilter, HasTheBitsAndAnswersOfItsDefinition) {
  integers seen(0.3, {}, 50);
  std::vector<std::uint8_t> answers;
  for (std::uint64_t key = 0; key < 5000; ++key) answers.push_back(seen.insert(key % 4000) ? 1 : 0);

  ASSERT_GT(seen.layers().size(), 5u);
  model plain(seen.layers());
  for (std::uint64_t key = 0; key < 5000; ++key) {
    ASSERT_EQ(plain.insert(mix{}(key % 4000)), answers[key] != 0) << key;
  }
  for (std::uint64_t key = 0; key < 20'000; ++key) ASSERT_EQ(plain.has(mix{}(key)), seen.may_contain(key)) << key;
}

TEST(ScalableFilter, BatchesActAsIfKeysCameOneByOneWhateverTheirSizeAndTheLayers) {
  // Many repeated keys, within a batch and across growth, and an FPR that causes many false positives.
  std::mt19937_64 random(1);
  std::vector<key_hash> hashes(12'000);
  for (key_hash& hash : hashes) hash = mix{}(random() % 9000);
  for (const std::uint64_t first : {1u, 7u, 64u, 1000u}) {
    SCOPED_TRACE(first);
    scalable_layers one_by_one(0.4, first);
    std::vector<std::uint8_t> expected;
    for (const key_hash& hash : hashes) expected.push_back(one_by_one.insert(hash) ? 1 : 0);
    for (const std::size_t size : {1u, 63u, 65u, 2048u, 5000u, 12'000u}) {
      SCOPED_TRACE(size);
      scalable_layers in_batches(0.4, first);
      std::vector<std::uint8_t> is_new(hashes.size(), 2);
      for (std::size_t at = 0; at < hashes.size(); at += size) {
        const std::size_t count = std::min(size, hashes.size() - at);
        in_batches.insert(hash_span::hashes({hashes.data() + at, count}), is_new.data() + at);
      }

      EXPECT_EQ(is_new, expected);
      expect_same_filter(in_batches, one_by_one);
    }
  }
}

TEST(ScalableFilter, ItGrowsForTheFirstNewKeyThatFindsItFullAndForNoOther) {
  scalable_layers seen(0.01, 100);
  std::vector<std::uint64_t> in;
  while (seen.layers().size() == 1) {
    in.push_back(in.size());
    seen.insert(mix{}(in.back()));
  }
  ASSERT_LE(seen.layers()[0].size, 100u);
  scalable_layers full(0.01, 100);
  for (std::size_t i = 0; i + 1 < in.size(); ++i) full.insert(mix{}(in[i]));
  ASSERT_EQ(full.layers().size(), 1u);
  std::vector<key_hash> again(5000);
  for (std::size_t i = 0; i < again.size(); ++i) again[i] = mix{}(i % (in.size() - 1));

  for (const key_hash& hash : again) EXPECT_FALSE(full.insert(hash));
  full.insert(hash_span::hashes(again));

  EXPECT_EQ(full.layers().size(), 1u);
  EXPECT_TRUE(full.insert(mix{}(in.back())));
  EXPECT_EQ(full.layers().size(), 2u);
}

TEST(ScalableFilter, ClearedItIsAsNew) {
  scalable_layers fresh(0.05, 30), used(0.05, 30);
  for (std::uint64_t key = 0; key < 5000; ++key) used.insert(mix{}(key + 77'777));

  used.clear();

  EXPECT_EQ(used.insert_count(), 0u);
  EXPECT_EQ(used.expected_fpr(), 0);
  for (std::uint64_t key = 0; key < 3000; ++key) EXPECT_EQ(used.insert(mix{}(key)), fresh.insert(mix{}(key)));
  expect_same_filter(used, fresh);
}

TEST(ScalableFilter, MovedItKeepsItsKeys) {
  integers from(0.01, {}, 10);
  from.insert(std::span<const std::uint64_t>(numbers(0, 1000)));

  integers to = std::move(from);
  to.insert(std::span<const std::uint64_t>(numbers(1000, 1000)));

  for (std::uint64_t key = 0; key < 2000; ++key) EXPECT_TRUE(to.may_contain(key)) << key;
}

// ---- memory ---------------------------------------------------------------------------------------------------------

TEST(ScalableFilter, AtOnePercentItTakes17BitsAKeyWhenFullAnd33JustGrownInMeasuredBytes) {
  scalable_layers seen(0.01);
  std::uint64_t key = 0;
  const std::size_t steps = is_long() ? 9 : 5;
  for (std::size_t layers = 1; layers <= steps; ++layers) {
    std::uint64_t before = 0;
    while (seen.layers().size() == layers) {
      before = seen.byte_size();
      // Up to its end no layer is left within 1000 keys of what it has.
      const scalable_layer newest = seen.layers().back();
      const std::uint64_t some = newest.size + 2000 < newest.capacity * 99 / 100 ? 1000 : 1;
      for (std::uint64_t i = 0; i < some; ++i) seen.insert(mix{}(key++));
    }
    std::uint64_t measured = 0;
    for (std::size_t i = 0; i <= layers; ++i) measured += seen.bytes_of(i).size();
    EXPECT_EQ(measured, seen.byte_size());
    EXPECT_LE(8.0 * static_cast<double>(before) / static_cast<double>(seen.insert_count() - 1), 17) << layers;
    EXPECT_LE(8.0 * static_cast<double>(measured) / static_cast<double>(seen.insert_count()), 33) << layers;
  }
}

TEST(ScalableFilter, TheWholeDoublesWheneverItGrows) {
  scalable_layers seen(0.01, 100);
  for (std::uint64_t key = 0; key < 10'000; ++key) seen.insert(mix{}(key));

  const std::vector<scalable_layer> layers = seen.layers();
  ASSERT_EQ(layers.size(), 8u);  // 100, 100, 200, ..., 6400: together 12,800
  std::uint64_t together = 100;
  for (std::size_t i = 1; i < layers.size(); together += layers[i++].capacity) {
    EXPECT_EQ(layers[i].capacity, together) << i;
  }
}

// "Huge" in this name excludes the test from sanitizer builds, which need extra memory.
TEST(HugeNeedOfMemory, WhereThereIsNoneAGrowingFilterStaysAsItWas) {
  const int status = bloomery_tests::status_of_child([] {
    scalable_layers seen(0.01);
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (rlim_t{16} << 20);
    const rlimit limit{most, RLIM_INFINITY};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) return 1;
    std::uint64_t key = 0;
    std::size_t layers = 0;
    std::uint64_t in = 0;
    try {
      for (; key < 50'000'000; ++key) {
        in = seen.insert_count();
        seen.insert(mix{}(key));
        if (key % 100 == 0) layers = seen.layers().size();
      }
      return 2;  // more than it can have
    } catch (const error& e) {
      if (e.code() != errc::too_large) return 3;
    }
    if (seen.layers().size() != layers || seen.insert_count() != in || seen.may_contain(mix{}(key))) return 4;
    if (code_of([&] { seen.insert(mix{}(key)); }) != errc::too_large) return 5;
    for (std::uint64_t i = 0; i < key; ++i) {
      if (!seen.may_contain(mix{}(i))) return 6;
    }
    if (seen.insert(mix{}(0))) return 7;  // a key that is in needs no room
    const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
    if (::setrlimit(RLIMIT_AS, &unlimited) != 0) return 8;
    return seen.insert(mix{}(key)) && seen.layers().size() == layers + 1 ? 0 : 9;
  });

  EXPECT_EQ(status, 0);
}

// ---- rates ----------------------------------------------------------------------------------------------------------

TEST(ScalableFilterStatistic, KeepsItsRateAfterEachStep) {
  for (const double rate : {0.5, 0.05, 0.002}) {
    SCOPED_TRACE(rate);
    integers seen(rate, {}, 200);
    std::uint64_t key = 0;
    for (std::size_t layers = 1; layers <= 9; ++layers) {
      SCOPED_TRACE(layers);
      while (seen.layers().size() == layers) seen.insert(key++);
      const std::uint64_t queries = is_long() ? 2'000'000 : 100'000;
      const std::uint64_t hits = hits_among(seen, std::uint64_t{1} << 40, queries);

      const double certified = seen.current_fpr();
      const double predicted = seen.expected_fpr();
      EXPECT_LE(predicted, rate);
      EXPECT_GT(chance_of(hits, queries, certified), 1e-5) << hits << " and " << certified;
      // One filter of few keys is a little off the mean of all filters, by its own chance.
      EXPECT_NEAR(certified / predicted, 1, 0.25);
      if (layers >= 4) {
        EXPECT_NEAR(certified / predicted, 1, 0.12);
      }
      for (const scalable_layer& layer : seen.layers()) {
        EXPECT_LE(layouts::split_block512::expected_fpr(layer.geometry, layer.capacity), layer.share);
        EXPECT_LE(layer.size, layer.capacity);
      }
    }
  }
}

// The mean over many filters, so that what one has by chance does not hide a bias.
TEST(ScalableFilterStatistic, TheMeanOfManyIsTheExactRate) {
  const int filters = is_long() ? 2000 : 150;
  std::uint64_t hits = 0;
  double predicted = 0;
  constexpr std::uint64_t queries = 2000;
  for (int i = 0; i < filters; ++i) {
    integers seen(0.3, mix(static_cast<std::uint64_t>(i) + 1), 64);
    seen.insert(std::span<const std::uint64_t>(numbers(0, 1500)));
    hits += hits_among(seen, std::uint64_t{1} << 40, queries);
    predicted += seen.expected_fpr() / filters;
  }

  EXPECT_GT(chance_of(hits, static_cast<std::uint64_t>(filters) * queries, predicted), 1e-4)
      << static_cast<double>(hits) / (static_cast<double>(filters) * static_cast<double>(queries)) << " and "
      << predicted;
}

// A key has the same bits of its line in every layer. Do layers err together? Of two full layers of a size, and of
// sizes as they follow each other, the errors of one are counted among the errors of the other.
TEST(ScalableFilterStatistic, LayersHaveIndependentFalsePositives) {
  constexpr double share = 0.05;
  const std::uint64_t queries = is_long() ? 20'000'000 : 1'000'000;
  for (const std::uint64_t second_keys : {3000u, 6000u, 24'000u}) {
    SCOPED_TRACE(second_keys);
    filter<std::uint64_t, layouts::split_block512> first(3000, share), second(second_keys, share);
    first.insert(std::span<const std::uint64_t>(numbers(0, 3000)));
    for (std::uint64_t key = 0, in = 0; in < second_keys; ++key) {
      if (first.may_contain(1'000'000 + key)) continue;  // the second layer would not receive it
      second.insert(1'000'000 + key);
      ++in;
    }
    std::uint64_t both = 0, in_first = 0, in_second = 0;
    for (std::uint64_t i = 0; i < queries; ++i) {
      const std::uint64_t key = (std::uint64_t{1} << 50) + i;
      const bool a = first.may_contain(key), b = second.may_contain(key);
      in_first += a ? 1 : 0;
      in_second += b ? 1 : 0;
      both += a && b ? 1 : 0;
    }
    const double of_first = static_cast<double>(in_first) / static_cast<double>(queries);
    const double of_second = static_cast<double>(in_second) / static_cast<double>(queries);
    // False positives of the first filter are missing in the second, so joint false positives are rarer than for
    // independent filters, by a share in the order of the FPR, 5%. They are never more frequent.
    const double joint = static_cast<double>(both) / static_cast<double>(queries);
    const double expected = of_first * of_second;
    const double deviation = std::sqrt(expected / static_cast<double>(queries));
    EXPECT_LT(joint, expected * 1.03 + 5 * deviation);
    EXPECT_GT(joint, expected * 0.85 - 5 * deviation);
  }
}

TEST(ScalableFilterStatistic, ExpectedLossesAreThoseThatHappen) {
  for (const double rate : {0.4, 0.02}) {
    SCOPED_TRACE(rate);
    const std::uint64_t filters = rate > 0.1 ? 40 : 100;
    double expected = 0;
    std::uint64_t lost = 0, all = 0;
    for (std::uint64_t i = 0; i < filters; ++i) {
      integers seen(rate, mix(i + 1), 100);
      const std::vector<std::uint64_t> keys = numbers(0, 1000 + 37 * i);
      seen.insert(std::span<const std::uint64_t>(keys));
      all += keys.size();
      lost += keys.size() - seen.insert_count();
      expected += seen.expected_losses();
    }

    EXPECT_GT(chance_of(lost, all, expected / static_cast<double>(all)), 1e-4) << lost << " and " << expected;
  }
}

TEST(ScalableFilter, AnEmptyOneHasNoFalsePositivesAndNoLosses) {
  const integers seen(0.1);

  EXPECT_EQ(seen.expected_fpr(), 0);
  EXPECT_EQ(seen.current_fpr(), 0);
  EXPECT_EQ(seen.expected_losses(), 0);
  EXPECT_FALSE(seen.may_contain(1));
  EXPECT_EQ(seen.target_fpr(), 0.1);
}

}  // namespace
