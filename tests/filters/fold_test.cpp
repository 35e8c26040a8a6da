// Folded filters, compared byte for byte with filters of the same keys that were built at the smaller size.
#include <bloomery/fold.hpp>

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/bits.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/params.hpp>
#include <bloomery/secret.hpp>

#include "registry/tables.hpp"
#include "support/test.hpp"

#include <bit>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using byte_array = std::vector<std::uint8_t>;

std::uint64_t unit_bits(const layout_row& layout) { return std::max<std::uint64_t>(layout.block_bits, 1); }

// Blocks, or for classic bits, to a number that can be halved often and is no power of 2.
std::vector<std::uint64_t> unit_counts(const layout_row& layout) {
  if (layout.block_bits == 0) return {64, 64 * 5, 64 * 77, 64 * 1001, 128 * 3, 2 * 9, 4 * 9, 2, 6, 10, 12'345 * 8};
  return {64, 64 * 3, 2, 6, 12, 8 * 7};
}

std::vector<std::uint32_t> probes_of(const layout_row& layout) {
  if (layout.name == "split_block" || layout.name == "split_block512") return {8};
  return {1, 7};
}

// A filter of these params with n keys.
any_filter filled(const params& p, std::size_t n) {
  any_filter filter(p);
  if (p.keys == key_kind::u64le) {
    std::vector<std::uint64_t> keys(n);
    std::iota(keys.begin(), keys.end(), 1000);
    filter.insert(keys);
    return filter;
  }
  for (std::size_t i = 0; i < n; ++i) filter.insert("key-" + std::to_string(i));
  return filter;
}

TEST(Fold, MakesTheFilterThatItsKeysWouldHaveMadeAtThatSize) {
  for (const layout_row& layout : layout_rows()) {
    for (const hash_row& hash : hash_rows()) {
      for (const key_kind keys : {key_kind::bytes, key_kind::u64le}) {
        if (keys == key_kind::bytes && !hash.takes_bytes) continue;
        for (const std::uint64_t units : unit_counts(layout)) {
          for (const std::uint32_t probes : probes_of(layout)) {
            const params p = {.layout = std::string(layout.name),
                              .hash = std::string(hash.name),
                              .keys = keys,
                              .geometry = {units * unit_bits(layout), probes},
                              .capacity = 1000,
                              .target_fpr = 0.01,
                              .secret = hash.name == siphash::name ? std::optional(secret_key{1, 2}) : std::nullopt};
            const std::uint64_t n = std::clamp<std::uint64_t>(p.geometry.bits / 32 / probes, 1, 3000);
            const any_filter large = filled(p, n);
            for (unsigned times = 0; times <= std::min(6u, times_foldable(p)); ++times) {
              SCOPED_TRACE(testing::Message() << layout.name << ", " << hash.name << ", " << name_of(keys) << ", "
                                              << p.geometry.bits << " bits, k " << probes << ", " << times << " times");
              const params small = folded(p, times);
              const any_filter expected = filled(small, n);

              const heap_storage actual = fold(p, large.bytes(), times);

              ASSERT_EQ(small.geometry.bits << times, p.geometry.bits);
              ASSERT_EQ(byte_array(actual.data(), actual.data() + actual.size()),
                        byte_array(expected.bytes().begin(), expected.bytes().end()));
            }
          }
        }
      }
    }
  }
}

// The definition of a fold, bit by bit, for arbitrary bits, also with bits set beyond m, as in a hostile file.
TEST(Fold, OfAnyBitsJoinsNeighbours) {
  std::mt19937_64 random(1);
  for (const std::uint64_t m :
       {2u, 4u, 6u, 8u, 10u, 12u, 16u, 36u, 62u, 64u, 66u, 100u, 126u, 128u, 130u, 1000u, 1144u}) {
    for (const double density : {0.0, 0.1, 0.5, 1.0}) {
      SCOPED_TRACE(testing::Message() << m << " bits, density " << density);
      const params p = {.layout = "classic", .hash = "xxh3", .geometry = {m, 3}};
      byte_array bytes(bytes_for(m));
      for (std::uint64_t x = 0; x < 8 * bytes.size(); ++x) {
        if (x >= m || std::bernoulli_distribution(density)(random)) set_bit(bytes.data(), x);
      }
      for (unsigned times = 1; times <= times_foldable(p); ++times) {
        byte_array expected(bytes_for(m >> times));
        for (std::uint64_t x = 0; x < m; ++x) {
          if (test_bit(bytes.data(), x)) set_bit(expected.data(), x >> times);
        }

        const heap_storage actual = fold(p, bytes, times);

        ASSERT_EQ(byte_array(actual.data(), actual.data() + actual.size()), expected) << times << " times";
      }
    }
  }
}

TEST(Fold, SeveralTimesAtOnceIsOneTimeAfterAnother) {
  std::mt19937_64 random(2);
  for (const layout_row& layout : layout_rows()) {
    for (const std::uint64_t units : {64u, 96u, 72u, 40u, 24u, 8u, 6u, 2u, 14u, 1000u}) {
      const params p = {.layout = std::string(layout.name), .hash = "xxh3", .geometry = {units * unit_bits(layout), 8}};
      byte_array bytes(bytes_for(p.geometry.bits));
      for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random() & random() & random());
      params half = p;
      byte_array expected = bytes;
      for (unsigned times = 1; times <= times_foldable(p); ++times) {
        SCOPED_TRACE(testing::Message() << layout.name << ", " << p.geometry.bits << " bits, " << times << " times");
        const heap_storage next = fold(half, expected, 1);
        half = folded(half, 1);
        expected.assign(next.data(), next.data() + next.size());

        const heap_storage actual = fold(p, bytes, times);

        ASSERT_EQ(folded(p, times), half);
        ASSERT_EQ(byte_array(actual.data(), actual.data() + actual.size()), expected);
      }
    }
  }
}

