// The router with one server.
#include "redis/net/router.hpp"
#include "redis/fixtures.hpp"

namespace bloomery_tests {
namespace {

using bloomery::errc;
using bloomery::redis::batch;
using bloomery::redis::mode;
using bloomery::redis::reply;
using bloomery::redis::reply_type;
using bloomery::redis::router;
using bloomery::redis::script;
using bloomery::redis::slot_of;

class Router : public on_a_server<Router> {
 public:
  static server_options options() { return {.tcp = true}; }
};

TEST_F(Router, ReportsEachGroupOnceWithItsReplies) {
  for (const bloomery::redis_address& address : {server->address(), server->tcp_address()}) {
    router r(address, {});
    batch b;
    for (int i = 0; i < 1000; ++i) {
      const std::string key = "{" + std::to_string(i) + "}";
      b.begin(slot_of(key), mode::write);
      b.command({"SET", key, std::to_string(i * i)});
      b.command({"GETRANGE", key, "0", "-1"});
    }
    std::vector<int> told(1000);

    r.run(b, [&](std::size_t group, const reply& first) {
      ++told[group];
      EXPECT_EQ(first.text(), "OK");
      EXPECT_EQ(first.next().text(), std::to_string(group * group));
    });

    EXPECT_EQ(told, std::vector<int>(1000, 1));
  }
}

TEST_F(Router, ReadsEveryTypeOfReply) {
  const auto answer =
      server->command({"EVAL", "return {1, 'two', {3, {}}, {err='ERR four'}, {ok='FIVE'}, false, 7}", "0"});
  const reply r = answer.reply();

  ASSERT_TRUE(r.is(reply_type::array));
  ASSERT_EQ(r.size(), 7U);
  EXPECT_EQ(r[0].integer(), 1);
  EXPECT_EQ(r[1].text(), "two");
  EXPECT_EQ(r[2][0].integer(), 3);
  EXPECT_EQ(r[2][1].size(), 0U);
  EXPECT_TRUE(r[3].is_error());
  EXPECT_EQ(r[4].text(), "FIVE");
  EXPECT_TRUE(r[5].is_nil());
  EXPECT_EQ(r[6].integer(), 7);
}

TEST_F(Router, LoadsAScriptThatTheServerHasNot) {
  router r(server->address(), {});
  const script s{"return redis.call('INCRBY', KEYS[1], ARGV[1])"};
  server->command({"SCRIPT", "FLUSH"});
  for (const mode m : {mode::write, mode::once}) {
    batch b;
    for (int i = 0; i < 3; ++i) {
      b.begin(slot_of("n"), m);
      b.start_script(s, 1, 1);
      b.word("n");
      b.word(std::uint64_t{5});
    }
    int told = 0;

    r.run(b, [&](std::size_t, const reply& first) {
      EXPECT_EQ(first.integer() % 5, 0);
      ++told;
    });

    EXPECT_EQ(told, 3);
    server->command({"SCRIPT", "FLUSH"});
  }
  EXPECT_EQ(server->command({"GET", "n"}).text(), "30");
}

TEST_F(Router, LoadsAScriptOnceForAllGroupsThatMissIt) {
  router r(server->address(), {});
  const script s{"return redis.call('INCR', KEYS[1])"};
  server->command({"SCRIPT", "FLUSH"});
  reset_calls();
  batch b;
  for (int i = 0; i < 5000; ++i) {
    b.begin(0, mode::once);
    b.start_script(s, 1, 0);
    b.word("n");
  }

  r.run(b, [](std::size_t, const reply& first) { EXPECT_FALSE(first.is_error()) << first.text(); });

  EXPECT_EQ(server->command({"GET", "n"}).text(), "5000");
  EXPECT_EQ(calls_of("script|load"), 1U);
}

TEST_F(Router, RunsHundredsOfThousandsOfCommandsInOneBatch) {
  server->command({"SET", "k", std::string(65536, 'x')});
  router r(server->address(), {});
  for (const int group : {1, 128}) {
    batch b;
    for (int i = 0; i < 200'000; ++i) {
      if (i % group == 0) b.begin(slot_of("k"), mode::read);
      b.start(4);
      b.word("GETRANGE");
      b.word("k");
      b.word(static_cast<std::uint64_t>(i % 1000) * 64);
      b.word(static_cast<std::uint64_t>(i % 1000) * 64 + 63);
    }
    std::size_t bytes = 0;

    r.run(b, [&](std::size_t g, reply x) {
      for (std::uint32_t c = 0; c < b.groups()[g].commands; ++c, x = x.next()) bytes += x.text().size();
    });

    EXPECT_EQ(bytes, 200'000U * 64);
  }
}

TEST_F(Router, ContinuesAfterACallbackThatThrew) {
  router r(server->address(), {});
  batch b;
  for (int i = 0; i < 5; ++i) {
    b.begin(0, mode::read);
    b.command({"ECHO", std::to_string(i)});
  }

  EXPECT_THROW(r.run(b, [](std::size_t, const reply&) { throw 1; }), int);

  std::string all;
  r.run(b, [&](std::size_t, const reply& first) { all += first.text(); });
  EXPECT_EQ(all, "01234");
}

TEST_F(Router, ReportsThatNoServerListens) {
  bloomery::redis_address nowhere = server->address();
  nowhere.socket += "-not";
  router r(nowhere, within(std::chrono::milliseconds(100)));

  const auto thrown = error_of([&] { r.run_on_nodes({"PING"}); });

  ASSERT_TRUE(thrown);
  EXPECT_EQ(thrown->code(), errc::unavailable);
  EXPECT_EQ(thrown->text().where, nowhere.socket);
  EXPECT_EQ(thrown->text().found, "No such file or directory");
}

TEST_F(Router, ReportsAMissingServerAtOnce) {
  bloomery::redis_address no_socket = server->address();
  no_socket.socket += "-not";
  for (const bloomery::redis_address& address :
       {no_socket, bloomery::redis_address::parse("redis://127.0.0.1:1/f"),
        bloomery::redis_address::parse("redis+cluster://127.0.0.1:1,127.0.0.1:2/f")}) {
    router r(address, {});
    const auto begin = std::chrono::steady_clock::now();

    const auto thrown = error_of([&] { r.run_on_nodes({"PING"}); });

    ASSERT_TRUE(thrown);
    EXPECT_EQ(thrown->code(), errc::unavailable);
    EXPECT_EQ(thrown->text().what, "cannot connect");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  }
}

TEST_F(Router, SelectsTheDatabase) {
  bloomery::redis_address three = server->address();
  three.database = 3;
  router r(three, {});
  r.run_on_nodes({"SET", "only", "here"});

  EXPECT_TRUE(server->command({"GET", "only"}).reply().is_nil());
  EXPECT_EQ(r.run_on_nodes({"GET", "only"}).front().reply().text(), "here");
  three.database = 16;
  EXPECT_EQ(code_of([&] { router(three, {}).run_on_nodes({"PING"}); }), errc::invalid_argument);
}

TEST_F(Router, CountsNoReplicasWithoutReplicas) {
  router r(server->address(), {});
  EXPECT_EQ(r.wait_for_replicas(2, std::chrono::milliseconds(10)), 2U) << "nothing was written";
  batch b;
  b.begin(0, mode::write);
  b.command({"SET", "a", "b"});
  r.run(b, [](std::size_t, const reply&) {});

  EXPECT_EQ(r.wait_for_replicas(2, std::chrono::milliseconds(10)), 0U);
}

}  // namespace
}  // namespace bloomery_tests
