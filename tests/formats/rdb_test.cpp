// Parts of the RDB format of Redis. module_dumps_test.cpp has files that Redis wrote.
#include "formats/rdb.hpp"

#include "support/test.hpp"

namespace bloomery {
namespace {

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

TEST(Rdb, HasTheChecksumOfRedis) {
  EXPECT_EQ(rdb::crc64(0, bytes_of("123456789")), 0xE9C6D914C4B8D9CAu);  // of crc64.c in Redis
  EXPECT_EQ(rdb::crc64(rdb::crc64(0, bytes_of("1234")), bytes_of("56789")), 0xE9C6D914C4B8D9CAu);
  EXPECT_EQ(rdb::crc64(0, {}), 0u);
}

TEST(Rdb, ReadsTheLengthsThatItWrites) {
  for (const std::uint64_t length :
       {0ull, 1ull, 63ull, 64ull, 16'383ull, 16'384ull, 0xFFFF'FFFFull, 0x1'0000'0000ull, ~0ull}) {
    std::vector<std::uint8_t> bytes;
    rdb::append_length(bytes, length);

    rdb::reader in(bytes);

    EXPECT_EQ(bytes.size(), rdb::bytes_of_length(length));
    EXPECT_EQ(in.length(), length);
    EXPECT_TRUE(in.is_valid());
    EXPECT_EQ(in.at(), bytes.size());
    EXPECT_EQ(in.length(), 0u);
    EXPECT_FALSE(in.is_valid());
  }
}

TEST(Rdb, RefusesLengthsThatRedisDoesNotWrite) {
  const std::vector<std::vector<std::uint8_t>> all = {
      {0xC0}, {0x82}, {0x40, 63}, {0x80, 0, 0, 0, 1}, {0x81, 0, 0, 0, 0, 1, 2, 3, 4}, {0x80, 1}};
  for (const std::vector<std::uint8_t>& bytes : all) {
    rdb::reader in(bytes);
    EXPECT_EQ(in.length(), 0u);
    EXPECT_FALSE(in.is_valid()) << int{bytes[0]};
  }
}

// "abc" and a copy of 7 bytes from 3 bytes before, then of 264 bytes from 1 byte before.
TEST(Rdb, ExpandsLiteralsAndOverlappingCopies) {
  const std::vector<std::uint8_t> from = {2, 'a', 'b', 'c', 5 << 5, 2, 7 << 5, 255, 0};
  std::vector<std::uint8_t> into(3 + 7 + 264);

  ASSERT_TRUE(rdb::expand_lzf(from, into));

  EXPECT_EQ(std::string(into.begin(), into.end()), "abcabcabca" + std::string(264, 'a'));
}

TEST(Rdb, RefusesDamagedCompressedData) {
  std::vector<std::uint8_t> into(10);
  const std::vector<std::vector<std::uint8_t>> all = {
      {},                               // too short
      {9, 'a'},                         // literals beyond the end
      {2, 'a', 'b', 'c', 5 << 5},       // no distance
      {2, 'a', 'b', 'c', 5 << 5, 3},    // before the beginning
      {2, 'a', 'b', 'c', 6 << 5, 2},    // more than the output
      {2, 'a', 'b', 'c', 7 << 5},       // no length
      {2, 'a', 'b', 'c', 4 << 5, 2},    // less than the output
      {10, 1, 2, 3, 4, 5, 6, 7, 8, 9},  // more literals than the output
  };
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_FALSE(rdb::expand_lzf(all[i], into)) << i;
}

}  // namespace
}  // namespace bloomery
