// Filters of RedisBloom and valkey-bloom: files that the modules wrote in a Redis server (record_redisbloom.py and
// record_valkey_bloom.py in tests/golden/foreign) answer as they do. tests/command/test_redisbloom_module.py and
// test_valkey_bloom_module.py let the modules read what bloomery writes.
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

// A dump of one layer. The format has the name of the scheme.
struct dump {
  std::string name;
  std::string scheme;
  geometry size;
  std::uint64_t capacity;
  double target_fpr;
  std::size_t salts;   // 1: a random seed
  std::uint64_t keys;  // as counted: BF.ADD does not add a key that it finds present
};

const dump dumps[] = {{"redisbloom", "redisbloom", {4416, 8}, 400, 0.01, 0, 303},
                      {"redisbloom_fixed", "redisbloom", {3840, 7}, 400, 0.01, 0, 303},
                      {"redisbloom_sparse", "redisbloom", {158'208, 11}, 10'000, 0.001, 0, 303},
                      {"redisbloom_power", "redisbloom", {4096, 8}, 371, 0.01, 0, 303},
                      {"valkey_bloom", "valkey_bloom", {3840, 7}, 400, 0.01, 1, 302},
                      {"valkey_bloom_fixed", "valkey_bloom", {3840, 7}, 400, 0.01, 0, 303},
                      {"valkey_bloom_sparse", "valkey_bloom", {143'776, 10}, 10'000, 0.001, 1, 303}};

// A file of three layers: the size of the second, and the number of keys of all.
struct grown {
  std::string name;
  geometry second;
  std::uint64_t keys;
};

const grown of_three_layers[] = {{"redisbloom_layers", {2496, 9}, 303},
                                 {"redisbloom_layers_chunks", {2496, 9}, 303},
                                 {"valkey_bloom_layers", {2208, 8}, 302}};

// Without the version of RDB and the checksum: the server states its own version; export states an early one, which
// more servers accept.
std::string without_end(const std::string& content) { return content.substr(0, content.size() - 10); }

TEST(ModuleDumps, HaveTheParametersOfTheServer) {
  for (const dump& d : dumps) {
    const any_filter filter = import_filter(recorded(d.name + ".filter"));

    EXPECT_EQ(filter.opened_from()->format, d.scheme) << d.name;
    EXPECT_EQ(filter.parameters().scheme, d.scheme) << d.name;
    EXPECT_EQ(filter.parameters().geometry, d.size) << d.name;
    EXPECT_EQ(filter.capacity(), d.capacity) << d.name;
    EXPECT_EQ(filter.parameters().target_fpr, d.target_fpr) << d.name;
    EXPECT_EQ(filter.parameters().salts().size(), d.salts) << d.name;
    EXPECT_EQ(filter.insert_count(), d.keys) << d.name;
  }
}

TEST(ModuleDumps, AnswerAsTheServer) {
  for (const dump& d : dumps) {
    const auto handle = open_filter(recorded(d.name + ".filter"));

    for (const std::string& key : inserted_keys()) EXPECT_TRUE(handle->contains(key)) << d.name << ": " << key;
    EXPECT_EQ(positives_of(*handle), content_of(recorded(d.name + ".positives"))) << d.name;
  }
}

TEST(ModuleDumps, AreWrittenAsTheServerWritesThem) {
  for (const std::string name : {"redisbloom", "redisbloom_fixed", "valkey_bloom", "valkey_bloom_fixed"}) {
    const std::string path = recorded(name + ".filter");
    const any_filter filter = import_filter(path);

    export_filter(filter, "again.rdb", filter.parameters().scheme);

    const std::string own = content_of("again.rdb");
    EXPECT_EQ(without_end(own), without_end(content_of(path))) << name;
    EXPECT_EQ(own, sealed_dump(own));
  }
}

TEST(ModuleDumps, OfFiltersBuiltHereAreThoseOfTheServer) {
  for (const auto& [scheme, theirs] : {std::pair{"redisbloom", "redisbloom"}, {"valkey_bloom", "valkey_bloom_fixed"}}) {
    any_filter filter(complete({.scheme = scheme, .capacity = 400, .target_fpr = 0.01}));
    for (const std::string& key : inserted_keys()) filter.insert(key);

    export_filter(filter, "built.rdb", scheme);

    EXPECT_EQ(without_end(content_of("built.rdb")), without_end(content_of(recorded(theirs + ".filter"s)))) << theirs;
  }
}

// Compressed bits and powers of two are written in another form.
TEST(ModuleDumps, SurviveEveryFormat) {
  for (const dump& d : dumps) {
    const any_filter filter = import_filter(recorded(d.name + ".filter"));
    for (const std::string_view format : {"redisbloom", "redisbloom_chunks", "valkey_bloom"}) {
      if (find_file_format(format)->schemes != d.scheme) continue;
      export_filter(filter, "again.foreign", format);
      const any_filter again = import_filter("again.foreign");

      EXPECT_EQ(again.opened_from()->format, format);
      EXPECT_TRUE(again == filter) << d.name;
      EXPECT_EQ(again.parameters(), filter.parameters()) << d.name;
      EXPECT_EQ(again.insert_count(), d.keys);
    }
    filter.save("own.bloom");
    EXPECT_TRUE(any_filter::open("own.bloom") == filter) << d.name;
  }
}

TEST(ModuleDumps, MayEndWithTheNewlineOfRedisCli) {
  for (const std::string name : {"redisbloom", "valkey_bloom"}) {
    const std::string content = content_of(recorded(name + ".filter"));
    write_file("dump", content + '\n');
    EXPECT_TRUE(import_filter("dump") == import_filter(recorded(name + ".filter")));

    for (const std::string& end : {"\r"s, "\n\n"s, "\r\n"s, "\0"s}) {
      write_file("dump", content + end);
      EXPECT_ERROR(import_filter("dump", name), errc::damaged, "length of the file");
    }
  }
}

// The signature says what the file was, so its damage is named.
TEST(ModuleDumps, AreRecognizedEvenIfDamaged) {
  for (const std::string name : {"redisbloom", "valkey_bloom"}) {
    const std::string content = content_of(recorded(name + ".filter"));
    write_file("cut", content.substr(0, content.size() - 20));

    EXPECT_EQ(recognize_format("cut"), find_file_format(name));
    EXPECT_THROW(open_filter("cut"), error);
    EXPECT_ERROR(import_filter("cut"), errc::damaged, "");
  }
}

TEST(ModuleDumps, AreRefusedIfAnyByteIsChanged) {
  for (const std::string name : {"redisbloom", "valkey_bloom"}) {
    const std::string content = content_of(recorded(name + "_sparse.filter"));
    for (std::size_t at = 0; at < content.size(); at += at < 120 ? 1 : 97) {
      std::string changed = content;
      changed[at] = static_cast<char>(changed[at] ^ 1 << at % 8);
      write_file("changed", changed);
      try {
        import_filter("changed", name);
        ADD_FAILURE() << name << ", " << at;
      } catch (const error& e) {
        EXPECT_TRUE(e.code() == errc::damaged || e.code() == errc::incompatible) << at << ": " << e.what();
      }
    }
  }
}

TEST(ModuleDumps, OfAnotherLengthAreRefused) {
  const struct {
    const char* name;
    const char* format;
    std::size_t layers_known;  // the length from which on the number of layers is refused first
  } cut[] = {{"redisbloom", "redisbloom", ~std::size_t{0}},
             {"redisbloom_sparse", "redisbloom", ~std::size_t{0}},
             {"redisbloom_layers", "redisbloom", 50},
             {"valkey_bloom", "valkey_bloom", ~std::size_t{0}},
             {"valkey_bloom_sparse", "valkey_bloom", ~std::size_t{0}},
             {"valkey_bloom_layers", "valkey_bloom", 34}};
  for (const auto& one : cut) {
    const std::string content = content_of(recorded(one.name + ".filter"s));
    for (std::size_t length = 0; length < content.size(); length += length < 128 ? 1 : 7) {
      write_file("cut", content.substr(0, length));
      const errc expected = length >= one.layers_known ? errc::incompatible : errc::damaged;
      EXPECT_ERROR(import_filter("cut", one.format), expected, "cut");
      EXPECT_THROW(open_filter("cut"), error) << one.name << ", " << length;
    }
  }
}

TEST(ModuleDumps, OfUnknownCapacityAreNotWritten) {
  for (const std::string_view format : {"redisbloom", "redisbloom_chunks", "valkey_bloom"}) {
    const std::string scheme(find_file_format(format)->schemes);
    const any_filter unknown(params{.scheme = scheme, .geometry = {128, 3}});
    EXPECT_ERROR(export_filter(unknown, "no.foreign", format), errc::incompatible, "capacity");
  }
}

// ---- several layers -------------------------------------------------------------------------------------------------

TEST(ModuleDumps, OfSeveralLayersAnswerAsTheServer) {
  for (const grown& g : of_three_layers) {
    const auto handle = open_filter(recorded(g.name + ".filter"));

    for (const std::string& key : inserted_keys()) EXPECT_TRUE(handle->contains(key)) << g.name << ": " << key;
    EXPECT_EQ(positives_of(*handle), content_of(recorded(g.name + ".positives"))) << g.name;
    EXPECT_FALSE(handle->capabilities().can_insert);
    EXPECT_ERROR(handle->insert("Madrid"), errc::not_permitted, "reading");
  }
}

TEST(ModuleDumps, OfSeveralLayersHaveTheRateOfAllLayers) {
  for (const grown& g : of_three_layers) {
    const auto handle = open_filter(recorded(g.name + ".filter"));

    const filter_facts facts = handle->info(info_depth::bits);

    ASSERT_EQ(facts.layers.size(), 3u);
    EXPECT_EQ(facts.layers[1].geometry, g.second);
    EXPECT_EQ(facts.layers[1].insert_count, 200u);
    EXPECT_EQ(facts.insert_count, g.keys);
    EXPECT_EQ(facts.parameters.target_fpr, 0.01);
    EXPECT_NEAR(facts.fill->estimated_keys->value, 303, 5 * facts.fill->estimated_keys->sigma);
    EXPECT_FALSE(judge_fpr(facts).is_broken());
    EXPECT_FALSE(facts.fill->is_exact);  // the layers share their hashes
    std::uint64_t found = 0;
    constexpr std::uint64_t queries = 400'000;
    for (std::uint64_t i = 0; i < queries; ++i) found += handle->contains("absent-" + std::to_string(i)) ? 1 : 0;
    const double rate = facts.fill->current_fpr;
    EXPECT_NEAR(static_cast<double>(found) / queries, rate, 5 * std::sqrt(rate / queries) + 0.05 * rate) << g.name;
    EXPECT_NEAR(*facts.expected_fpr, rate, 0.3 * rate);
  }
}

TEST(ModuleDumps, OfSeveralLayersAreExplainedByLayer) {
  for (const auto& [name, probes] : {std::pair{"redisbloom_layers", 8u}, {"valkey_bloom_layers", 7u}}) {
    const auto handle = open_filter(recorded(name + ".filter"s));

    const key_explanation there = handle->explain(std::vector<std::string>{"key-7"});
    const key_explanation absent = handle->explain(std::vector<std::string>{"other-1"});

    ASSERT_EQ(there.layers.size(), 3u);
    EXPECT_TRUE(there.maybe_present);
    EXPECT_FALSE(absent.maybe_present);
    EXPECT_EQ(there.layers[2].cells.size(), probes);  // the first layer is the last shown
    for (const explained_cell& cell : there.layers[2].cells) EXPECT_EQ(cell.value, 1u);
  }
}

TEST(ModuleDumps, OfSeveralLayersAreNotConverted) {
  for (const grown& g : of_three_layers) {
    EXPECT_ERROR(import_filter(recorded(g.name + ".filter")), errc::incompatible, "3 layers");
    EXPECT_ERROR(open_filter(recorded(g.name + ".filter"))->save("no.bloom"), errc::incompatible, "copied");
  }
}

}  // namespace
}  // namespace bloomery
