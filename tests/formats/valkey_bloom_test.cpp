// Filters of valkey-bloom: values that the module dumped (tests/golden/foreign/record_valkey_bloom.py) answer as it
// does.
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
  std::size_t salts;   // of a random seed
  std::uint64_t keys;  // BF.ADD does not add a key that it finds present
};

constexpr recording of_one_layer[] = {{"valkey_bloom", {3840, 7}, 400, 0.01, 1, 302},
                                      {"valkey_bloom_fixed", {3840, 7}, 400, 0.01, 0, 303},
                                      {"valkey_bloom_sparse", {143'776, 10}, 10'000, 0.001, 1, 303}};

constexpr std::size_t footer = 10;  // version of RDB and checksum

TEST(ValkeyBloom, DumpsHaveTheParametersOfTheServer) {
  for (const recording& r : of_one_layer) {
    const any_filter filter = import_filter(recorded(r.name + ".filter"s));

    EXPECT_EQ(filter.opened_from()->format, "valkey_bloom") << r.name;
    EXPECT_EQ(filter.parameters().scheme, "valkey_bloom") << r.name;
    EXPECT_EQ(filter.parameters().geometry, r.size) << r.name;
    EXPECT_EQ(filter.capacity(), r.capacity) << r.name;
    EXPECT_EQ(filter.parameters().target_fpr, r.target_fpr) << r.name;
    EXPECT_EQ(filter.parameters().salts().size(), r.salts) << r.name;
    EXPECT_EQ(filter.insert_count(), r.keys) << r.name;
    EXPECT_EQ(find_scheme("valkey_bloom")->geometry_for(r.capacity, r.target_fpr), r.size) << r.name;
  }
}

TEST(ValkeyBloom, DumpsAnswerAsTheServer) {
  for (const recording& r : of_one_layer) {
    const auto handle = open_filter(recorded(r.name + ".filter"s));

    for (const std::string& key : inserted_keys()) EXPECT_TRUE(handle->contains(key)) << r.name << ": " << key;
    EXPECT_EQ(positives_of(*handle), content_of(recorded(r.name + ".positives"s))) << r.name;
  }
}

// The server states its own version of RDB; export states an early one, which more servers accept.
TEST(ValkeyBloom, DumpsAreWrittenAsTheServerWritesThem) {
  for (const char* const name : {"valkey_bloom", "valkey_bloom_fixed"}) {
    const std::string path = recorded(name + ".filter"s);

    export_filter(import_filter(path), "again.rdb", "valkey_bloom");

    const std::string own = content_of("again.rdb"), theirs = content_of(path);
    EXPECT_EQ(own.substr(0, own.size() - footer), theirs.substr(0, theirs.size() - footer)) << name;
    EXPECT_EQ(own, sealed_dump(own));
  }
}

TEST(ValkeyBloom, FiltersBuiltHereAreDumpedAsThoseOfTheServer) {
  any_filter filter(complete({.scheme = "valkey_bloom", .capacity = 400, .target_fpr = 0.01}));
  for (const std::string& key : inserted_keys()) filter.insert(key);

  export_filter(filter, "built.rdb", "valkey_bloom");

  const std::string own = content_of("built.rdb"), theirs = content_of(recorded("valkey_bloom_fixed.filter"));
  EXPECT_EQ(own.substr(0, own.size() - footer), theirs.substr(0, theirs.size() - footer));
}

// Compressed bits are written in another form.
TEST(ValkeyBloom, EveryFilterSurvivesBothFormats) {
  for (const recording& r : of_one_layer) {
    const any_filter filter = import_filter(recorded(r.name + ".filter"s));
    export_filter(filter, "again.rdb", "valkey_bloom");
    EXPECT_TRUE(import_filter("again.rdb") == filter) << r.name;
    EXPECT_EQ(import_filter("again.rdb").parameters(), filter.parameters()) << r.name;
    filter.save("again.bloom");
    EXPECT_TRUE(any_filter::open("again.bloom") == filter) << r.name;
  }
}

// The number of keys of a full filter: BF.ADD adds a layer.
TEST(ValkeyBloom, MoreKeysThanTheCapacityAreStatedAsTheCapacity) {
  any_filter filter(complete({.scheme = "valkey_bloom", .capacity = 10, .target_fpr = 0.01}));
  for (int i = 0; i < 25; ++i) filter.insert("key-" + std::to_string(i));

  export_filter(filter, "full.rdb", "valkey_bloom");

  EXPECT_EQ(import_filter("full.rdb").insert_count(), 10u);
  EXPECT_TRUE(import_filter("full.rdb") == filter);
}

TEST(ValkeyBloom, EveryChangedByteOfADumpIsNoticed) {
  const std::string dump = content_of(recorded("valkey_bloom_sparse.filter"));
  for (std::size_t at = 0; at < dump.size(); at += at < 120 ? 1 : 97) {
    std::string changed = dump;
    changed[at] = static_cast<char>(changed[at] ^ 1 << at % 8);
    write_file("changed", changed);
    try {
      import_filter("changed", "valkey_bloom");
      ADD_FAILURE() << at;
    } catch (const error& e) {
      EXPECT_TRUE(e.code() == errc::damaged || e.code() == errc::incompatible) << at << ": " << e.what();
    }
  }
}

TEST(ValkeyBloom, DumpsOfAnotherLengthAreRefused) {
  for (const char* const name : {"valkey_bloom", "valkey_bloom_sparse", "valkey_bloom_layers"}) {
    const std::string dump = content_of(recorded(name + ".filter"s));
    for (std::size_t length = 0; length < dump.size(); length += length < 128 ? 1 : 7) {
      write_file("cut", dump.substr(0, length));
      EXPECT_ANY_THROW(open_filter("cut")) << name << ", " << length;
    }
    write_file("cut", dump + '\n');
    EXPECT_NO_THROW(open_filter("cut")) << name;
    write_file("cut", dump + "\n\n");
    EXPECT_ERROR(open_filter("cut"), errc::damaged, "length of the file");
  }
}

// Each has a matching checksum. The offsets are those of a filter with one layer of 480 bytes.
TEST(ValkeyBloom, NumbersThatContradictEachOtherAreRefused) {
  const std::string dump = content_of(recorded("valkey_bloom_fixed.filter"));
  const struct {
    std::size_t at;
    std::string bytes;
    const char* words;
  } changes[] = {{11, "\x00"s, "number of layers"},
                 {12, "\x05", "kind of a value"},
                 {15, std::string(8, '\xFF'), "target FPR"},
                 {24, std::string(8, '\0'), "ratio of the target FPRs"},
                 {33, "\x02", "mark of a random seed"},
                 {35, "\x42\x0C", "length of the bits"},
                 {37, "\x02", "version of a layer"},
                 {38, "\xE1", "length of the bits"},
                 {46, std::string(4, '\0'), "number of probes"},
                 {50, "x", "seed of a layer"},
                 {563, "\x00"s, "capacity"},
                 {566, "\x41\x91", "number of keys"}};
  ASSERT_EQ(sealed_dump(dump), dump);
  for (const auto& change : changes) {
    std::string changed = dump;
    changed.replace(change.at, change.bytes.size(), change.bytes);
    write_file("changed", sealed_dump(changed));
    EXPECT_ERROR(import_filter("changed", "valkey_bloom"), errc::damaged, change.words);
  }
}

TEST(ValkeyBloom, OtherVersionsAndTooManyProbesAreNamed) {
  std::string dump = content_of(recorded("valkey_bloom_fixed.filter"));
  dump[46] = '\0';
  dump[47] = '\x01';  // 256 probes
  write_file("probes", sealed_dump(dump));
  EXPECT_ERROR(open_filter("probes"), errc::incompatible,
               "more probes than bloomery supports: expected 255, found 256");

  for (const auto& [version, advice] : {std::pair{'\0', "newer module"}, {'\2', "newer version of bloomery"}}) {
    dump[9] = version;
    write_file("version", sealed_dump(dump));
    EXPECT_ERROR(open_filter("version"), errc::incompatible, "unknown version of the values of type bloomfltr");
    EXPECT_ERROR(open_filter("version"), errc::incompatible, advice);
  }
}

// A file of 100 bytes announces 2^40 bytes, which are not allocated.
TEST(ValkeyBloom, LengthsAreCheckedBeforeMemoryIsTaken) {
  std::string dump = content_of(recorded("valkey_bloom_fixed.filter")).substr(0, 100);
  for (const std::string& length : {"\x81\0\0\x01\0\0\0\0\0"s, "\xC3\x20\x81\0\0\x01\0\0\0\0\0"s}) {
    std::string changed = dump;
    changed.replace(35, 2, length);
    write_file("large", sealed_dump(changed));
    EXPECT_ERROR(open_filter("large"), errc::damaged, "");
  }
}

TEST(ValkeyBloom, FiltersThatHaveGrownAnswerAsTheServer) {
  const auto handle = open_filter(recorded("valkey_bloom_layers.filter"));

  const filter_facts facts = handle->info(info_depth::bits);

  for (const std::string& key : inserted_keys()) EXPECT_TRUE(handle->contains(key)) << key;
  EXPECT_EQ(positives_of(*handle), content_of(recorded("valkey_bloom_layers.positives")));
  ASSERT_EQ(facts.layers.size(), 3u);
  EXPECT_EQ(facts.layers[0].geometry, (geometry{960, 7}));
  EXPECT_EQ(facts.layers[1].geometry, (geometry{2208, 8}));
  EXPECT_EQ(facts.layers[1].insert_count, 200u);
  EXPECT_EQ(facts.parameters.target_fpr, 0.01);
  EXPECT_NEAR(facts.fill->estimated_keys->value, 303, 5 * facts.fill->estimated_keys->sigma);
  std::uint64_t found = 0;
  constexpr std::uint64_t queries = 400'000;
  for (std::uint64_t i = 0; i < queries; ++i) found += handle->contains("absent-" + std::to_string(i)) ? 1 : 0;
  const double rate = facts.fill->current_fpr;
  EXPECT_NEAR(static_cast<double>(found) / queries, rate, 5 * std::sqrt(rate / queries) + 0.05 * rate);
  EXPECT_ERROR(import_filter(recorded("valkey_bloom_layers.filter")), errc::incompatible, "3 layers");
}

}  // namespace
}  // namespace bloomery
