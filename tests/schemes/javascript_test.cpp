// The schemes of JavaScript libraries, compared with the bits of the npm packages bloom-filters 3.0.4 and bloomfilter
// 1.1.0, and their FPR, compared with counted false positives. tests/command/test_formats_peers.py runs the packages.
#include <bloomery/any_filter.hpp>
#include <bloomery/scheme.hpp>

#include "hash/fnv.hpp"
#include "hash/utf16.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;
using cells = std::vector<std::uint64_t>;

cells cells_of(std::string_view scheme, const geometry& size, std::string_view key) {
  return any_filter(params{.scheme = std::string(scheme), .geometry = size}).cells(key);
}

TEST(BloomFilters, SetTheBitsOfThePackage) {
  EXPECT_EQ(find_scheme("bloom_filters")->geometry_for(10, 0.01), (geometry{96, 7}));
  EXPECT_EQ(cells_of("bloom_filters", {96, 7}, "hello"), (cells{85, 45, 6, 65, 31, 1, 72}));
}

TEST(BloomfilterJs, SetTheBitsOfThePackage) {
  EXPECT_EQ(find_scheme("bloomfilter_js")->geometry_for(300, 0.01), (geometry{2880, 7}));
  EXPECT_EQ(cells_of("bloomfilter_js", {128, 7}, "hello"), (cells{70, 81, 93, 107, 124, 17, 43}));
}

// http://www.isthe.com/chongo/tech/comp/fnv/ has the second vector.
TEST(BloomfilterJs, HashesByFnv1a) { EXPECT_EQ(hashes::fnv1a_64(hashes::fnv_start, 'a'), 0xAF63DC4C8601EC8C); }

std::u16string utf16(std::string_view text) {
  std::u16string units;
  hashes::each_utf16_unit(text, [&](std::uint16_t unit) { units += static_cast<char16_t>(unit); });
  return units;
}

// As Node.js 20 prints them: Buffer.from(bytes).toString().
TEST(Utf16, HasAReplacementForEachPartOfInvalidUtf8) {
  const std::pair<std::string_view, std::u16string_view> texts[] = {
      {"", u""},
      {"Zürich", u"Zürich"},
      {"布隆过滤器", u"布隆过滤器"},
      {"\xF0\x9F\x98\x80", u"\xD83D\xDE00"},
      {"\xF4\x8F\xBF\xBF", u"\xDBFF\xDFFF"},
      {"\xEF\xBB\xBFx", u"\xFEFFx"},                                // a byte order mark stays
      {"\x80\xBFx", u"\xFFFD\xFFFDx"},                              // no first byte
      {"\xC1\x81", u"\xFFFD\xFFFD"},                                // never valid
      {"\xC3", u"\xFFFD"},                                          // cut
      {"\xE5\xB8x", u"\xFFFDx"},                                    // one part of a character
      {"\xE0\x80\x80", u"\xFFFD\xFFFD\xFFFD"},                      // longer than necessary
      {"\xED\xA0\x80", u"\xFFFD\xFFFD\xFFFD"},                      // a surrogate
      {"\xF0\x9F\x98", u"\xFFFD"},                                  // cut
      {"\xF0\x8F\xBF\xBF", u"\xFFFD\xFFFD\xFFFD\xFFFD"},            // longer than necessary
      {"\xF4\x90\x80\x80\xF5", u"\xFFFD\xFFFD\xFFFD\xFFFD\xFFFD"},  // beyond U+10FFFF
      {"\xF0\x9F\xE5\xB8\x83", u"\xFFFD\x5E03"}};
  for (const auto& [text, units] : texts) EXPECT_EQ(utf16(text), units) << text;
}

// Small filters, in which an absent key often has the same remainders of both hashes as an inserted key.
TEST(SchemeRates, OfEnhancedDoubleHashingCountKeysWithEqualRemainders) {
  const struct {
    geometry size;
    int keys;
    double times;  // the rate of independent probes, at least
  } cases[] = {{{64, 3}, 15, 1}, {{128, 7}, 13, 1.05}, {{1024, 14}, 50, 1.7}, {{2048, 20}, 70, 15}};
  constexpr int filters = 400;
  constexpr int queries = 40'000;
  for (const auto& [size, keys, times] : cases) {
    const double in_theory = find_scheme("bloom_filters")->expected_fpr(size, static_cast<std::uint64_t>(keys));
    double current = 0;
    std::uint64_t found = 0;

    for (int round = 0; round < filters; ++round) {
      any_filter filter(params{.scheme = "bloom_filters", .geometry = size});
      const std::string prefix = std::to_string(round) + '-';
      for (int i = 0; i < keys; ++i) filter.insert("in-" + prefix + std::to_string(i));
      for (int i = 0; i < queries; ++i) found += filter.may_contain("out-" + prefix + std::to_string(i)) ? 1 : 0;
      current += filter.current_fpr() / filters;
    }

    const double measured = static_cast<double>(found) / (1.0 * filters * queries);
    const double noise = 5 / std::sqrt(static_cast<double>(found));
    EXPECT_NEAR(in_theory / measured, 1, 0.05 + noise) << size.bits << " bits";
    EXPECT_NEAR(current / measured, 1, 0.05 + noise) << size.bits << " bits";
    const double independent = find_scheme("bits_and_blooms")->expected_fpr(size, static_cast<std::uint64_t>(keys));
    EXPECT_GT(in_theory, times * independent) << size.bits << " bits";
  }
}

}  // namespace
}  // namespace bloomery
