// Lost connections, killed clients and refusing servers: a shared filter on one server keeps every acknowledged key.
#include "model/killed_writer.hpp"
#include "redis/fixtures.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

class RedisFaults : public on_a_server<RedisFaults> {};

// ---- counts and lost connections ------------------------------------------------------------------------------------

std::uint64_t counted(test_server& server, const std::string& name, std::uint64_t shards) {
  std::uint64_t sum = 0;
  for (std::uint64_t s = 0; s < shards; ++s) {
    sum += std::stoull(server.command({"HGET", server.shard(name, s) + ":h", "count"}).text());
  }
  return sum;
}

TEST_F(RedisFaults, ACutNetworkCostsNoKeyAndOverfillsNoLayer) {
  for (const bool is_slow : {false, true}) {
    SCOPED_TRACE(is_slow ? "slow, requests are cut" : "replies are cut");
    fresh(sharded(growing(is_slow ? 100 : 1000), 2));
    proxy net(server->socket());
    if (is_slow) net.slow(milliseconds(1), 700);
    std::mt19937_64 random(1);
    const std::uint64_t batch = is_slow ? 20 : 100;
    std::uint64_t count = 0;
    {
      redis_filter f = redis_filter::open(net.address());
      for (int i = 0; i < (is_slow ? 12 : 40); ++i) {
        const auto bytes = static_cast<std::int64_t>(random() % (is_slow ? 20'000 : 12'000));
        is_slow ? net.cut_after_questions(bytes) : net.cut_after_answers(bytes);
        insist([&] { insert_all(f, keys_from(count, batch)); });
        count += batch;
        is_slow ? net.cut_after_questions(-1) : net.cut_after_answers(-1);
        ASSERT_EQ(count_found(f, keys_from(0, count)), count);
      }
    }

    EXPECT_GE(static_cast<double>(counted(*server, "x", 2)), static_cast<double>(count) * 0.98);
    EXPECT_LE(redis_filter::open(at("x")).info().rate_now, 0.01);
    EXPECT_GT(net.connections(), is_slow ? 1u : 10u);
  }
}

