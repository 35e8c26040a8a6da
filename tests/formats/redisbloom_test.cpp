// What only filters of RedisBloom have: their numbers, and the chunks of BF.SCANDUMP. module_dumps_test.cpp has what
// they have in common with those of valkey-bloom.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/formats.hpp>

#include "formats/recorded.hpp"
#include "formats/sealed_dump.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;

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

}  // namespace
}  // namespace bloomery
