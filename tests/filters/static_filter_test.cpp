// static_filter: the same answers and files as any_filter, and what it refuses.
#include <bloomery/any_filter.hpp>
#include <bloomery/fold.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/static_filter.hpp>

#include "support/test.hpp"

#include <cstdlib>

namespace {

using namespace bloomery;
using namespace bloomery_tests;

std::vector<std::string> texts(int count) {
  std::vector<std::string> result;
  for (int i = 0; i < count; ++i) result.push_back("key " + std::to_string(i));
  return result;
}

template <class Filter, class Key>
void expect_equal_answers(const Filter& sealed, const any_filter& any, std::span<const Key> keys, std::size_t present) {
  std::vector<std::uint64_t> of_sealed((keys.size() + 63) / 64), of_any(of_sealed.size()), of_hashes(of_sealed.size());
  std::vector<key_hash> hashes(keys.size());
  sealed.may_contain(keys, of_sealed);
  any.may_contain(keys, of_any);
  any.hash(keys, hashes);
  any.may_contain(hashes, of_hashes);
  EXPECT_EQ(of_sealed, of_any);
  EXPECT_EQ(of_sealed, of_hashes);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool expected = (of_sealed[i / 64] >> (i % 64) & 1) != 0;
    ASSERT_EQ(sealed.may_contain(keys[i]), expected);
    ASSERT_EQ(any.may_contain(keys[i]), expected);
    ASSERT_TRUE(expected || i >= present) << i;
    if (sealed.structure == static_structure::ribbon) continue;
    const auto cells = any.cells(keys[i]);
    ASSERT_EQ(cells.size(), 3u);
    ASSERT_LT(*std::max_element(cells.begin(), cells.end()), any.bit_size() / cell_bits_of(any.parameters()));
  }
}

template <class Fingerprint>
void compare_with_any_filter() {
  const scratch_folder folder;
  const auto strings = texts(4000);
  const std::vector<std::string_view> views(strings.begin(), strings.end());
  const std::span<const std::string_view> all(views);
  std::vector<std::uint64_t> integers(4000);
  std::iota(integers.begin(), integers.end(), std::uint64_t{1});

  const auto of_texts = static_filter<std::string_view, Fingerprint>::build(all.first(2000));
  const auto of_integers = static_filter<std::uint64_t, Fingerprint>::build(std::span(integers).first(2000));
  of_texts.save(folder / "t", "a note");
  of_integers.save(folder / "i");

  expect_equal_answers(of_texts, any_filter::open(folder / "t"), all, 2000);
  expect_equal_answers(of_texts, any_filter::load(folder / "t"), all, 2000);
  expect_equal_answers(of_integers, any_filter::open(folder / "i"), std::span<const std::uint64_t>(integers), 2000);
  const any_filter any = any_filter::open(folder / "t");
  EXPECT_EQ(any.parameters(), of_texts.parameters());
  EXPECT_EQ(any.insert_count(), 2000u);
  EXPECT_EQ(any.approximate_size(), 2000);
  EXPECT_EQ(any.estimated_keys().sigma, 0);
  EXPECT_DOUBLE_EQ(any.expected_fpr(), of_texts.expected_fpr());
  EXPECT_DOUBLE_EQ(any.current_fpr(), of_texts.expected_fpr());
  EXPECT_EQ(any.opened_from()->metadata, "a note");
  EXPECT_TRUE(std::ranges::equal(any.bytes(), of_texts.bytes()));
  EXPECT_DOUBLE_EQ(any.fill_ratio(),
                   static_cast<double>(count_ones(any.bytes())) / static_cast<double>(any.bit_size()));
  using mapped = static_filter<std::string_view, Fingerprint, xxh3_64, mapped_storage>;
  EXPECT_TRUE(mapped::open(folder / "t", {.check = file_check::payload}).may_contain(views[0]));
  EXPECT_EQ(mapped::open(folder / "t").insert_count(), 2000u);
  EXPECT_EQ(code_of([&] { mapped::open(folder / "t", {.mode = access::read_write}); }), errc::not_permitted);
  EXPECT_TRUE(inspect(folder / "t").info.clean);
  EXPECT_TRUE((static_filter<std::string_view, Fingerprint>::load(folder / "t").may_contain(views[1])));
}

