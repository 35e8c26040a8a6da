// Local copies of closed layers: the requests that they save, and the presence of every acknowledged key.
#include "redis/filter/closed_layers.hpp"
#include "redis/fixtures.hpp"

#include <bit>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using redis::closed_layers;

TEST(ClosedLayers, AreCopiedWhenAQuarterOfTheirLinesWasWanted) {
  closed_layers copies(1 << 20);

  EXPECT_FALSE(copies.is_worth_a_copy(3, 0, 100, 24));
  EXPECT_TRUE(copies.is_worth_a_copy(3, 0, 100, 1));
  EXPECT_FALSE(copies.is_worth_a_copy(3, 0, 100, 100)) << "it is under way";
  EXPECT_TRUE(copies.find(3, 0).empty());

  copies.keep(3, 0, std::string(6400, 'x'));
  ASSERT_EQ(copies.find(3, 0).size(), 6400u);
  EXPECT_EQ(copies.find(3, 0)[6399], 'x');
  EXPECT_TRUE(copies.find(2, 0).empty());
  EXPECT_TRUE(copies.find(3, 1).empty());
}

TEST(ClosedLayers, TakeNoMoreMemoryThanTheyMay) {
  closed_layers copies(10 * closed_layers::line_bytes);

  EXPECT_FALSE(copies.is_worth_a_copy(0, 0, 11, 11));
  EXPECT_TRUE(copies.is_worth_a_copy(0, 1, 6, 6));
  EXPECT_FALSE(copies.is_worth_a_copy(0, 2, 6, 6));
  EXPECT_TRUE(copies.is_worth_a_copy(1, 0, 4, 4));
  copies.retain(0, {});
  EXPECT_TRUE(copies.is_worth_a_copy(2, 2, 6, 6));
  EXPECT_FALSE(copies.is_worth_a_copy(2, 3, 1, 1));
  copies.clear();
  EXPECT_TRUE(copies.is_worth_a_copy(2, 3, 10, 10));

  closed_layers none(0);
  EXPECT_FALSE(none.is_worth_a_copy(0, 0, 1, 1));
}

TEST(ClosedLayers, NeedNoMemoryUntilTheyAreReadAndCanBeReadAgain) {
  closed_layers copies(10 * closed_layers::line_bytes);
  ASSERT_TRUE(copies.is_worth_a_copy(0, 0, 4, 4));
  copies.keep(0, 0, std::string(4 * 64, 'x'));
  ASSERT_TRUE(copies.is_worth_a_copy(0, 1, 6, 6));
  copies.keep(0, 1, "too short");

  copies.give_up_unread();

  EXPECT_TRUE(copies.find(0, 1).empty());
  EXPECT_EQ(copies.find(0, 0).size(), 4u * 64);
  EXPECT_TRUE(copies.is_worth_a_copy(0, 1, 6, 1)) << "enough lines were wanted before";
  copies.keep(0, 1, std::string(6 * 64, 'y'));
  copies.give_up_unread();
  EXPECT_EQ(copies.find(0, 1).size(), 6u * 64);
}

TEST(ClosedLayers, AreForgottenPerShard) {
  closed_layers copies(1 << 20);
  for (const std::uint64_t shard : {1u, 2u, 3u}) {
    for (const std::int64_t layer : {0, 1, 2}) {
      ASSERT_TRUE(copies.is_worth_a_copy(shard, layer, 1, 1));
      copies.keep(shard, layer, std::string(64, 'x'));
    }
  }

  const std::vector<std::int64_t> left = {1, 3};
  copies.retain(2, left);

  for (const std::uint64_t shard : {1u, 2u, 3u}) {
    for (const std::int64_t layer : {0, 1, 2}) {
      EXPECT_EQ(copies.find(shard, layer).empty(), shard == 2 && layer != 1) << shard << " " << layer;
    }
  }
}

class RedisClosedLayers : public on_a_server<RedisClosedLayers> {
 protected:
  // Lookups of many keys, until the client has copies of the closed layers.
  static void fetch_copies(redis_filter& f, const std::vector<std::uint64_t>& keys) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(count_found(f, keys), keys.size());
  }
};

const redis_params one_shard = sharded(growing(100), 1);

