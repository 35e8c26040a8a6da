// Schemes, compared with the exact figures of the systems that they imitate, and their expected FPRs, compared with
// counted false positives.
#include <bloomery/scheme.hpp>

#include <bloomery/detail/bits.hpp>

#include "hash/fnv.hpp"
#include "hash/murmur3.hpp"
#include "schemes/scheme_filter.hpp"
#include "schemes/schemes.hpp"
#include "support/md5.hpp"
#include "support/scheme_sizes.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;
using cells = std::vector<std::uint64_t>;

// ---- the table ------------------------------------------------------------------------------------------------------

TEST(Schemes, AreFoundByName) {
  std::string names;
  for (const scheme& row : schemes()) {
    names += std::string(row.name) + ' ';
    EXPECT_EQ(find_scheme(row.name), &row);
    EXPECT_FALSE(row.origin.empty());
  }

  EXPECT_EQ(names,
            "guava guava32 spark spark2 dcso bits_and_blooms pharo python perl redisbloom datasketches bloom_filters "
            "bloomfilter_js leveldb rocksdb rocksdb_4 valkey_bloom ");
  EXPECT_EQ(find_scheme("fortran"), nullptr);
}

std::uint32_t most_probes_of(const scheme& row) {
  return row.name == "leveldb" || row.name.starts_with("rocksdb") ? 30 : 255;
}

