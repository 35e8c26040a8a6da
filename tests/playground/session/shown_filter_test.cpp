// Cells and ranges of every family, layout and scheme, compared with counting cell by cell; and files, compared with
// the library's.
#include "playground/visitor.hpp"

#include "support/files.hpp"

#include "playground/json/json.hpp"
#include "playground/session/shown_filter.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/static_filter.hpp>

#include <cmath>

namespace bloomery_tests {
namespace {

using namespace bloomery::playground;

wanted_filter wanted_of(const json& text) {
  fields body(text.dump());
  wanted_filter w = wanted_from(body);
  body.end();
  return w;
}

class ShownFilter : public testing::TestWithParam<json> {
 protected:
  ShownFilter() : filter(wanted_of(GetParam())) {
    filter.stop_clock_at(0);
    for (int i = 0; i < 400; ++i) {
      filter.insert("key " + std::to_string(i));
      if (i % 100 == 0 && GetParam().contains("window_milliseconds")) filter.tick(900);
    }
  }
  shown_filter filter;
};

TEST_P(ShownFilter, ReducesTheNumbersOfAKeyToItsCells) {
  const std::string scheme = GetParam().value("scheme", "");
  const bool always = scheme == "pharo" || scheme == "perl";
  for (int key = 0; key < 100; ++key) {
    const std::string name = "key " + std::to_string(key);
    const std::vector<std::uint64_t> numbers = filter.numbers_of(name);
    EXPECT_TRUE(numbers.empty() ? !always : !scheme.empty()) << name;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(numbers[i] % filter.cells(), filter.places_of(name)[i].cell) << name << ", probe " << i;
    }
  }
}

TEST_P(ShownFilter, CountsWhatItsCellsShowOneByOne) {
  const std::uint64_t cells = filter.cells();
  const std::vector<std::uint8_t> values = filter.values(0, cells);
  const auto ones = [&](std::uint64_t from, std::uint64_t to) {
    return static_cast<std::uint64_t>(std::count_if(values.begin() + static_cast<std::ptrdiff_t>(from),
                                                    values.begin() + static_cast<std::ptrdiff_t>(to),
                                                    [](std::uint8_t value) { return value != 0; }));
  };

  const bloomery::filter_facts facts = filter.facts(std::nullopt);

  EXPECT_EQ(facts.fill->cells, cells);
  EXPECT_EQ(facts.fill->cells_set, ones(0, cells));
  ASSERT_GT(facts.fill->cells_set, 0u);
  std::uint64_t of_layers = 0;
  const json layers = facts_json(facts, std::nullopt)["layers"];
  for (const json& layer : layers) {
    EXPECT_EQ(layer["first_cell"], of_layers);
    const std::uint64_t end = of_layers + layer["cells"].get<std::uint64_t>();
    EXPECT_EQ(layer["ones"], ones(of_layers, end));
    of_layers = end;
  }
  EXPECT_EQ(of_layers, cells);
  for (const std::uint64_t most : {1u, 3u, 7u, 64u, 1000u, 16'384u}) {
    for (const auto& [from, to] :
         {std::pair<std::uint64_t, std::uint64_t>{0, cells}, {1, cells}, {5, 6}, {cells / 3, cells / 2}}) {
      const fill_ranges fill = filter.fill(from, to, most);
      EXPECT_LE(fill.ones.size(), most);
      const std::uint64_t block = filter.block_cells();
      if (block != 0) {
        EXPECT_TRUE(fill.cells_of_range % block == 0 || block % fill.cells_of_range == 0) << fill.cells_of_range;
      }
      std::uint64_t at = from;
      for (const std::uint64_t in_range : fill.ones) {
        const std::uint64_t end = std::min(to, at + fill.cells_of_range);
        EXPECT_EQ(in_range, ones(at, end)) << at << " to " << end;
        at = end;
      }
      EXPECT_EQ(at, to);
    }
  }
  std::vector<std::uint64_t> of_runs((cells + 99) / 100);
  filter.view().count_set(0, 100, of_runs);
  for (std::uint64_t i = 0; i < of_runs.size(); ++i) {
    EXPECT_EQ(of_runs[i], ones(100 * i, std::min(cells, 100 * i + 100))) << i;
  }
}

TEST_P(ShownFilter, AnswersMaybeExactlyForKeysWithAllCellsOfALayerSet) {
  if (filter.has_window()) GTEST_SKIP() << "a generation has to have all of them: the library's tests";
  for (int i = 0; i < 3000; ++i) {
    const std::string key = "key " + std::to_string(i);
    std::map<std::uint32_t, bool> all_set;
    for (const place& at : filter.places_of(key)) {
      const bool set = filter.values(at.cell, 1).front() != 0;
      EXPECT_EQ(filter.view().layer_of(at.cell), at.layer);
      all_set.try_emplace(at.layer, true).first->second &= set;
    }
    const bool any = std::any_of(all_set.begin(), all_set.end(), [](const auto& layer) { return layer.second; });
    ASSERT_EQ(filter.may_contain(key), any) << key;
    EXPECT_TRUE(any || i >= 400) << key;
  }
}

TEST_P(ShownFilter, ItsFileEqualsTheLibrarysAndGivesTheSameAnswers) {
  if (filter.has_layers()) GTEST_SKIP() << "a scalable filter has no file";
  scratch_folder folder;
  const std::string file = filter.file();
  write_file(folder / "a.bloom", file);

  bloomery::any_filter loaded = bloomery::any_filter::load(folder / "a.bloom");
  shown_filter shown(bloomery::any_filter::load(folder / "a.bloom"));
  shown.stop_clock_at(0);

  if (filter.has_window()) {
    // Its clock shows the filter's time.
    const bloomery::window_facts now = *filter.filter().window();
    if (now.length.by_time()) loaded.set_clock([now] { return now.epoch * now.slice; });
  }
  for (int i = 0; i < 3000; ++i) {
    const std::string key = "key " + std::to_string(i);
    ASSERT_EQ(loaded.may_contain(std::string_view(key)), filter.may_contain(key)) << key;
    ASSERT_EQ(shown.may_contain(key), filter.may_contain(key)) << key;
  }
  EXPECT_EQ(shown.values(0, shown.cells()), filter.values(0, filter.cells()));
  EXPECT_EQ(shown.file(), file);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ShownFilter, testing::ValuesIn(all_kinds(500)), name_of_kind);

template <class Fingerprint>
void expect_fingerprints() {
  scratch_folder folder;
  const std::vector<std::string> names = list_of("key ", 300).get<std::vector<std::string>>();
  const std::vector<std::string_view> in(names.begin(), names.end());
  bloomery::static_filter<std::string_view, Fingerprint>::build(in).save(folder / "a.bloom");
  const shown_filter filter(bloomery::any_filter::load(folder / "a.bloom"));
  const std::span<const std::uint8_t> payload = filter.filter().bytes();
  ASSERT_EQ(filter.cells(), payload.size() / sizeof(Fingerprint));

  const std::vector<std::uint8_t> values = filter.values(0, filter.cells());

  for (std::size_t cell = 0; cell < values.size(); ++cell) {
    Fingerprint held;
    std::memcpy(&held, payload.data() + cell * sizeof held, sizeof held);
    ASSERT_EQ(values[cell], sizeof held == 1 ? held : held != 0) << cell;
  }
  EXPECT_EQ(filter.places_of("key 3").size(), 3u);
  const bloomery::filter_facts facts = filter.facts(std::nullopt);
  EXPECT_EQ(facts.insert_count, 300u);
  EXPECT_EQ(facts.keys_left, 0u);
  const json shown = facts_json(facts, std::nullopt);
  EXPECT_EQ(shown["cells"], values.size());
  EXPECT_EQ(shown["ones"], values.size());
  EXPECT_EQ(shown["alarm"], nullptr);
  EXPECT_EQ(shown["estimated"]["value"], nullptr);
  EXPECT_EQ(shown["layers"].size(), 0u);
  const double rate = std::exp2(-8.0 * sizeof(Fingerprint));
  EXPECT_NEAR(facts.fill->current_fpr, rate, rate / 1000);
  EXPECT_NEAR(*facts.expected_fpr, rate, rate / 1000);
}

TEST(ShownFilterThatIsStatic, ShowsItsFingerprintsAndNoFactsOfBits) {
  expect_fingerprints<std::uint8_t>();
  expect_fingerprints<std::uint16_t>();
}

TEST(ShownFilterOfNumbers, RefusesTextThatIsNotANumber) {
  const shown_filter filter(
      bloomery::any_filter(bloomery::complete({.keys = bloomery::key_kind::u64le, .capacity = 10, .target_fpr = 0.1})));

  for (const char* key : {"", "x", "-1", "1.5", " 1", "1 ", "0x10", "18446744073709551616"}) {
    EXPECT_THROW(filter.check_key(key), bloomery::error) << key;
  }
  EXPECT_NO_THROW(filter.check_key("18446744073709551615"));
  EXPECT_FALSE(filter.may_contain("5"));
}

}  // namespace
}  // namespace bloomery_tests