TEST(Fold, ChangesNothingButTheBits) {
  const params p = {.layout = "blocked_page",
                    .hash = "murmur3",
                    .keys = key_kind::u64le,
                    .seed = 7,
                    .geometry = {48 * 32'768, 9},
                    .capacity = 12'345,
                    .target_fpr = 0.02};

  params expected = p;
  expected.geometry.bits = 6 * 32'768;

  EXPECT_EQ(folded(p, 3), expected);
  EXPECT_EQ(folded(p, 0), p);
}

TEST(TimesFoldable, IsHowOftenTwoDividesTheBlocksOrClassicsBits) {
  const auto times = [](const char* layout, std::uint64_t bits) {
    return times_foldable({.layout = layout, .hash = "xxh3", .geometry = {bits, 8}});
  };

  EXPECT_EQ(times("split_block", 256), 0u);
  EXPECT_EQ(times("split_block", 256 * 6), 1u);
  EXPECT_EQ(times("split_block512", 512 * 64), 6u);
  EXPECT_EQ(times("blocked", 512 * 7), 0u);
  EXPECT_EQ(times("blocked_page", 32'768 * 40), 3u);
  EXPECT_EQ(times("blocked_page", 32'768), 0u);
  EXPECT_EQ(times("classic", 1), 0u);
  EXPECT_EQ(times("classic", 1001), 0u);
  EXPECT_EQ(times("classic", 1000), 3u);
  EXPECT_EQ(times("classic", std::uint64_t{1} << 63), 63u);
  EXPECT_EQ(times("nonesuch", 1024), 0u);
  EXPECT_EQ(times_foldable({.scheme = "guava", .geometry = {6400, 3}}), 0u);
}

TEST(FoldableGeometry, IsTheNextThatCanBeHalvedSoOften) {
  for (const layout_row& layout : layout_rows()) {
    for (const std::uint64_t units : {1u, 2u, 3u, 63u, 64u, 65u, 1000u}) {
      for (const std::uint64_t multiple : {1u, 2u, 8u, 64u}) {
        params p = {.layout = std::string(layout.name), .hash = "xxh3", .geometry = {units * unit_bits(layout), 8}};

        const geometry g = foldable_geometry(p, multiple);

        const std::uint64_t more = g.bits / unit_bits(layout) - units;
        p.geometry = g;
        EXPECT_EQ(g.bits % unit_bits(layout), 0u);
        EXPECT_EQ(g.probes, 8u);
        EXPECT_LT(more, multiple) << layout.name << ", " << units << " to a multiple of " << multiple;
        EXPECT_GE(times_foldable(p), static_cast<unsigned>(std::countr_zero(multiple)));
      }
    }
  }
}

TEST(Fold, RefusesSchemesTooManyTimesAndOtherBytes) {
  const params guava = {.scheme = "guava", .geometry = {6400, 3}};
  const params line = {.layout = "split_block512", .hash = "xxh3", .geometry = {512 * 12, 8}};
  const byte_array of_guava(800), of_line(64 * 12);

  EXPECT_EQ(code_of([&] { fold(guava, of_guava, 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { foldable_geometry(guava, 2); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              foldable_geometry({.layout = "nonesuch", .geometry = {64, 3}}, 2);
            }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { fold(line, of_line, 3); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { folded(line, 64); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { fold(line, of_guava, 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { fold(line, of_line, 2); }), std::nullopt);
  EXPECT_EQ(code_of([&] { foldable_geometry(line, 0); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { foldable_geometry(line, 3); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { foldable_geometry(line, std::uint64_t{1} << 63); }), errc::too_large);
}

// The FPR of one filter deviates from the formula by the chance of its fill: here by less than 1%, one standard
// deviation.
TEST(Fold, HasTheRateOfTheFormulaAtHalfTheSize) {
  constexpr std::uint64_t n = 200'000;
  for (const layout_row& layout : layout_rows()) {
    const params p = {.layout = std::string(layout.name),
                      .hash = "mix",
                      .keys = key_kind::u64le,
                      .geometry = {std::uint64_t{1} << 23, 8}};
    any_filter large(p);
    std::vector<std::uint64_t> keys(n);
    std::iota(keys.begin(), keys.end(), 0);
    large.insert(keys);
    for (const unsigned times : {0u, 1u, 2u, 3u}) {
      const params small = folded(p, times);

      const heap_storage bytes = fold(p, large.bytes(), times);

      const double certified = measure_fill(small, {bytes.data(), bytes.size()}).current_fpr;
      EXPECT_NEAR(certified / expected_fpr(small, n), 1, 0.05) << layout.name << ", " << times << " times";
    }
  }
}

}  // namespace
}  // namespace bloomery
