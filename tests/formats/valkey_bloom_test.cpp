// What only filters of valkey-bloom have. module_dumps_test.cpp has what they have in common with those of RedisBloom.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/formats.hpp>

#include "formats/recorded.hpp"
#include "formats/sealed_dump.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;

// The number of keys of a full filter: BF.ADD adds a layer.
TEST(ValkeyBloom, MoreKeysThanTheCapacityAreStatedAsTheCapacity) {
  any_filter filter(complete({.scheme = "valkey_bloom", .capacity = 10, .target_fpr = 0.01}));
  for (int i = 0; i < 25; ++i) filter.insert("key-" + std::to_string(i));

  export_filter(filter, "full.rdb", "valkey_bloom");

  EXPECT_EQ(import_filter("full.rdb").insert_count(), 10u);
  EXPECT_TRUE(import_filter("full.rdb") == filter);
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

}  // namespace
}  // namespace bloomery
