// Filters of RedisBloom: files that the module wrote in a Redis server (tests/golden/foreign/record_redisbloom.py)
// answer as it does. tests/command/test_redisbloom.py lets the module read what bloomery writes.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/formats.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/scheme.hpp>

#include "formats/recorded.hpp"
#include "formats/sealed_dump.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;

struct recording {
  const char* name;
  geometry size;
  std::uint64_t capacity;
  double target_fpr;
};

constexpr recording of_one_layer[] = {{"redisbloom", {4416, 8}, 400, 0.01},
                                      {"redisbloom_fixed", {3840, 7}, 400, 0.01},
                                      {"redisbloom_sparse", {158'208, 11}, 10'000, 0.001},
                                      {"redisbloom_power", {4096, 8}, 371, 0.01}};
constexpr const char* of_three_layers[] = {"redisbloom_layers", "redisbloom_layers_chunks"};

constexpr std::size_t footer = 10;  // version of RDB and checksum

TEST(RedisBloom, DumpsHaveTheParametersOfTheServer) {
  for (const recording& r : of_one_layer) {
    const any_filter filter = import_filter(recorded(r.name + ".filter"s));

    EXPECT_EQ(filter.opened_from()->format, "redisbloom") << r.name;
    EXPECT_EQ(filter.parameters().scheme, "redisbloom") << r.name;
    EXPECT_EQ(filter.parameters().geometry, r.size) << r.name;
    EXPECT_EQ(filter.capacity(), r.capacity) << r.name;
    EXPECT_EQ(filter.parameters().target_fpr, r.target_fpr) << r.name;
    EXPECT_EQ(filter.insert_count(), 303u) << r.name;
  }
}

TEST(RedisBloom, DumpsAnswerAsTheServer) {
  for (const recording& r : of_one_layer) {
    const auto handle = open_filter(recorded(r.name + ".filter"s));

    for (const std::string& key : inserted_keys()) EXPECT_TRUE(handle->contains(key)) << r.name << ": " << key;
    EXPECT_EQ(positives_of(*handle), content_of(recorded(r.name + ".positives"s))) << r.name;
  }
}

TEST(RedisBloom, DumpsAreWrittenAsTheServerWritesThem) {
  for (const char* const name : {"redisbloom", "redisbloom_fixed"}) {
    const std::string path = recorded(name + ".filter"s);

    export_filter(import_filter(path), "again.rdb", "redisbloom");

    // The server states its own version of RDB; export states an early one, which more servers accept.
    const std::string own = content_of("again.rdb"), theirs = content_of(path);
    EXPECT_EQ(own.substr(0, own.size() - footer), theirs.substr(0, theirs.size() - footer)) << name;
    EXPECT_EQ(own, sealed_dump(own));
  }
}

TEST(RedisBloom, FiltersBuiltHereAreDumpedAsThoseOfTheServer) {
  any_filter filter(complete({.scheme = "redisbloom", .capacity = 400, .target_fpr = 0.01}));
  for (const std::string& key : inserted_keys()) filter.insert(key);

  export_filter(filter, "built.rdb", "redisbloom");

  const std::string own = content_of("built.rdb"), theirs = content_of(recorded("redisbloom.filter"));
  EXPECT_EQ(own.substr(0, own.size() - footer), theirs.substr(0, theirs.size() - footer));
}

// Compressed bits and powers of two are written in another form.
TEST(RedisBloom, EveryFilterSurvivesBothFormats) {
  for (const recording& r : of_one_layer) {
    const any_filter filter = import_filter(recorded(r.name + ".filter"s));
    for (const std::string_view format : {"redisbloom", "redisbloom_chunks"}) {
      export_filter(filter, "again.foreign", format);
      const any_filter again = import_filter("again.foreign");

      EXPECT_EQ(again.opened_from()->format, format);
      EXPECT_TRUE(again == filter) << r.name;
      EXPECT_EQ(again.parameters(), filter.parameters()) << r.name;
      EXPECT_EQ(again.insert_count(), 303u);
    }
  }
}

TEST(RedisBloom, OneNewlineOfRedisCliMayFollow) {
  const std::string dump = content_of(recorded("redisbloom.filter"));
  write_file("dump", dump + '\n');
  EXPECT_TRUE(import_filter("dump") == import_filter(recorded("redisbloom.filter")));

  for (const std::string& end : {"\r"s, "\n\n"s, "\r\n"s, "\0"s}) {
    write_file("dump", dump + end);
    EXPECT_ERROR(import_filter("dump", "redisbloom"), errc::damaged, "length of the file");
  }
}

// The signature says what the file was, so its damage is named.
TEST(RedisBloom, ADamagedDumpIsNamedAsSuch) {
  const std::string dump = content_of(recorded("redisbloom.filter"));
  write_file("cut", dump.substr(0, dump.size() - 20));

  EXPECT_EQ(recognize_format("cut"), find_file_format("redisbloom"));
  EXPECT_THROW(open_filter("cut"), error);
  EXPECT_ERROR(import_filter("cut"), errc::damaged, "");
}

TEST(RedisBloom, EveryChangedByteOfADumpIsNoticed) {
  const std::string dump = content_of(recorded("redisbloom_sparse.filter"));
  for (std::size_t at = 0; at < dump.size(); at += at < 120 ? 1 : 97) {
    std::string changed = dump;
    changed[at] = static_cast<char>(changed[at] ^ 1 << at % 8);
    write_file("changed", changed);
    try {
      import_filter("changed", "redisbloom");
      ADD_FAILURE() << at;
    } catch (const error& e) {
      EXPECT_TRUE(e.code() == errc::damaged || e.code() == errc::incompatible) << at << ": " << e.what();
    }
  }
}

TEST(RedisBloom, DumpsOfAnotherLengthAreRefused) {
  for (const char* const name : {"redisbloom", "redisbloom_sparse", "redisbloom_layers"}) {
    const std::string dump = content_of(recorded(name + ".filter"s));
    for (std::size_t length = 0; length < dump.size(); length += length < 128 ? 1 : 7) {
      write_file("cut", dump.substr(0, length));
      EXPECT_ERROR(import_filter("cut", "redisbloom"),
                   name == "redisbloom_layers"s && length >= 50 ? errc::incompatible : errc::damaged, "cut");
    }
  }
}

// Each is consistent, with a matching checksum.
TEST(RedisBloom, NumbersThatContradictEachOtherAreRefused) {
  const std::string dump = content_of(recorded("redisbloom.filter"));
  const struct {
    std::size_t at;
    std::string bytes;
    const char* words;
  } changes[] = {{11, "\x41\x2E", "number of keys"},
                 {14, "\x00"s, "number of layers"},
                 {16, "\x10", "options"},
                 {17, "\x00"s, "kind of a value"},
                 {20, "\x3F\x02", "kind of a value"},
                 {23, std::string(8, '\xFF'), "target FPR"},
                 {32, "\x07", "bits per key"},
                 {43, "\x51\x41", "number of bits"},
                 {46, "\x0C", "number of bits"},
                 {48, "\x42\x27", "length of the bits"}};
  ASSERT_EQ(sealed_dump(dump), dump);
  for (const auto& change : changes) {
    std::string changed = dump;
    changed.replace(change.at, change.bytes.size(), change.bytes);
    write_file("changed", sealed_dump(changed));
    EXPECT_ERROR(import_filter("changed", "redisbloom"), errc::damaged, change.words);
  }
}

TEST(RedisBloom, OtherVersionsAndHashesAreNamed) {
  std::string dump = content_of(recorded("redisbloom.filter"));
  dump[9] = 3;
  write_file("version", sealed_dump(dump));
  EXPECT_ERROR(open_filter("version"), errc::incompatible,
               "unknown version of the values of type MBbloom--: expected 4, found 3");
  EXPECT_ERROR(import_filter("version", "valkey_bloom"), errc::damaged,
               "type of the module's value: expected bloomfltr, found MBbloom--");

  std::string chunks = content_of(recorded("redisbloom_chunks.filter"));
  chunks[12] = 1;
  write_file("hashes", chunks);
  EXPECT_ERROR(open_filter("hashes"), errc::incompatible, "hashes of 32 bits");
}

// ---- several layers -------------------------------------------------------------------------------------------------

TEST(RedisBloom, FiltersThatHaveGrownAnswerAsTheServer) {
  for (const std::string name : of_three_layers) {
    const auto handle = open_filter(recorded(name + ".filter"));

    for (const std::string& key : inserted_keys()) EXPECT_TRUE(handle->contains(key)) << name << ": " << key;
    EXPECT_EQ(positives_of(*handle), content_of(recorded(name + ".positives"))) << name;
    EXPECT_FALSE(handle->capabilities().can_insert);
    EXPECT_ERROR(handle->insert("Madrid"), errc::not_permitted, "reading");
  }
}

TEST(RedisBloom, FiltersThatHaveGrownEstimateTheRateOfAllLayers) {
  for (const std::string name : of_three_layers) {
    const auto handle = open_filter(recorded(name + ".filter"));

    const filter_facts facts = handle->info(info_depth::bits);

    ASSERT_EQ(facts.layers.size(), 3u);
    EXPECT_EQ(facts.layers[1].geometry, (geometry{2496, 9}));
    EXPECT_EQ(facts.layers[1].insert_count, 200u);
    EXPECT_EQ(facts.insert_count, 303u);
    EXPECT_EQ(facts.parameters.target_fpr, 0.01);
    EXPECT_NEAR(facts.fill->estimated_keys->value, 303, 5 * facts.fill->estimated_keys->sigma);
    EXPECT_FALSE(judge_fpr(facts).is_broken());
    EXPECT_FALSE(facts.fill->is_exact);  // the layers share their hashes
    std::uint64_t found = 0;
    constexpr std::uint64_t queries = 400'000;
    for (std::uint64_t i = 0; i < queries; ++i) found += handle->contains("absent-" + std::to_string(i)) ? 1 : 0;
    const double rate = facts.fill->current_fpr;
    EXPECT_NEAR(static_cast<double>(found) / queries, rate, 5 * std::sqrt(rate / queries) + 0.05 * rate) << name;
    EXPECT_NEAR(*facts.expected_fpr, rate, 0.3 * rate);
  }
}

TEST(RedisBloom, FiltersThatHaveGrownExplainEachLayer) {
  const auto handle = open_filter(recorded("redisbloom_layers.filter"));

  const key_explanation there = handle->explain(std::vector<std::string>{"key-7"});
  const key_explanation absent = handle->explain(std::vector<std::string>{"other-1"});

  ASSERT_EQ(there.layers.size(), 3u);
  EXPECT_TRUE(there.maybe_present);
  EXPECT_FALSE(absent.maybe_present);
  EXPECT_EQ(there.layers[2].cells.size(), 8u);  // the first layer is the last shown
  for (const explained_cell& cell : there.layers[2].cells) EXPECT_EQ(cell.value, 1u);
}

TEST(RedisBloom, FiltersThatHaveGrownAreNotConverted) {
  for (const std::string name : of_three_layers) {
    EXPECT_ERROR(import_filter(recorded(name + ".filter")), errc::incompatible, "3 layers");
    EXPECT_ERROR(open_filter(recorded(name + ".filter"))->save("no.bloom"), errc::incompatible, "copied");
  }
}

TEST(RedisBloom, UnknownCapacitiesAreNotExported) {
  const any_filter unknown(params{.scheme = "redisbloom", .geometry = {128, 3}});
  for (const std::string_view format : {"redisbloom", "redisbloom_chunks"})
    EXPECT_ERROR(export_filter(unknown, "no.foreign", format), errc::incompatible, "capacity");
}

}  // namespace
}  // namespace bloomery