TEST(StaticFilter, AnswersAsAnyFilterDoesWith8Bits) { compare_with_any_filter<std::uint8_t>(); }
TEST(StaticFilter, AnswersAsAnyFilterDoesWith16Bits) { compare_with_any_filter<std::uint16_t>(); }
TEST(StaticFilter, AnswersAsAnyFilterDoesWith32Bits) { compare_with_any_filter<std::uint32_t>(); }
TEST(StaticFilter, AnswersAsAnyFilterDoesWith3Bits) { compare_with_any_filter<fingerprint_bits<3>>(); }
TEST(StaticFilter, AnswersAsAnyFilterDoesWith13Bits) { compare_with_any_filter<fingerprint_bits<13>>(); }
TEST(StaticFilter, AnswersAsAnyFilterDoesWith24Bits) { compare_with_any_filter<fingerprint_bits<24>>(); }

TEST(StaticFilter, AnswersAsAnyFilterDoesAsARibbonFilter) {
  compare_with_any_filter<fingerprint_bits<1, static_structure::ribbon>>();
  compare_with_any_filter<fingerprint_bits<9, static_structure::ribbon>>();
}

TEST(StaticFilter, ChoosesTheShortestFingerprintsForARate) {
  EXPECT_EQ(static_width_for(0.5, 1000), 1u);
  EXPECT_EQ(static_width_for(0.25, 10'000'000), 2u);
  EXPECT_EQ(static_width_for(0.49, 1000), 2u);
  EXPECT_EQ(static_width_for(0.01, 1000), 7u);
  EXPECT_EQ(static_width_for(0.004, 1000), 8u);
  EXPECT_EQ(static_width_for(1e-6, 1000), 20u);
  EXPECT_EQ(static_width_for(1e-12, 1000), std::nullopt);
  EXPECT_EQ(static_width_for(0x1p-32, 0), 1u);  // without keys, nothing is found
}