TEST_F(RedisFaults, ReservedRoomIsReleasedByAClientThatCloses) {
  redis_params wanted = sharded(growing(100'000), 1);
  redis_filter f = redis_filter::create(at("x"), wanted);
  f.insert(std::uint64_t{1});
  EXPECT_GT(counted(*server, "x", 1), 1u) << "room is reserved for more than one key, or this tests nothing";
  EXPECT_EQ(f.card().value, 1.0);

  f = redis_filter::open(at("x"));
  EXPECT_EQ(counted(*server, "x", 1), 1u) << "when another takes its place";

  f.insert(std::uint64_t{2});
  redis_filter g = redis_filter::open(at("x"));
  EXPECT_EQ(code_of([&] { g.replace(wanted, [](redis_filter&) {
                            throw error(errc::io, {"x", "", "", "", ""});
                          }); }),
            errc::io);
  f.insert(std::uint64_t{3});  // the marks change the shard version
  f = redis_filter::open(at("x"));
  EXPECT_EQ(counted(*server, "x", 1), 3u) << "when the filter was marked and is not any more";

  {
    std::vector<redis_filter> clients;
    for (int i = 0; i < 10; ++i) clients.push_back(redis_filter::open(at("x")));
    g.replace(wanted, [&](redis_filter&) {
      for (std::uint64_t i = 0; i < 10; ++i) clients[static_cast<std::size_t>(i)].insert(i);
      clients.pop_back();
    });
    for (redis_filter& c : clients) c.may_contain(std::uint64_t{1} << 40);  // so it switches to the new layer
  }
  EXPECT_EQ(g.info().inserted, 10u) << "when it was reserved in a filter that was still to come";
}

TEST_F(RedisFaults, ReservedRoomInAClosedLayerIsNotReleased) {
  redis_params wanted = sharded(growing(10'000), 1);
  std::uint64_t before = 0;
  {
    redis_filter f = redis_filter::create(at("x"), wanted);
    f.insert(std::uint64_t{1});
    redis_filter::create(at("x"), wanted).insert(std::uint64_t{2});
    ASSERT_GT(counted(*server, "x", 1), 2u);
    redis_filter g = redis_filter::open(at("x"));
    insert_all(g, keys_from(100, 11'000));
    ASSERT_EQ(server->command({"HGET", server->shard("x", 0) + ":h", "layers"}).text(), "0,1");
    g = redis_filter::open(at("x"));  // the reservation of the old handle is released
    before = counted(*server, "x", 1);
  }

  EXPECT_EQ(counted(*server, "x", 1), before) << "the newest layer would be overfilled";
}

TEST_F(RedisFaults, ClosingDoesNotWaitForAFrozenServer) {
  auto f = std::make_unique<redis_filter>(redis_filter::create(at("x"), growing(1'000'000)));
  f->insert(std::uint64_t{1});
  server->freeze();
  const auto begin = steady_clock::now();

  f.reset();

  const auto took = steady_clock::now() - begin;
  server->thaw();
  EXPECT_LT(took, redis_connection_options{}.time / 2) << "that of a call, which it is not to wait for";
}

TEST_F(RedisFaults, APresentKeyIsAcknowledgedOnlyByEnoughReplicas) {
  replicated_servers servers;
  test_server &replica = servers.replica, &master = servers.master;
  redis_filter f = redis_filter::create(master.address("x"), growing(1000));
  replica.freeze();
  f.insert(std::uint64_t{1});
  redis_options safe = {.connection = within(milliseconds(400)), .wait_replicas = 1};
  redis_filter g = redis_filter::open(master.address("x"), safe);

  const auto code = code_of([&] { g.insert(std::uint64_t{1}); });
  replica.thaw();

  EXPECT_EQ(code, errc::unavailable) << "it is on the master alone";
  insist([&] { g.insert(std::uint64_t{1}); });
  const redis_options quick = {.connection = within(milliseconds(300))};
  redis_filter of_replica = redis_filter::open(replica.address("x"), quick);
  EXPECT_TRUE(of_replica.may_contain(std::uint64_t{1}));
  EXPECT_EQ(code_of([&] { of_replica.insert(std::uint64_t{2}); }), errc::unavailable) << "a replica takes no writes";
  redis_options too_many = {.connection = within(milliseconds(800)), .wait_replicas = 2};
  redis_filter h = redis_filter::open(master.address("x"), too_many);
  const auto few = error_of([&] { h.insert(std::uint64_t{3}); });
  ASSERT_TRUE(few.has_value());
  EXPECT_EQ(few->code(), errc::unavailable);
  EXPECT_EQ(few->text().expected, "2");
  EXPECT_EQ(few->text().found, "1");
}

// ---- processes that die ---------------------------------------------------------------------------------------------

TEST_F(RedisFaults, ClientsMayBeKilledAtAnyMoment) {
  redis_filter f = redis_filter::create(at("x"), sharded(growing(50), 2));
  std::mt19937_64 random(5);
  constexpr std::uint64_t apart = 1'000'000, batch = 20;
  std::uint64_t sum = 0;
  for (std::uint64_t round = 0; round < (is_long() ? 100 : 10); ++round) {
    const auto wanted = static_cast<std::uint32_t>(1 + random() % 30);
    const auto done = bloomery_model::killed_writer(
        apart / batch, wanted, false, [] { return std::make_unique<redis_filter>(redis_filter::open(at("x"))); },
        [&](redis_filter& mine, std::uint64_t i) { insert_all(mine, keys_from(round * apart + batch * i, batch)); },
        [](redis_filter&) {});

    const std::uint64_t acknowledged = batch * done.batches;
    EXPECT_EQ(count_found(f, keys_from(round * apart, acknowledged)), acknowledged) << round;
    sum += acknowledged;
  }

  EXPECT_GT(sum, 500u);
  EXPECT_GE(static_cast<double>(counted(*server, "x", 2)), static_cast<double>(sum) * 0.98);
  EXPECT_LE(f.info().rate_now, 0.01);
  EXPECT_LE(static_cast<double>(count_found(f, keys_from(std::uint64_t{1} << 40, 50'000))), most_hits(0.01, 50'000));
}

TEST_F(RedisFaults, EightWritersAddNotALayerTooMany) {
  const std::uint64_t all = is_long() ? 1'000'000 : 100'000;
  const redis_params wanted = sharded(growing(100), 4);
  redis_filter alone = redis_filter::create(at("alone"), wanted);
  insert_all(alone, keys_from(0, all));
  redis_filter f = redis_filter::create(at("x"), wanted);
  constexpr std::uint64_t writers = 8;
  const std::uint64_t each = all / writers;
  in_threads(writers, [&](std::uint64_t w) {
    redis_filter mine = redis_filter::open(at("x"));
    std::mt19937_64 random(w);
    for (std::uint64_t i = 0, count = 0; i < each; i += count) {
      count = std::min<std::uint64_t>(1 + random() % 1000, each - i);
      insert_all(mine, keys_from(w * each + i, count));
    }
  });

  EXPECT_EQ(count_found(f, keys_from(0, all)), all);
  EXPECT_LE(f.info().layers, alone.info().layers + 1);
  EXPECT_LE(f.info().rate_now, 0.01);
  EXPECT_LE(static_cast<double>(count_found(f, keys_from(std::uint64_t{1} << 40, 50'000))), most_hits(0.01, 50'000));
}

TEST_F(RedisFaults, AcceptsTheDeclaredMaximumOfKeys) {
  for (const std::uint64_t maximum : {1000u, 3000u}) {
    for (const double rate : {0.1, 0.01, 1e-6}) {
      for (std::uint64_t attempt = 0; attempt < 6; ++attempt) {
        redis_params wanted = growing_to(maximum, integers(1, rate));
        wanted.filter.seed = attempt;
        wanted.shards = 1;
        redis_filter f = redis_filter::create(at(std::to_string(rate) + std::to_string(maximum + attempt)), wanted);
        const auto keys = keys_from(attempt << 32, maximum);
        EXPECT_EQ(code_of([&] { insert_all(f, keys); }), std::nullopt) << maximum << " at " << rate;
        EXPECT_EQ(count_found(f, keys), maximum);
        EXPECT_LE(f.info().rate_now, 1.1 * rate) << "as estimated from the bits";
      }
    }
  }
}

// ---- servers that refuse --------------------------------------------------------------------------------------------

TEST_F(RedisFaults, AFullServerIsReportedAndKeepsItsKeys) {
  test_server small({.config = {"maxmemory-policy noeviction"}});
  redis_filter f = redis_filter::create(small.address("x"), growing(100));
  insert_all(f, keys_from(0, 500));
  small.command({"CONFIG", "SET", "maxmemory", "1"});

  EXPECT_EQ(code_of([&] { insert_all(f, keys_from(1000, 5000)); }), errc::too_large);
  EXPECT_EQ(code_of([&] { redis_filter::create(small.address("y"), growing(100)); }), errc::too_large);
  EXPECT_EQ(count_found(f, keys_from(0, 500)), 500u);
  small.command({"CONFIG", "SET", "maxmemory", "0"});
  insert_all(f, keys_from(1000, 5000));

  EXPECT_EQ(count_found(f, keys_from(1000, 5000)), 5000u);
  EXPECT_LE(f.info().rate_now, 0.01);
  redis_filter y = redis_filter::create(small.address("y"), growing(100));
  EXPECT_TRUE(y.insert(std::uint64_t{1}));
}

TEST_F(RedisFaults, ACommandThatIsNotPermittedIsNamed) {
  redis_filter::create(at("fixed"), integers(1000, 0.01));
  redis_filter::create(at("grows"), growing(1000));
  for (const auto& [command, name] : {std::pair("bitfield", "fixed"), std::pair("evalsha", "grows")}) {
    redis_filter f = redis_filter::open(without(command, name));
    const auto e = error_of([&] { f.insert(std::uint64_t{1}); });
    ASSERT_TRUE(e.has_value()) << command;
    EXPECT_EQ(e->code(), errc::not_permitted);
    EXPECT_THAT(e->what(), testing::HasSubstr(command));
  }
  // A user who may only read can read, even after shards changed.
  redis_filter reader = redis_filter::open(limited({"+@connection", "+get", "+getrange", "+hgetall"}, "grows"));
  redis_filter writer = redis_filter::open(at("grows"));
  EXPECT_FALSE(reader.may_contain(std::uint64_t{1}));
  insert_all(writer, keys_from(0, 5000));
  EXPECT_EQ(count_found(reader, keys_from(0, 5000)), 5000u);
}

TEST_F(RedisFaults, KeysOfAnotherTypeAreAnError) {
  for (const char* part : {"m", "h", "0"}) {
    SCOPED_TRACE(part);
    server->command({"FLUSHALL"});
    redis_params wanted = sharded(growing(1000), 1);
    redis_filter::create(at("x"), wanted).insert(std::uint64_t{1});
    const std::string taken = *part == 'm' ? "{x}:m" : server->shard("x", 0) + ":" + part;
    server->command({"DEL", taken});
    server->command({"RPUSH", taken, "mine"});

    const auto code = code_of([&] {
      redis_filter g = redis_filter::open(at("x"));
      g.insert(std::uint64_t{2});
    });

    EXPECT_EQ(code, errc::incompatible);
    EXPECT_EQ(server->command({"LRANGE", taken, "0", "-1"}).reply().size(), 1u);
  }
}

TEST_F(RedisFaults, InvalidHeadersAreReportedAsDamage) {
  using texts = std::vector<std::string>;
  const std::vector<std::pair<std::string, texts>> lies = {
      {"layer0", {"18446744073709551615 8 1", "1 0 1", "1 255 1", "15 3 100", "", "1 1"}},
      {"layers", {"", "0,0", "1", "0,1,", "-1", "0,99999999999999999999"}},
      {"stamp", {"short"}},
      {"epoch", {"1"}},
      {"next", {"victim~0123456789abcdef"}}};
  const auto expect_errors = [&](const redis_params& p, const std::string& field, const std::string& value) {
    SCOPED_TRACE(p.filter.layout + " " + field + "=" + value);
    fresh(p).insert(std::uint64_t{1});
    for (std::uint64_t s = 0; s < 16; ++s) {
      const std::string shard = server->shard("x", s), layer = shard + ":0";
      server->command({"HSET", shard + ":h", field, value});
      server->command({"SETRANGE", layer, "0", "x"});
      const std::int64_t end = server->command({"STRLEN", layer}).integer() - 16;
      server->command({"SETRANGE", layer, std::to_string(end), "another stamp..."});
    }
    redis_filter f = redis_filter::open(at("x"));

    EXPECT_TRUE(code_of([&] { f.may_contain(std::uint64_t{1}); }).has_value());
    EXPECT_TRUE(code_of([&] { f.insert(std::uint64_t{2}); }).has_value());
  };
  for (const char* layout : {"split_block512", "blocked"}) {
    redis_params p = growing(1000);
    p.filter.layout = layout;
    for (const auto& [field, values] : lies) {
      for (const std::string& value : values) expect_errors(p, field, value);
    }
  }
}

TEST_F(RedisFaults, AHeaderWithALargerLayerIsReportedAsDamage) {
  redis_params wanted = sharded(growing(1000), 1);
  const redis_options with_copy = {.local_copy = true};
  for (const char* layer : {"layer0", "layer1"}) {
    SCOPED_TRACE(layer);
    server->command({"FLUSHALL"});
    redis_filter f = redis_filter::create(at("x"), wanted, with_copy);
    insert_all(f, keys_from(0, 2000));
    EXPECT_EQ(count_found(f, keys_from(0, 2000)), 2000u);
    const auto stamped =
        static_cast<std::uint64_t>(server->command({"STRLEN", server->shard("x", 0) + ":1"}).integer()) - 16;
    ASSERT_EQ(server->command({"HGET", server->shard("x", 0) + ":h", "layers"}).text(), "0,1");

    server->command({"HSET", server->shard("x", 0) + ":h", layer, "8388608 8 100000", "stamp", "another stamp..."});
    server->command({"SETRANGE", server->shard("x", 0) + ":1", std::to_string(stamped), "another stamp..."});

    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(code_of([&] { count_found(f, keys_from(1'000'000, 100)); }), errc::damaged);
    }
  }
}

}  // namespace
}  // namespace bloomery
