// Layers files: a saved filter is restored, and damaged or hostile files are refused.
//
// Offsets are those of docs/format.md.
#include <bloomery/any_filter.hpp>
#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layered_filter.hpp>
#include <bloomery/layouts/split_block512.hpp>
#include <bloomery/scalable_filter.hpp>

#include "file/format.hpp"
#include "file/layered_files.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;

const params integer_params = {.hash = "mix", .keys = key_kind::u64le};

scalable_layers grown(std::uint64_t keys, std::uint64_t first_layer = 100) {
  scalable_layers layers(0.01, first_layer);
  for (std::uint64_t key = 0; key < keys; ++key) layers.insert(mix{}(key));
  return layers;
}

// Two shards, one of two layers and one of one, with some bits.
layered_filter small_filter() {
  layered_params p{.filter = {.layout = "split_block512", .hash = "mix", .keys = key_kind::u64le, .capacity = 10},
                   .shards = 2,
                   .is_shared = true,
                   .metadata = "two shards"};
  p.filter.target_fpr = 0.01;
  layered_filter result(p, {{0, {1024, 8}, 20, 20}, {0, {512, 8}, 40, 3}, {1, {1024, 8}, 20, 7}});
  for (std::size_t i = 0; i < 3; ++i) {
    std::uint8_t next = 1;
    for (std::uint8_t& byte : result.bytes_of(i)) byte = next = static_cast<std::uint8_t>(next * 5 + i);
  }
  return result;
}

