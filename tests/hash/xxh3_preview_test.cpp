// The hashes of RocksDB's filters, compared with those of RocksDB (tests/golden/foreign/record.sh).
#include "hash/xxh3_preview.hpp"
#include "formats/recorded.hpp"
#include "hash/leveldb.hpp"
#include "support/test.hpp"

#include <bloomery/hash.hpp>

#include <fstream>
#include <string>

namespace bloomery {
namespace {

// As in tests/peers/rocksdb.cpp.
std::string key_of(std::size_t bytes) {
  std::string key;
  for (std::size_t i = 0; i < bytes; ++i) key += static_cast<char>(197 * i + bytes + 31 * (i / 256));
  return key;
}

TEST(HashesOfRocksdb, AreThoseOfRocksdbForKeysOfAllLengths) {
  std::ifstream file(bloomery_tests::recorded("rocksdb.hashes"));
  std::size_t bytes = 0;
  std::uint64_t hash64 = 0;
  std::uint32_t hash32 = 0;
  int count = 0;
  bool has_negative_end = false;

  for (; file >> std::dec >> bytes >> std::hex >> hash64 >> hash32; ++count) {
    const std::string key = key_of(bytes);

    EXPECT_EQ(hashes::xxh3_preview(key), hash64) << bytes;
    EXPECT_EQ(hashes::leveldb_32(key, 0xBC9F1D34, hashes::last_bytes::are_signed), hash32) << bytes;

    EXPECT_NE(xxh3_64{}(key).hash64, hash64) << bytes;
    has_negative_end = has_negative_end || hashes::leveldb_32(key, 0xBC9F1D34) != hash32;
  }

  EXPECT_EQ(count, 438);
  EXPECT_EQ(bytes, 3201u);
  EXPECT_TRUE(has_negative_end);
}

// From each byte on, so that no read is aligned.
TEST(HashesOfRocksdb, DoNotDependOnTheAddress) {
  const std::string key = key_of(1100);
  for (std::size_t shift = 1; shift < 9; ++shift) {
    const std::string moved = std::string(shift, 'x') + key;
    EXPECT_EQ(hashes::xxh3_preview(std::string_view(moved).substr(shift)), hashes::xxh3_preview(key));
  }
}

}  // namespace
}  // namespace bloomery