TEST_F(RedisClosedLayers, ManyLookupsReadTheNewestLayerOnly) {
  constexpr std::uint64_t keys = 100'000;
  redis_filter f = filled(sharded(growing(100), 4), keys_from(0, keys));
  ASSERT_GE(f.info().layers, 3u);
  redis_filter reader = redis_filter::open(at("x"));
  fetch_copies(reader, keys_from(0, keys));  // fetches the copies

  reset_calls();
  const std::uint64_t strangers = count_found(reader, keys_from(std::uint64_t{1} << 40, 16'000));

  EXPECT_LE(static_cast<double>(strangers), most_hits(0.01, 16'000));
  // A line per key, and a stamp for each group of 256.
  EXPECT_LE(calls_of("getrange"), 16'000u + 2 * (16'000 / 256 + 4));
  reset_calls();
  EXPECT_TRUE(reader.may_contain(std::uint64_t{0}));
  EXPECT_LE(calls_of("getrange"), 2u);

  redis_filter other = redis_filter::open(at("x"), {.closed_layers_bytes = 0});
  EXPECT_EQ(count_found(other, keys_from(0, keys)), keys);
  reset_calls();
  EXPECT_EQ(count_found(other, keys_from(std::uint64_t{1} << 40, 16'000)), strangers) << "the same answers";
  EXPECT_GE(calls_of("getrange"), 3 * 16'000u);
}

// A writer sends its bits for the newest layer; before they arrive, the layer is closed, and copied by a reader.
TEST_F(RedisClosedLayers, WritesToALayerAreRepeatedIfItIsClosedMeanwhile) {
  constexpr std::uint64_t late = 1'000'000'000;
  redis_filter f = filled(one_shard, keys_from(0, 50));
  proxy net(server->socket());
  redis_filter writer = redis_filter::open(net.address());
  redis_filter reader = redis_filter::open(at("x"));
  EXPECT_TRUE(writer.insert(late));
  net.before("BITFIELD", [&] {
    insert_all(f, keys_from(50, 2000));
    fetch_copies(reader, keys_from(0, 2050));
  });

  insert_all(writer, keys_from(late + 1, 20));

  ASSERT_TRUE(net.has_acted());
  EXPECT_EQ(count_found(reader, keys_from(late, 21)), 21u);
  redis_filter other = redis_filter::open(at("x"));
  EXPECT_EQ(count_found(other, keys_from(late, 21)), 21u);
  EXPECT_EQ(count_found(other, keys_from(0, 2050)), 2050u);
  EXPECT_LE(other.info().rate_now, 0.01);
}

// As above, and the writer dies before it writes them again: its bits must not make the keys present for others.
TEST_F(RedisClosedLayers, WritesOfADeadWriterToAClosedLayerDoNotCount) {
  constexpr std::uint64_t late = 1'000'000'000;
  redis_filter f = filled(one_shard, keys_from(0, 50));
  const std::vector<explained_layer> before = f.explain(late).layers;
  ASSERT_EQ(before.size(), 1u);
  insert_all(f, keys_from(50, 2000));
  redis_filter reader = redis_filter::open(at("x"));
  fetch_copies(reader, keys_from(0, 2050));
  for (const auto& cell : before[0].cells) {
    server->command({"SETBIT", before[0].server_key, std::to_string(cell.offset), "1"});
  }

  redis_filter second = redis_filter::open(at("x"));
  EXPECT_TRUE(second.insert(late));

  EXPECT_TRUE(reader.may_contain(late));
  f.drop();
  EXPECT_THAT(names("*x*"), testing::IsEmpty());
}

// A server that restarts from an older snapshot and grows again: local copies show keys that the server has lost.
TEST_F(RedisClosedLayers, AKeyLostByAServerIsInsertedAgain) {
  test_server own;
  redis_filter f = redis_filter::create(own.address("x"), one_shard);
  insert_all(f, keys_from(0, 30));
  own.command({"SAVE"});
  insert_all(f, keys_from(1000, 30));
  insert_all(f, keys_from(2000, 3000));
  EXPECT_EQ(count_found(f, keys_from(1000, 30)), 30u);
  EXPECT_EQ(count_found(f, keys_from(2000, 3000)), 3000u);
  own.kill_hard();
  own.restart();
  redis_filter other = redis_filter::open(own.address("x"));
  insert_all(other, keys_from(2000, 3000));
  ASSERT_LT(count_found(other, keys_from(1000, 30)), 30u) << "the server has lost them";

  insert_all(f, keys_from(1000, 30));

  EXPECT_EQ(found_at(own.address("x"), keys_from(1000, 30)), 30u);
}

TEST_F(RedisClosedLayers, AreCopiedAfterAFailedCall) {
  redis_filter f = filled(one_shard, keys_from(0, 3000));
  const std::string layer = server->shard("x", 0) + ":0c";
  const std::string dump = server->command({"DUMP", layer}).text();
  server->command({"DEL", layer});
  redis_filter reader = redis_filter::open(at("x"));
  EXPECT_EQ(code_of([&] { count_found(reader, keys_from(0, 3000)); }), errc::damaged);
  server->command({"RESTORE", layer, "0", dump});
  fetch_copies(reader, keys_from(0, 3000));

  reset_calls();
  EXPECT_TRUE(reader.may_contain(std::uint64_t{0}));

  EXPECT_LE(calls_of("getrange"), 2u) << "the newest layer, and the stamp";
}

// The server returns to the state before the growth without losing a connection: a closed layer takes keys again.
TEST_F(RedisClosedLayers, AreReadFromTheServerIfTheyAreTheNewestAgain) {
  redis_filter f = filled(one_shard, keys_from(0, 30));
  std::vector<std::pair<std::string, std::string>> saved;
  for (const std::string& name : names("{x~*")) saved.emplace_back(name, server->command({"DUMP", name}).text());
  insert_all(f, keys_from(1000, 3000));
  redis_filter reader = redis_filter::open(at("x"));
  fetch_copies(reader, keys_from(0, 30));
  fetch_copies(reader, keys_from(1000, 3000));
  for (const std::string& name : names("{x~*")) server->command({"DEL", name});
  for (const auto& [name, dump] : saved) server->command({"RESTORE", name, "0", dump});

  redis_filter other = redis_filter::open(at("x"));
  insert_all(other, keys_from(50'000, 40));

  EXPECT_EQ(count_found(reader, keys_from(50'000, 40)), 40u);
  EXPECT_EQ(count_found(reader, keys_from(0, 30)), 30u);
  EXPECT_LE(count_found(reader, keys_from(1000, 3000)), 300u);
}

// As above, and the lost connection is noticed by the call itself. The key may be new or not.
TEST_F(RedisClosedLayers, AKeyFoundOnlyInACopyMayBeNewAfterALostConnection) {
  redis_filter f = filled(sharded(windowed(integers(1000, 0.01)), 1), keys_from(0, 100));
  const generation_aside aside(*server, "x");
  proxy net(server->socket());
  redis_filter writer = redis_filter::open(net.address());
  fetch_copies(writer, keys_from(0, 100));
  server->command({"SETRANGE", aside.older, "0", std::string(static_cast<std::size_t>(aside.bytes) - 16, '\0')});
  net.cut();

  std::vector<std::uint8_t> is_new(10, 7);
  writer.insert(std::span<const std::uint64_t>(keys_from(0, 10)), is_new);

  EXPECT_EQ(is_new, std::vector<std::uint8_t>(10, maybe_new));
  EXPECT_EQ(writer.insert(std::span<const std::uint64_t>(keys_from(10, 10))), 10u);
  EXPECT_EQ(count_found(f, keys_from(0, 20)), 20u);
}

// A client that does not know of the growth writes to the former name of a layer, while another client reads the bits.
TEST_F(RedisClosedLayers, AreReadUnderTheirNewName) {
  redis_filter f = filled(one_shard, keys_from(0, 50));
  const std::string layer = server->shard("x", 0) + ":0";
  const std::int64_t bytes = server->command({"STRLEN", layer}).integer() - 16;
  proxy net(server->socket());
  redis_filter reader = redis_filter::open(net.address());
  net.before("GETRANGE", [&] {
    insert_all(f, keys_from(1000, 2000));
    server->command({"SETRANGE", layer, std::to_string(bytes - 1), "\1"});
  });

  std::int64_t ones = 0;
  reader.read_lines(std::uint64_t{1} << 30, [&](const redis_lines& some) {
    for (const std::uint8_t byte : some.bytes) ones += std::popcount(byte);
  });

  ASSERT_TRUE(net.has_acted());
  const std::int64_t closed = server->command({"BITCOUNT", layer + "c"}).integer();
  EXPECT_GT(closed, 100);
  EXPECT_EQ(ones, closed);
}

TEST_F(RedisClosedLayers, GrowthWithoutPermissionChangesNothing) {
  redis_filter f = filled(one_shard, keys_from(0, 30));
  const std::vector<std::string> before = names("*x*");
  redis_filter limited = redis_filter::open(without("rename"));

  EXPECT_EQ(code_of([&] { insert_all(limited, keys_from(1000, 3000)); }), errc::not_permitted);

  EXPECT_EQ(names("*x*"), before);
  EXPECT_EQ(f.info().layers, 1u);
  insert_all(f, keys_from(1000, 3000));
  EXPECT_EQ(count_found(f, keys_from(0, 30)), 30u);
  EXPECT_EQ(count_found(f, keys_from(1000, 3000)), 3000u);
}

// Lookups are answered by the copy. An insert must not acknowledge what the server does not have.
TEST_F(RedisClosedLayers, AreDamagedToWritersIfTheServerEvictsThem) {
  redis_filter f = filled(one_shard, keys_from(0, 3000));
  fetch_copies(f, keys_from(0, 3000));
  ASSERT_EQ(server->command({"DEL", server->shard("x", 0) + ":0c"}).integer(), 1);

  EXPECT_EQ(code_of([&] { insert_all(f, keys_from(0, 30)); }), errc::damaged);
  EXPECT_EQ(count_found(f, keys_from(0, 30)), 30u);
  redis_filter other = redis_filter::open(at("x"));
  EXPECT_EQ(code_of([&] { count_found(other, keys_from(0, 30)); }), errc::damaged);
}

TEST_F(RedisClosedLayers, AreTheOlderGenerationsOfAWindow) {
  redis_filter f = filled(sharded(windowed(integers(1000, 0.01)), 1), keys_from(0, 100));
  const generation_aside aside(*server, "x");
  redis_filter reader = redis_filter::open(at("x"));
  fetch_copies(reader, keys_from(0, 100));

  reset_calls();
  EXPECT_EQ(count_found(reader, keys_from(0, 100)), 100u);
  EXPECT_LE(calls_of("getrange"), 3u) << "stamps only";
  EXPECT_LE(static_cast<double>(count_found(reader, keys_from(std::uint64_t{1} << 40, 2000))), most_hits(0.01, 2000));
}

}  // namespace
}  // namespace bloomery