TEST(Schemes, RefuseInvalidCapacitiesRatesAndGeometries) {
  for (const scheme& row : schemes()) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(code_of([&] { row.geometry_for(0, 0.01); }), errc::invalid_argument);
    for (const double p : {0.0, 1.0, -1.0, 2.0, std::numeric_limits<double>::quiet_NaN()}) {
      EXPECT_EQ(code_of([&] { row.geometry_for(1000, p); }), errc::invalid_argument) << p;
    }
    EXPECT_EQ(code_of([&] { row.check({0, 1}); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { row.check({512, 0}); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { row.check({512, 256}); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { row.check({~std::uint64_t{511}, 7}); }), errc::too_large);
    EXPECT_NO_THROW(row.check({512, 1}));
    EXPECT_NO_THROW(row.check({512, most_probes_of(row)}));
    EXPECT_EQ(code_of([&] { row.check({512, most_probes_of(row) + 1}); }), errc::invalid_argument);
  }
}

TEST(Schemes, ChooseSizesThatTheyAcceptThemselves) {
  for (const scheme& row : schemes()) {
    for (const std::uint64_t n : {1u, 2u, 10u, 1000u, 1'000'000u}) {
      for (const double p : {0.9, 0.5, 0.03, 1e-4, 1e-9})
        EXPECT_NO_THROW(row.check(row.geometry_for(n, p))) << row.name;
    }
  }
}

TEST(Schemes, RefuseSizesThatTheirSystemCannotAddressWithAHint) {
  EXPECT_EQ(code_of([] { find_scheme("guava")->check({100, 7}); }), errc::invalid_argument);  // not whole words
  EXPECT_EQ(code_of([] { find_scheme("guava")->check({std::uint64_t{1} << 37, 7}); }), errc::too_large);
  EXPECT_EQ(code_of([] { find_scheme("leveldb")->check({100, 7}); }), errc::invalid_argument);  // not whole bytes
  EXPECT_EQ(code_of([] { find_scheme("leveldb")->geometry_for(1'000'000'000, 0.01); }), errc::too_large);
  EXPECT_EQ(code_of([] { find_scheme("leveldb")->geometry_for(1, 1e-300); }), errc::too_large);
  EXPECT_EQ(code_of([] { find_scheme("python")->check({(std::uint64_t{1} << 31) + 1, 7}); }), errc::too_large);
  EXPECT_EQ(code_of([] { find_scheme("perl")->check({(std::uint64_t{1} << 32) + 1, 7}); }), errc::too_large);
  EXPECT_EQ(code_of([] { find_scheme("bloom_filters")->check({(std::uint64_t{1} << 32) + 1, 7}); }), errc::too_large);
  EXPECT_EQ(code_of([] { find_scheme("bloom_filters")->geometry_for(1'000'000'000, 0.01); }), errc::too_large);
  EXPECT_EQ(code_of([] { find_scheme("bloom_filters")->geometry_for(100, 1e-100); }), errc::too_large);  // 333 probes
  EXPECT_EQ(code_of([] {
              find_scheme("bloomfilter_js")->check({100, 7});
            }),
            errc::invalid_argument);  // not whole words
  EXPECT_EQ(code_of([] { find_scheme("bloomfilter_js")->check({(std::uint64_t{1} << 32) + 32, 7}); }), errc::too_large);
  try {
    find_scheme("python")->geometry_for(1'000'000'000, 0.01);
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::too_large);
    EXPECT_NE(e.text().hint.words(), "");
  }
}

TEST(Schemes, KeepEveryCellWithinTheFiltersBytes) {
  for (const scheme& row : schemes()) {
    for (const std::uint64_t bits : {512u, 1536u, 6656u, 66'048u}) {
      scheme_filter filter(row.name, {bits, most_probes_of(row)});
      for (int i = 0; i < 100; ++i) {
        for (const std::uint64_t cell : filter.positions("key" + std::to_string(i))) ASSERT_LT(cell, bits) << row.name;
      }
    }
  }
  for (const scheme& row : schemes()) {
    if (bloomery_tests::has_whole_words(row)) continue;
    for (const std::uint64_t bits : {1u, 7u, 9u, 730u, 999u}) {
      scheme_filter filter(row.name, {bits, 10});
      for (int i = 0; i < 100; ++i) {
        for (const std::uint64_t cell : filter.positions("key" + std::to_string(i))) {
          ASSERT_LT(cell >> 3, bytes_for(bits)) << row.name;
        }
      }
    }
  }
}

// ---- guava ----------------------------------------------------------------------------------------------------------

TEST(Guava, SizesAsTheJavaExample) {
  EXPECT_EQ(find_scheme("guava")->geometry_for(10'000, 0.0005), (geometry{158'208, 11}));
}

TEST(Guava, SetsTheBitsOfItsFileOfOneKey) {
  scheme_filter filter("guava", 10, 0.01);

  filter.insert("hello");

  EXPECT_EQ(filter.positions("hello"), (cells{2, 27, 52, 77, 102, 127, 24}));
  EXPECT_EQ(filter.hex(), "04000009000010000020000040000080");  // words 0010000009000004 8000004000002000
}

TEST(Guava, SetsTheBitsOfItsFileOfAThousandKeys) {
  scheme_filter filter("guava", 1000, 0.03);

  for (int i = 0; i < 1000; ++i) filter.insert("key-" + std::to_string(i));

  // Guava's own estimate of the rate: (ones / m)^k.
  const double fill = static_cast<double>(filter.ones()) / (64 * 115);
  EXPECT_NEAR(std::pow(fill, 5), 0.0287841742, 1e-9);  // one bit more or less is 4e-5
}

TEST(Guava, HasTheOffsetsOfTheRedisExample) {
  const std::string key = bloomery_tests::md5_hex_of_number(0);

  const scheme_filter filter("guava", 10'000, 0.0005);

  EXPECT_EQ(key, "f1d3ff8443297732862df21dc4e57262");
  EXPECT_EQ(filter.positions(key),
            (cells{105758, 93390, 129662, 7726, 153566, 31630, 67902, 55534, 91806, 128078, 115710}));
}

TEST(Guava, IsHalfFullAfterThe9958thKeyOfTheRedisExample) {
  scheme_filter filter("guava", 10'000, 0.0005);

  for (std::uint32_t i = 0; i < 9957; ++i) filter.insert(bloomery_tests::md5_hex_of_number(i));
  const std::uint64_t before = filter.ones();
  filter.insert(bloomery_tests::md5_hex_of_number(9957));

  EXPECT_LE(2 * before, 158'208u);
  EXPECT_GT(2 * filter.ones(), 158'208u);
}

TEST(Guava, AnswersWronglyForTheLastOfThreeKeysOnceThreeTimesFull) {
  scheme_filter filter("guava", 10'000, 0.0005);

  for (std::uint32_t i = 0; i < 30'000; ++i) filter.insert(bloomery_tests::md5_hex_of_number(i));

  EXPECT_FALSE(filter.may_contain(bloomery_tests::md5_hex_of_number(99'999)));
  EXPECT_TRUE(filter.may_contain(bloomery_tests::md5_hex_of_number(9999)));
  EXPECT_TRUE(filter.may_contain("abcdefghijklmnopqrstuvwxyz123456"));
}

// ---- guava32 and spark ----------------------------------------------------------------------------------------------

TEST(Guava32, SetsTheBitsOfItsFileOfOneKey) {
  EXPECT_EQ(scheme_filter("guava32", {128, 3}).positions("hello"), (cells{53, 23, 100}));
}

TEST(Spark, SetsTheBitsOfTheFilesOfOneKey) {
  EXPECT_EQ(scheme_filter("spark", 10, 0.01).positions("hello"), (cells{121, 13, 107, 27, 34, 86, 48}));
  EXPECT_EQ(scheme_filter("spark2", 10, 0.01).positions("hello"), (cells{6, 127, 120, 113, 106, 99, 92}));
}

// Vectors of Spark's Murmur3_x86_32.hashUnsafeBytes: the hash of the key with seed 0, and with that hash as the seed.
TEST(Spark, MixesTheBytesOfTheEndOneByOne) {
  const struct {
    std::string_view key;
    std::uint32_t first, second;
  } vectors[] = {{"", 0, 0},
                 {"a", 0x2B038801, 0x8F3E25AD},
                 {"abc", 0xCD632798, 0x8A5A436E},
                 {"abcd", 0x43ED676A, 0x842337AC},
                 {"hello", 0xB21F6E00, 0x92DDC9F9},
                 {"\xC3\xA9", 0xF6D63F31, 0x32A1E207},
                 {{"\x2A\0\0\0\0\0\0\0", 8}, 0x6F8F913E, 0xE046FF83}};
  for (const auto& [key, first, second] : vectors) {
    EXPECT_EQ(hashes::murmur3_of_spark(key, 0), first) << key;
    EXPECT_EQ(hashes::murmur3_of_spark(key, first), second) << key;
    if (key.size() % 4 != 0) continue;
    EXPECT_EQ(hashes::murmur3_x86_32(key, 7), hashes::murmur3_of_spark(key, 7)) << key;
  }
}

// ---- dcso -----------------------------------------------------------------------------------------------------------

// http://www.isthe.com/chongo/tech/comp/fnv/ has the first two vectors.
TEST(Dcso, HashesByFnv1) {
  EXPECT_EQ(hashes::fnv1_64(""), 0xCBF29CE484222325);
  EXPECT_EQ(hashes::fnv1_64("a"), 0xAF63BD4C8601B7BE);
}

TEST(Dcso, RoundsTheSizeDown) {
  EXPECT_EQ(find_scheme("dcso")->geometry_for(300, 0.01), (geometry{2875, 7}));
  EXPECT_EQ(find_scheme("bits_and_blooms")->geometry_for(300, 0.01), (geometry{2876, 7}));
}

// ---- pharo ----------------------------------------------------------------------------------------------------------

// Its numbers: bits counted from 1, from the top of each byte.
cells pharo_bits(std::string_view key) {
  cells bits = scheme_filter("pharo", 10, 0.1).positions(key);
  for (std::uint64_t& bit : bits) bit = (bit ^ 7) + 1;
  return bits;
}

TEST(Pharo, SetsTheBitsOfTheTutorialsCities) {
  EXPECT_EQ(pharo_bits("Madrid"), (cells{18, 9, 48, 39}));
  EXPECT_EQ(pharo_bits("Barcelona"), (cells{48, 42, 36, 30}));
  EXPECT_EQ(pharo_bits("Berlin"), (cells{27, 30, 33, 36}));
  EXPECT_EQ(pharo_bits("Roma"), (cells{36, 36, 36, 36}));
}

TEST(Pharo, HasTheTutorialsBytesAnswersAndFalsePositive) {
  scheme_filter filter("pharo", 10, 0.1);

  filter.insert("Madrid");
  filter.insert("Barcelona");

  EXPECT_EQ(filter.hex(), "008040041241");
  EXPECT_TRUE(filter.may_contain("Madrid"));
  EXPECT_TRUE(filter.may_contain("Barcelona"));
  EXPECT_TRUE(filter.may_contain("Roma"));
  for (const std::string_view absent : {"Berlin", "London", "Paris", "Lisboa", "Sevilla", "Valencia", "Bilbao", "Wien",
                                        "Praha", "Oslo", "Tokyo", "Beijing"}) {
    EXPECT_FALSE(filter.may_contain(absent)) << absent;
  }
}

TEST(Pharo, HasTwentyEightBitsSetByTheNumbersOneToTen) {
  scheme_filter filter("pharo", 10, 0.1);

  for (int i = 1; i <= 10; ++i) filter.insert(std::to_string(i));

  EXPECT_EQ(filter.ones(), 28u);
}

// ---- python ---------------------------------------------------------------------------------------------------------

TEST(Python, HasTheArticlesBitsAndFalsePositives) {
  scheme_filter filter("python", {100, 10});
  const std::vector<std::string_view> animals = {
      "dog",       "cat", "giraffe",  "fly",  "mosquito", "horse",   "eagle",  "bird", "bison",    "boar",
      "butterfly", "ant", "anaconda", "bear", "chicken",  "dolphin", "donkey", "crow", "crocodile"};

  for (const std::string_view animal : animals) filter.insert(animal);

  EXPECT_EQ(filter.ones(), 85u);
  for (const std::string_view animal : animals) EXPECT_TRUE(filter.may_contain(animal)) << animal;
  std::string false_positives;
  for (const std::string_view other :
       {"badger", "cow",  "pig",  "sheep", "bee",      "wolf", "fox",    "whale", "shark",   "fish",
        "turkey", "duck", "dove", "deer",  "elephant", "frog", "falcon", "goat",  "gorilla", "hawk"}) {
    if (filter.may_contain(other)) false_positives += std::string(other) + ' ';
  }
  EXPECT_EQ(false_positives, "sheep shark fish elephant ");
}

TEST(Python, TakesTheHashAsSignedAndNumbersBitsFromTheTopOfAByte) {
  // murmur3_x86_32("", seed) is 0 for seed 0, 0x514E28B7 = 1364076727 for seed 1.
  const scheme_filter filter("python", {1000, 2});

  EXPECT_EQ(filter.positions(""), (cells{0 ^ 7, 727 ^ 7}));
  // murmur3_x86_32("Madrid", 0) is 0xDA3791CA: as a signed number -633892406, and 594 modulo 1000.
  EXPECT_EQ(filter.positions("Madrid")[0], 594u ^ 7u);
}

// ---- perl -----------------------------------------------------------------------------------------------------------

TEST(Perl, SizesByTheShortestLength) { EXPECT_EQ(find_scheme("perl")->geometry_for(1000, 0.01), (geometry{9593, 7})); }

TEST(Perl, FoldsTheDigestOfKeyAndSalt) {
  // Key "a", first salt "0":  printf a0 | sha1sum
  constexpr std::uint32_t folded = 0x40B25EAC ^ 0x438260C9 ^ 0xAD4E3142 ^ 0xADC38A8D ^ 0x0885E5F3;
  const scheme_filter filter("perl", {9593, 1});

  EXPECT_EQ(filter.positions("a"), (cells{folded % 9593}));
}

TEST(Perl, HasAnotherFilterForEverySeed) {
  const scheme& perl = *find_scheme("perl");
  const geometry size{9593, 7};
  cells plain(7), seeded(7), spelled(7);

  perl.positions("key", size, {}, plain.data());
  perl.positions("key", size, {.seed = 42}, seeded.data());
  perl.positions("key42.", size, {}, spelled.data());  // key . "42." . i either way

  EXPECT_NE(seeded, plain);
  EXPECT_EQ(seeded, spelled);
}

// ---- rates ----------------------------------------------------------------------------------------------------------

// The share of absent keys that a filter of n keys reports.
double measured_rate(std::string_view name, const geometry& size, std::uint64_t n, std::uint64_t queries) {
  scheme_filter filter(name, size);
  std::uint64_t reported = 0;

  for (std::uint64_t i = 0; i < n; ++i) filter.insert("in-" + std::to_string(i));
  for (std::uint64_t i = 0; i < queries; ++i) reported += filter.may_contain("out-" + std::to_string(i));
  return static_cast<double>(reported) / static_cast<double>(queries);
}

TEST(SchemeRates, AreWhatIsMeasured) {
  constexpr std::uint64_t n = 20'000;
  constexpr std::uint64_t queries = 200'000;
  for (const scheme& row : schemes()) {
    const geometry size = row.geometry_for(n, 0.02);
    const double in_theory = row.expected_fpr(size, n);

    const double measured = measured_rate(row.name, size, n, queries);

    // Five standard deviations of the queries, and 1% for the chance of this filter's fill.
    const double bound = 5 * std::sqrt(in_theory * (1 - in_theory) / queries) + 0.01 * in_theory;
    EXPECT_NEAR(measured, in_theory, bound) << row.name;
  }
}

TEST(SchemeRates, RiseFromZeroToOneAsKeysComeIn) {
  for (const scheme& row : schemes()) {
    for (const std::uint64_t n : {10u, 1000u}) {
      const geometry size = row.geometry_for(n, 0.01);
      double before = 0;
      EXPECT_EQ(row.expected_fpr(size, 0), 0) << row.name;
      for (std::uint64_t keys = 1; keys < 1000 * n; keys += 1 + keys / 3) {
        const double rate = row.expected_fpr(size, keys);
        EXPECT_GE(rate, before) << row.name << ", " << keys;
        EXPECT_LE(rate, 1) << row.name << ", " << keys;
        before = rate;
      }
      EXPECT_GT(before, 0.999) << row.name;
    }
  }
}

// The tutorial's lesson: 16-bit halves ruin a large filter.
TEST(SchemeRates, OfPharoIs97PercentInsteadOfOneForAMillionKeys) {
  const scheme& pharo = *find_scheme("pharo");
  const geometry size = pharo.geometry_for(1'000'000, 0.01);

  const double in_theory = pharo.expected_fpr(size, 1'000'000);
  const double measured = measured_rate("pharo", size, 1'000'000, 200'000);

  EXPECT_NEAR(in_theory, 0.97, 0.005);
  EXPECT_NEAR(measured, in_theory, 0.002);
}

TEST(SchemeRates, OfPharoFollowTheMeasureWhereFewKeysMakeAllFalsePositives) {
  const scheme& pharo = *find_scheme("pharo");
  struct {
    std::uint64_t n;
    double p;
    int filters;
    double bound;  // relative
  } const cases[] = {{10, 0.1, 2000, 0.1}, {100, 0.03, 300, 0.05}, {1000, 1e-6, 20, 0.25}};
  for (const auto& [n, p, filters, bound] : cases) {
    const geometry size = pharo.geometry_for(n, p);
    const double in_theory = pharo.expected_fpr(size, n);
    std::uint64_t reported = 0, queries = 0;

    std::vector<std::uint64_t> positions(size.probes);
    for (int round = 0; round < filters; ++round) {
      scheme_filter filter("pharo", size);
      const std::string name = std::to_string(round) + '-';
      for (std::uint64_t i = 0; i < n; ++i) filter.insert("in-" + name + std::to_string(i));
      for (std::uint64_t i = 0; i < 1000 + 50 * n; ++i, ++queries) {
        reported += filter.may_contain("out-" + name + std::to_string(i));
      }
    }

    const double measured = static_cast<double>(reported) / static_cast<double>(queries);
    EXPECT_NEAR(in_theory / measured, 1, bound) << n << " keys at " << p;
  }
}

TEST(SchemeRates, OfGuavaCountWhatDoubleHashingAdds) {
  const scheme& guava = *find_scheme("guava");
  const geometry size = guava.geometry_for(300, 1e-6);
  std::uint64_t reported = 0, queries = 0;

  for (int round = 0; round < 20; ++round) {
    scheme_filter filter("guava", size);
    const std::string name = std::to_string(round) + '-';
    for (int i = 0; i < 300; ++i) filter.insert("in-" + name + std::to_string(i));
    for (int i = 0; i < 50'000; ++i, ++queries) reported += filter.may_contain("out-" + name + std::to_string(i));
  }

  const double in_theory = guava.expected_fpr(size, 300);  // 25 times the target, 1e-6
  const double expected = in_theory * static_cast<double>(queries);
  EXPECT_NEAR(static_cast<double>(reported), expected, 5 * std::sqrt(expected));
}

TEST(SchemeRates, OfSmallFiltersCountWhatDoubleHashingAdds) {
  for (const std::string_view name : {"guava", "guava32", "spark", "spark2", "bits_and_blooms"}) {
    const geometry size{960, 7};
    const double in_theory = find_scheme(name)->expected_fpr(size, 100);

    const double measured = measured_rate_of_small_filters(name, size, 100, 400, 2000);

    EXPECT_NEAR(measured / in_theory, 1, 0.07) << name;
  }
}

// Positions of dcso fall into 2^a groups if 2^a divides the number of bits: 4 groups of 2397 bits, 64 of 15, 8192 of 1.
TEST(SchemeRates, OfDcsoCountItsGroupsOfBits) {
  const struct {
    geometry size;
    int keys;
    double times;  // the rate of independent probes, at least
    double bound;  // relative
  } cases[] = {{{9588, 7}, 1000, 1.01, 0.05}, {{9584, 7}, 1000, 1.04, 0.05}, {{9600, 7}, 1000, 1.12, 0.06},
               {{960, 7}, 100, 1.9, 0.07},    {{8192, 7}, 850, 20, 0.03},    {{64, 2}, 20, 1.4, 0.08}};
  const scheme& dcso = *find_scheme("dcso");
  for (const auto& [size, keys, times, bound] : cases) {
    const double in_theory = dcso.expected_fpr(size, static_cast<std::uint64_t>(keys));

    const double measured = measured_rate_of_small_filters("dcso", size, keys, 200, 2000);

    EXPECT_NEAR(in_theory / measured, 1, bound) << size.bits << " bits";
    const double odd = dcso.expected_fpr({size.bits - 1, size.probes}, static_cast<std::uint64_t>(keys));
    EXPECT_GT(in_theory, times * odd) << size.bits << " bits";
  }
}

TEST(SchemeRates, OfTheBitsOfDcsoFollowItsGroups) {
  const scheme& dcso = *find_scheme("dcso");
  const geometry size{960, 7};
  double rates = 0;
  double found = 0;
  constexpr int filters = 100;
  constexpr int queries = 5000;
  for (int round = 0; round < filters; ++round) {
    scheme_filter filter("dcso", size);
    for (int i = 0; i < 100; ++i) filter.insert("in-" + std::to_string(round) + '-' + std::to_string(i));
    rates += dcso.current_fpr(size, {filter.ones(), 0, filter.bytes}) / filters;
    for (int i = 0; i < queries; ++i)
      found += filter.may_contain("out-" + std::to_string(round) + '-' + std::to_string(i)) ? 1 : 0;
  }
  const double measured = found / (1.0 * filters * queries);

  EXPECT_NEAR(rates, measured, 5 * std::sqrt(measured / (1.0 * filters * queries)) + 0.02 * measured);
  EXPECT_GT(rates, 0.019);
}

// Without the addition, the expected FPR would be 1e-6.
TEST(SchemeRates, OfSpark2CountStepsThatReturnAfterFewerThanKProbes) {
  const geometry size{8640, 20};
  const double in_theory = find_scheme("spark2")->expected_fpr(size, 300);

  const double measured = measured_rate_of_small_filters("spark2", size, 300, 20, 50'000);

  EXPECT_GT(in_theory, 1e-4);
  EXPECT_NEAR(measured / in_theory, 1, 0.5);
}

// The fault of Spark's filters beyond 2^31 bits: more bits do not lower the FPR.
TEST(SchemeRates, OfGuava32AndSparkIgnoreBitsThatNoKeyReaches) {
  const geometry large{std::uint64_t{1} << 34, 7};
  const geometry reached{std::uint64_t{1} << 31, 7};
  for (const std::string_view name : {"guava32", "spark"}) {
    const scheme& rule = *find_scheme(name);
    const double of_large = rule.expected_fpr(large, 300'000'000);
    EXPECT_NEAR(of_large / rule.expected_fpr(reached, 300'000'000), 1, 1e-6) << name;
    EXPECT_GT(of_large, 1000 * find_scheme("guava")->expected_fpr(large, 300'000'000)) << name;
    std::uint64_t highest = 0;
    std::uint64_t found[7];
    for (int i = 0; i < 100'000; ++i) {
      rule.positions(std::to_string(i), large, {}, found);
      highest = std::max(highest, *std::max_element(std::begin(found), std::end(found)));
    }
    EXPECT_LT(highest, std::uint64_t{1} << 31) << name;
    EXPECT_GT(highest, (std::uint64_t{1} << 31) - (1 << 20)) << name;
    const bit_range favoured = rule.favoured(large);
    EXPECT_EQ(favoured.first, 0u);
    EXPECT_EQ(favoured.count, std::uint64_t{1} << 31);
    const std::uint64_t half = std::uint64_t{1} << 30;
    EXPECT_NEAR(rule.current_fpr(large, {half, half, {}}), std::pow(0.5, 7), 1e-6) << name;
  }
}

TEST(SchemeRates, OfPharoNeedNoMemoryForBitsThatNoKeyReaches) {
  const double rate = find_scheme("pharo")->expected_fpr({std::uint64_t{1} << 60, 7}, 1000);

  EXPECT_GT(rate, 0);
  EXPECT_LT(rate, 1e-4);
}

TEST(SchemeRates, OfPerlCountTheBitsThat32BitHashesFavour) {
  const scheme& perl = *find_scheme("perl");
  const std::uint64_t n = 300'000'000;
  const auto textbook = [&](double bits) { return std::pow(-std::expm1(-7.0 * static_cast<double>(n) / bits), 7); };

  const double even = perl.expected_fpr({std::uint64_t{1} << 31, 7}, n);
  const double uneven = perl.expected_fpr({3'000'000'000, 7}, n);

  EXPECT_NEAR(even, textbook(0x1p31), 1e-6);  // 2^31 divides 2^32
  // 1'294'967'296 bits are hit by two hashes, the others by one.
  const double favoured = 1'294'967'296;
  const auto fill = [&](double hashes) { return -std::expm1(-7.0 * static_cast<double>(n) * hashes / 0x1p32); };
  const double met = (favoured * 2 * fill(2) + (3e9 - favoured) * fill(1)) / 0x1p32;
  EXPECT_NEAR(uneven, std::pow(met, 7), 1e-6);
  EXPECT_GT(uneven, 1.3 * textbook(3e9));
}

}  // namespace
}  // namespace bloomery