TEST(LayersFile, AnswersAsTheScalableFilterThatWasSaved) {
  const scratch_folder folder;
  const scalable_layers before = grown(5000);
  ASSERT_GE(before.layers().size(), 5u);
  layered_filter(before, integer_params, "some cities").save(folder / "f");

  const layered_filter copy = layered_filter::open(folder / "f");
  const std::unique_ptr<filter_handle> handle = open_filter(folder / "f");

  EXPECT_EQ(copy.parameters().metadata, "some cities");
  EXPECT_EQ(copy.keys(), before.insert_count());
  ASSERT_EQ(copy.layers().size(), before.layers().size());
  std::uint64_t found = 0;
  for (std::uint64_t key = 0; key < 200'000; ++key) {
    const bool expected = before.may_contain(mix{}(key));
    ASSERT_EQ(copy.may_contain(mix{}(key)), expected) << key;
    found += expected ? 1 : 0;
  }
  EXPECT_GT(found, 5000u);  // false positives are compared, too
  std::vector<std::uint64_t> keys(100'000);
  for (std::uint64_t i = 0; i < keys.size(); ++i) keys[i] = i;
  std::vector<std::uint64_t> bitmap((keys.size() + 63) / 64);
  handle->contains(keys, bitmap);
  for (const std::uint64_t key : keys)
    ASSERT_EQ((bitmap[key / 64] >> key % 64 & 1) != 0, before.may_contain(mix{}(key))) << key;
}

TEST(LayersFile, IsWrittenByAScalableFilterOfAnyKeyAndHash) {
  const scratch_folder folder;
  scalable_filter<std::string_view, murmur3> texts(0.001, murmur3{7}, 50);
  scalable_filter<std::uint64_t> integers(0.01, mix{5}, 50);
  for (std::uint64_t key = 0; key < 2000; ++key) {
    texts.insert(std::to_string(key));
    integers.insert(key);
  }

  texts.save(folder / "texts", {.metadata = "numbers"});
  integers.save(folder / "integers");

  const std::unique_ptr<filter_handle> saved_texts = open_filter(folder / "texts");
  const std::unique_ptr<filter_handle> saved_integers = open_filter(folder / "integers");
  for (std::uint64_t key = 0; key < 50'000; ++key) {
    ASSERT_EQ(saved_texts->contains(std::to_string(key)), texts.may_contain(std::to_string(key))) << key;
    ASSERT_EQ(saved_integers->contains(key), integers.may_contain(key)) << key;
  }
  EXPECT_EQ(saved_texts->info(info_depth::counts).file->metadata, "numbers");
  EXPECT_EQ(saved_texts->parameters().target_fpr, 0.001);
}

TEST(LayersFile, OfAScalableFilterTakesFurtherKeysAsIfItHadNotBeenSaved) {
  const scratch_folder folder;
  for (const std::uint64_t saved_at : {0u, 1u, 99u, 100u, 101u, 777u, 5000u}) {
    SCOPED_TRACE(saved_at);
    scalable_filter<std::uint64_t> never_saved(0.01, mix{5}, 100);
    for (std::uint64_t key = 0; key < saved_at; ++key) never_saved.insert(key);
    never_saved.save(folder / "f", {.replace = true});

    auto loaded = scalable_filter<std::uint64_t>::load(folder / "f", mix{5});

    EXPECT_EQ(loaded.insert_count(), never_saved.insert_count());
    EXPECT_EQ(loaded.expected_losses(), never_saved.expected_losses());
    for (std::uint64_t key = 0; key < 20'000; ++key) ASSERT_EQ(loaded.insert(key), never_saved.insert(key)) << key;
    loaded.save(folder / "loaded", {.replace = true});
    never_saved.save(folder / "f", {.replace = true});
    EXPECT_EQ(read_file(folder / "loaded"), read_file(folder / "f"));
    EXPECT_GT(loaded.layers().size(), 6u);
  }
}

TEST(LayersFile, OfAScalableFilterIsLoadedWithItsOwnKeysAndHashOnly) {
  const scratch_folder folder;
  const secret_key secret = random_secret();
  scalable_filter<std::uint64_t> integers(0.01, mix{5}, 50);
  scalable_filter<std::string_view, siphash> keyed(0.01, siphash{secret}, 50);
  for (std::uint64_t key = 0; key < 500; ++key) {
    integers.insert(key);
    keyed.insert(std::to_string(key));
  }
  integers.save(folder / "integers");
  keyed.save(folder / "keyed");
  small_filter().save(folder / "shared");

  const auto loaded = scalable_filter<std::string_view, siphash>::load(folder / "keyed", siphash{secret});

  for (std::uint64_t key = 0; key < 500; ++key) ASSERT_TRUE(loaded.may_contain(std::to_string(key)));
  using of_integers = scalable_filter<std::uint64_t>;
  EXPECT_EQ(code_of([&] { of_integers::load(folder / "integers", mix{6}); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { scalable_filter<std::uint64_t, xxh3>::load(folder / "integers"); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { scalable_filter<>::load(folder / "integers"); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { of_integers::load(folder / "keyed"); }), errc::incompatible);
  EXPECT_EQ(
      code_of([&] { scalable_filter<std::string_view, siphash>::load(folder / "keyed", siphash{random_secret()}); }),
      errc::incompatible);
  EXPECT_EQ(code_of([&] { of_integers::load(folder / "shared"); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { of_integers::load(folder / "missing"); }), errc::not_found);
}

// Sizes and numbers of keys decide when the loaded filter grows, so only those of a scalable filter are accepted.
TEST(LayersFile, OfLayersThatNoScalableFilterHasIsNotLoadedAsOne) {
  const scratch_folder folder;
  scalable_filter<std::uint64_t> filter(0.01, {}, 100);
  for (std::uint64_t key = 0; key < 1000; ++key) filter.insert(key);
  filter.save(folder / "f");
  const bytes whole = read_file(folder / "f");
  const auto code_with = [&](std::size_t at, std::uint64_t value) {
    bytes file = whole;
    put(file, at, value);
    write_file(folder / "g", layers_with_checksums(file));
    EXPECT_NO_THROW(open_filter(folder / "g"));
    const std::optional<error> e = error_of([&] { scalable_filter<std::uint64_t>::load(folder / "g"); });
    EXPECT_THAT(e ? e->what() : "", HasSubstr(folder / "g"));
    return e ? std::optional(e->code()) : std::nullopt;
  };
  const std::size_t newest = first_entry + entry * (filter.layers().size() - 1);

  EXPECT_EQ(code_with(104, 101), errc::incompatible);                     // capacity of the first layer
  EXPECT_EQ(code_with(104, 0), errc::invalid_argument);                   // out of range
  EXPECT_EQ(code_with(104, std::uint64_t{1} << 40), errc::incompatible);  // no memory is allocated for such a layer
  EXPECT_EQ(code_with(112, 0x3F50624DD2F1A9FC), errc::incompatible);      // a target FPR of 0.1%
  EXPECT_EQ(code_with(first_entry + 24, 99), errc::incompatible);         // capacity in the table
  EXPECT_EQ(code_with(first_entry + 32, 3), errc::damaged);               // an older layer that is not full
  EXPECT_EQ(code_with(first_entry + 32, 101), errc::damaged);             // more keys than capacity
  EXPECT_EQ(code_with(newest + 32, 1'000'000), errc::damaged);
  write_file(folder / "g", layers_with_checksums(whole));
  EXPECT_EQ(scalable_filter<std::uint64_t>::load(folder / "g").insert_count(), filter.insert_count());
}

TEST(LayersFile, ReportsTheRatesOfTheScalableFilterThatWasSaved) {
  const scratch_folder folder;
  const scalable_layers before = grown(3000);
  layered_filter(before, integer_params).save(folder / "f");

  const filter_facts facts = open_filter(folder / "f")->info(info_depth::everything);

  EXPECT_EQ(facts.insert_count, before.insert_count());
  EXPECT_EQ(facts.bytes, before.byte_size());
  EXPECT_EQ(facts.layers.size(), before.layers().size());
  EXPECT_NEAR(facts.fill->current_fpr, before.current_fpr(), 1e-12);
  EXPECT_NEAR(*facts.expected_fpr, before.expected_fpr(), 0.02 * before.expected_fpr());
  EXPECT_FALSE(facts.count_is_at_most);
  for (std::size_t i = 0; i < facts.layers.size(); ++i) {
    const scalable_layer layer = before.layers()[i];
    EXPECT_EQ(facts.layers[i].target_fpr, layouts::split_block512::expected_fpr(layer.geometry, layer.capacity));
    EXPECT_LE(facts.layers[i].target_fpr, layer.share);
  }
}

TEST(LayersFile, ListsTheCellsThatDecideALookup) {
  const layered_filter filter(grown(3000), integer_params);
  const std::unique_ptr<filter_handle> handle = make_handle(layered_filter(grown(3000), integer_params));
  for (std::uint64_t key = 0; key < 4000; key += 37) {
    const key_explanation why = handle->explain(std::span<const std::uint64_t>(&key, 1));

    const bool decided = std::ranges::any_of(why.layers, [](const explained_layer& layer) {
      return std::ranges::all_of(layer.cells, [](const explained_cell& cell) { return cell.value == 1; });
    });
    ASSERT_EQ(why.layers.size(), filter.layers().size());
    ASSERT_EQ(decided, filter.may_contain(mix{}(key)));
    ASSERT_EQ(why.maybe_present, decided);
  }
}

TEST(LayersFile, HasShardsOfDifferentNumbersOfLayers) {
  const scratch_folder folder;
  const layered_filter before = small_filter();
  before.save(folder / "f");

  const layered_filter copy = layered_filter::open(folder / "f");

  EXPECT_EQ(copy.layers(), before.layers());
  EXPECT_EQ(copy.parameters().filter.geometry, (geometry{2048, 8}));
  EXPECT_EQ(read_file(folder / "f").size(), before.file_bytes());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(std::ranges::equal(copy.bytes_of(i), before.bytes_of(i))) << i;
}

TEST(LayersFile, WithAnyBitFlippedIsRefused) {
  const scratch_folder folder;
  small_filter().save(folder / "f");

  expect_flipped_bits_refused(folder / "f");
}

TEST(LayersFile, OfAnotherLengthIsRefused) {
  const scratch_folder folder;
  small_filter().save(folder / "f");

  expect_other_lengths_refused(folder / "f");
}

TEST(LayersFile, WithFalseFieldsAndCorrectChecksumsIsRefused) {
  const scratch_folder folder;
  small_filter().save(folder / "f");

  expect_false_fields_refused(
      folder / "f", {
                        {"header length", u32(12, 8192)},
                        {"layout that does not grow", name(16, "classic")},
                        {"counting layout", name(16, "counting")},
                        {"unknown layout", name(16, "nothing")},
                        {"unreadable layout", name(16, "split block")},
                        {"unknown hash", name(48, "nothing")},
                        {"hash of text for integers is fine, keyed without a check value is not", name(48, "siphash")},
                        {"kind of keys", u32(80, 2)},
                        {"text with a hash of integers", u32(80, 0)},
                        {"origin", u32(84, 2)},
                        {"shards of a scalable filter", u32(84, 0)},
                        {"check value without a keyed hash", u64(96, 5)},
                        {"target above 1", [](bytes& b) { put(b, 112, 1.5); }},
                        {"target that is not a number", [](bytes& b) { put(b, 112, std::nan("")); }},
                        {"no shard", u64(128, 0)},
                        {"more shards than layers", u64(128, 3)},
                        {"fewer shards than the layers have", u64(128, 1)},
                        {"very many shards", u64(128, std::uint64_t{1} << 24)},
                        {"too many shards", u64(128, huge)},
                        {"no layer", u64(136, 0)},
                        {"one layer fewer", u64(136, 2)},
                        {"one layer more", u64(136, 4)},
                        {"very many layers", u64(136, std::uint64_t{1} << 40)},
                        {"layers that overflow", u64(136, huge / 48 + 2)},
                        {"too many layers", u64(136, huge)},
                        {"metadata longer than the file", u64(152, 1 << 20)},
                        {"metadata of 2^64 - 1 bytes", u64(152, huge)},
                        {"metadata one byte longer", u64(152, 11)},
                        {"length of the file", u64(168, huge)},
                        {"reserved bytes", u32(176, 1)},
                        {"reserved bytes at the end", u32(4084, 1)},
                        {"first shard is not 0", u64(first_entry, 1)},
                        {"a shard is left out", u64(first_entry + 2 * entry, 2)},
                        {"shards out of order", both(first_entry + entry, 1, first_entry + 2 * entry, 0)},
                        {"all layers in one shard", u64(first_entry + 2 * entry, 0)},
                        {"no bits", u64(first_entry + 8, 0)},
                        {"part of a line", u64(first_entry + 8, 1023)},
                        {"bits of another length", u64(first_entry + 8, 1536)},
                        {"very many bits", u64(first_entry + 8, std::uint64_t{1} << 50)},
                        {"bits that overflow", u64(first_entry + 8, huge / 512 * 512)},
                        {"no probes", u32(first_entry + 16, 0)},
                        {"probes of another layout", u32(first_entry + 16, 9)},
                        {"too many probes", u32(first_entry + 16, 256)},
                        {"reserved bytes of the table", u32(first_entry + 20, 1)},
                        {"keys that overflow", u64(first_entry + 32, huge)},
                    });
}

TEST(LayersFile, OfMoreThan64LayersPerShardIsRefused) {
  const params p = {.layout = "split_block512", .hash = "mix", .keys = key_kind::u64le, .target_fpr = 0.01};
  std::vector<filter_layer> layers(64, filter_layer{0, {512, 8}, 10, 1});
  EXPECT_NO_THROW(layered_filter({.filter = p}, layers));

  layers.push_back(layers.front());

  EXPECT_EQ(code_of([&] { layered_filter({.filter = p}, layers); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { layered_filter({.filter = p}, {}); }), errc::invalid_argument);
}

TEST(LayersFile, IsForLookupsOnly) {
  const scratch_folder folder;
  layered_filter(grown(1000), integer_params).save(folder / "f");
  const bytes before = read_file(folder / "f");
  const std::unique_ptr<filter_handle> handle = open_filter(folder / "f");
  const std::uint64_t key = 1'000'000;

  EXPECT_FALSE(handle->capabilities().can_insert);
  EXPECT_EQ(code_of([&] { handle->insert(std::span<const std::uint64_t>(&key, 1)); }), errc::not_permitted);
  EXPECT_EQ(code_of([&] { open_filter(folder / "f", {.mode = access::read_write}); }), errc::incompatible);
  EXPECT_ERROR(any_filter::open(folder / "f"), errc::incompatible, "layers of a scalable filter");
  EXPECT_EQ(handle->local(), nullptr);
  EXPECT_NE(layered_filter_of(*handle), nullptr);
  EXPECT_EQ(read_file(folder / "f"), before);
}

TEST(LayersFile, OfAKeyedFilterNeedsItsSecret) {
  const scratch_folder folder;
  const secret_key secret = random_secret();
  const params p = {.hash = "siphash", .secret = secret, .key_check = key_check(secret)};
  scalable_layers layers(0.01, 100);
  const siphash hash{secret};
  for (int i = 0; i < 500; ++i) layers.insert(hash(std::to_string(i)));
  layered_filter(layers, p).save(folder / "f");

  const std::unique_ptr<filter_handle> handle = open_filter(folder / "f", {.secret = secret});
  const std::unique_ptr<filter_handle> facts = open_filter(folder / "f", {.facts_only = true});

  for (int i = 0; i < 500; ++i) ASSERT_TRUE(handle->contains(std::to_string(i)));
  EXPECT_EQ(code_of([&] { open_filter(folder / "f"); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { open_filter(folder / "f", {.secret = random_secret()}); }), errc::incompatible);
  EXPECT_FALSE(facts->capabilities().can_look_up);
  EXPECT_EQ(code_of([&] { facts->contains("1"); }), errc::incompatible);
  EXPECT_EQ(facts->info(info_depth::bits).insert_count, layers.insert_count());
}

}  // namespace
}  // namespace bloomery
