// Batches of commands: slots, encoding in the protocol, and digests of scripts.
#include "redis/net/batch.hpp"

#include <gtest/gtest.h>

#include <string>

namespace bloomery_tests {
namespace {

using bloomery::redis::batch;
using bloomery::redis::digest_of;
using bloomery::redis::mode;
using bloomery::redis::script;
using bloomery::redis::slot_of;

TEST(Slot, IsThatOfTheSpecification) {
  EXPECT_EQ(slot_of("123456789"), 0x31C3 % 16384);
  EXPECT_EQ(slot_of("foo"), 12182);
  EXPECT_EQ(slot_of(""), 0);
}

TEST(Slot, IsOfTheFirstTagThatIsNotEmpty) {
  EXPECT_EQ(slot_of("{foo}:h"), slot_of("foo"));
  EXPECT_EQ(slot_of("a{foo}{bar}"), slot_of("foo"));
  EXPECT_EQ(slot_of("{user1000}.following"), slot_of("{user1000}.followers"));
  EXPECT_NE(slot_of("foo{}{bar}"), slot_of("bar"));  // the first one is empty: all of the key counts
  EXPECT_EQ(slot_of("foo{{bar}}zap"), slot_of("{bar"));
  EXPECT_NE(slot_of("{foo"), slot_of("foo"));
}

TEST(Batch, WritesCommandsInGroups) {
  batch b;
  b.begin(7, mode::read);
  b.command({"GETRANGE", "k", "0", "63"});
  b.begin(8, mode::write);
  b.start(2);
  b.word("INCRBY");
  b.word(std::uint64_t{18446744073709551615U});
  b.command({"PING"});

  EXPECT_EQ(b.bytes(),
            "*4\r\n$8\r\nGETRANGE\r\n$1\r\nk\r\n$1\r\n0\r\n$2\r\n63\r\n"
            "*2\r\n$6\r\nINCRBY\r\n$20\r\n18446744073709551615\r\n*1\r\n$4\r\nPING\r\n");
  ASSERT_EQ(b.groups().size(), 2U);
  EXPECT_EQ(b.groups()[0].commands, 1U);
  EXPECT_EQ(b.groups()[1].commands, 2U);
  EXPECT_EQ(b.groups()[1].slot, 8);
  EXPECT_EQ(b.groups()[1].begin, b.groups()[0].end);
  EXPECT_EQ(b.groups()[1].end, b.bytes().size());
}

TEST(Script, HasTheDigestThatSha1sumPrints) {
  const script s{"return 1"};

  EXPECT_EQ(digest_of(s), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
}

}  // namespace
}  // namespace bloomery_tests