TEST(StaticFilter, IsKeyedWithASecret) {
  const scratch_folder folder;
  const secret_key key{1, 2};
  const std::vector<std::string_view> keys{"a", "b"};
  using keyed = static_filter<std::string_view, std::uint16_t, siphash>;
  keyed::build(keys, 1, siphash(key)).save(folder / "f");

  EXPECT_TRUE(any_filter::open(folder / "f", {.secret = key}).may_contain("a"));
  EXPECT_TRUE(keyed::load(folder / "f", siphash(key)).may_contain("b"));
  EXPECT_EQ(code_of([&] { any_filter::open(folder / "f"); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { keyed::load(folder / "f", siphash(secret_key{1, 3})); }), errc::incompatible);
}

struct coarse {
  static constexpr std::string_view name = "coarse";
  key_hash operator()(std::uint64_t key) const noexcept { return {mix64(key / 2), key}; }
};

TEST(StaticFilter, TakesKeysWithOneLowerHalfAsOne) {
  const std::vector<std::uint64_t> keys{2, 3, 4};

  const auto sealed = static_filter<std::uint64_t, std::uint8_t, coarse>::build(keys);

  EXPECT_EQ(sealed.insert_count(), 2u);
  EXPECT_TRUE(sealed.may_contain(5));
}

TEST(StaticFilter, RefusesWhatItCannotDo) {
  const scratch_folder folder;
  const std::vector<std::string_view> keys{"a", "b"};
  static_filter<>::build(keys).save(folder / "f");
  const auto before = read_file(folder / "f");
  any_filter f = any_filter::open(folder / "f");
  any_filter g = any_filter::load(folder / "f");
  const key_hash hash{1, 2};
  const std::span<const std::string_view> some(keys);

  EXPECT_EQ(code_of([&] { g.insert("c"); }), errc::not_permitted);
  EXPECT_EQ(code_of([&] { g.insert(some); }), errc::not_permitted);
  EXPECT_EQ(code_of([&] { g.insert_all(some); }), errc::not_permitted);
  EXPECT_EQ(code_of([&] { g.insert(std::span(&hash, 1)); }), errc::not_permitted);
  EXPECT_EQ(code_of([&] { g.insert_all(std::span(&hash, 1)); }), errc::not_permitted);
  EXPECT_EQ(code_of([&] { g.clear(); }), errc::not_permitted);
  EXPECT_EQ(code_of([&] { g.merge(f); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { g.intersect(f); }), errc::incompatible);
  EXPECT_FALSE(g.compatible_with(f));
  EXPECT_EQ(times_foldable(f.parameters()), 0u);
  EXPECT_EQ(code_of([&] { any_filter::open(folder / "f", {.mode = access::read_write}); }), errc::not_permitted);
  EXPECT_EQ(code_of([&] { any_filter::create(folder / "g", f.parameters()); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { any_filter{f.parameters()}; }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { complete({.layout = "fuse8", .capacity = 10, .target_fpr = 0.01}); }),
            errc::invalid_argument);
  EXPECT_THAT(error_of([&] { g.insert("c"); })->what(), testing::HasSubstr("create a filter that can grow"));
  using mapped16 = static_filter<std::string_view, std::uint16_t, xxh3_64, mapped_storage>;
  using mapped_murmur = static_filter<std::string_view, std::uint8_t, murmur3, mapped_storage>;
  EXPECT_EQ(code_of([&] { mapped16::open(folder / "f"); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { mapped_murmur::open(folder / "f"); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { static_filter<std::uint64_t>::load(folder / "f"); }), errc::incompatible);
  EXPECT_EQ(read_file(folder / "f"), before);
}

// ---- files ---------------------------------------------------------------------------------------------------------

TEST(StaticFilter, RefusesAFileWhoseCellsAreNoFilter) {
  const scratch_folder folder;
  const std::vector<std::string_view> keys{"a", "b"};
  const auto sealed = static_filter<>::build(keys);
  const auto save = [&](params p, std::vector<std::uint8_t> payload) {
    save_file(folder / "f", p, payload, {.inserted = 2});
    return code_of([&] { any_filter::open(folder / "f"); });
  };
  std::vector<std::uint8_t> payload(sealed.bytes().begin(), sealed.bytes().end());
  params p = sealed.parameters();

  EXPECT_EQ(save(p, payload), std::nullopt);
  EXPECT_EQ(save(p, std::vector<std::uint8_t>(payload.size())), errc::damaged);
  EXPECT_EQ(code_of([&] { any_filter::load(folder / "f"); }), errc::damaged);
  EXPECT_EQ(code_of([&] { static_filter<>::load(folder / "f"); }), errc::damaged);
  EXPECT_EQ(code_of([&] { measure_fill(p, std::vector<std::uint8_t>(payload.size())); }), errc::damaged);
  p.capacity = 3;
  EXPECT_EQ(save(p, payload), errc::damaged);
  EXPECT_EQ(code_of([&] { static_filter<>::load(folder / "f"); }), errc::damaged);
  p.capacity = 2;
  p.geometry.probes = 4;
  EXPECT_EQ(save(p, payload), errc::damaged);
  p.geometry.probes = 3;
  p.layout = "fuse16";
  EXPECT_EQ(save(p, payload), errc::damaged);
}

// ---- the bytes are pinned -------------------------------------------------------------------------------------------

// tests/command/test_seal.py reads these files without bloomery.
TEST(StaticFilter, HasTheBytesOfTheGoldenFiles) {
  const scratch_folder folder;
  const auto strings = texts(3000);
  const std::vector<std::string_view> views(strings.begin(), strings.end());
  std::vector<std::uint64_t> integers(1000);
  for (std::uint64_t i = 0; i < integers.size(); ++i) integers[i] = i * i;
  const std::string golden = std::string(BLOOMERY_SOURCE_DIR) + "/tests/golden/sealed/";

  static_filter<>::build(views).save(folder / "fuse8-bytes-xxh3_64.bloom");
  static_filter<std::string_view, std::uint8_t, xxh3>::build(views).save(folder / "fuse8-bytes-xxh3.bloom");
  static_filter<std::uint64_t, std::uint16_t>::build(integers).save(folder / "fuse16-u64-mix.bloom");
  static_filter<std::string_view, std::uint32_t, xxh3>::build(std::span(views).first(20))
      .save(folder / "fuse32-bytes-xxh3.bloom");
  static_filter<std::string_view, fingerprint_bits<11>>::build(views).save(folder / "fuse11-bytes-xxh3_64.bloom");
  any_filter::build_static({}, views, 7, 1, static_structure::ribbon).save(folder / "ribbon7-bytes-xxh3_64.bloom");

  for (const std::string name :
       {"fuse8-bytes-xxh3_64.bloom", "fuse8-bytes-xxh3.bloom", "fuse16-u64-mix.bloom", "fuse32-bytes-xxh3.bloom",
        "fuse11-bytes-xxh3_64.bloom", "ribbon7-bytes-xxh3_64.bloom"}) {
    if (std::getenv("BLOOMERY_WRITE_GOLDEN") != nullptr) write_file(golden + name, read_file(folder / name));
    EXPECT_EQ(read_file(folder / name), read_file(golden + name)) << name;
  }
}

}  // namespace
