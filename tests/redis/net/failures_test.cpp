// The router under failures: servers that die, refuse commands, load data or are not servers; networks that are cut or
// slow; TLS.
#include "redis/fixtures.hpp"
#include "redis/net/router.hpp"
#include "redis/stage.hpp"

namespace bloomery_tests {
namespace {

using bloomery::errc;
using bloomery::redis_address;
using bloomery::redis_connection_options;
using bloomery::redis::batch;
using bloomery::redis::mode;
using bloomery::redis::reply;
using bloomery::redis::router;
using bloomery::redis::script;
using std::chrono::milliseconds;

class Failure : public with_own_servers {};

TEST_F(Failure, OfAPasswordIsReportedWithoutThePassword) {
  test_server server({.config = {"requirepass right"}});
  redis_address wrong = server.address();
  wrong.password = "sesame";
  redis_address none = server.address();
  redis_address right = server.address();
  right.password = "right";
  redis_address nobody = right;
  nobody.user = "nobody";

  EXPECT_EQ(router(right, {}).run_on_nodes({"PING"}).front().reply().text(), "PONG");
  for (const redis_address& a : {wrong, nobody}) {
    const auto thrown = error_of([&] { router(a, {}).run_on_nodes({"PING"}); });
    ASSERT_TRUE(thrown);
    EXPECT_EQ(thrown->code(), errc::not_permitted);
    EXPECT_EQ(std::string(thrown->what()).find("sesame"), std::string::npos);
    EXPECT_EQ(std::string(thrown->what()).find("right"), std::string::npos);
  }
  router r(none, {});
  EXPECT_EQ(code_of([&] { run(r, mode::read, {"GET", "k"}); }), errc::not_permitted);
}

TEST_F(Failure, OfPermissionsMemoryAndTypesHasItsOwnCode) {
  test_server server({.config = {"user reader on >pw ~* +get", "rename-command BITFIELD BITFIELD-OFF"}});
  redis_address a = server.address();
  a.user = "reader";
  a.password = "pw";
  router reader(a, {});
  router all(server.address(), {});
  run(all, mode::write, {"SET", "k", "text"});
  run(all, mode::write, {"HSET", "h", "f", "v"});

  EXPECT_NO_THROW(run(reader, mode::read, {"GET", "k"}));
  const auto thrown = error_of([&] { run(reader, mode::write, {"SET", "k", "v"}); });
  ASSERT_TRUE(thrown);
  EXPECT_EQ(thrown->code(), errc::not_permitted);
  EXPECT_NE(thrown->text().hint.words().find("ACL"), std::string::npos);
  EXPECT_EQ(code_of([&] { run(all, mode::write, {"BITFIELD", "k", "GET", "u1", "0"}); }), errc::not_permitted);
  EXPECT_EQ(code_of([&] { run(all, mode::read, {"GET", "h"}); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { run(all, mode::read, {"GETRANGE", "k", "x", "y"}); }), errc::io);
  server.command({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(code_of([&] { run(all, mode::write, {"SET", "more", "v"}); }), errc::too_large);
}

TEST_F(Failure, OfAWriteToAReplicaEndsWithTheTimeLimitOrThePromotion) {
  test_server master({.tcp = true});
  test_server replica;
  replica.command({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
  router r(replica.address(), within(milliseconds(150)));

  const auto thrown = error_of([&] { run(r, mode::write, {"SET", "k", "v"}); });
  ASSERT_TRUE(thrown);
  EXPECT_EQ(thrown->code(), errc::unavailable);
  EXPECT_TRUE(thrown->text().found.starts_with("READONLY")) << thrown->what();

  router patient(replica.address(), {});
  std::thread promotion([&] {
    std::this_thread::sleep_for(milliseconds(50));
    replica.command({"REPLICAOF", "NO", "ONE"});
  });
  batch many;
  const script add{"return redis.call('INCR', KEYS[1])"};
  for (int i = 0; i < 100; ++i) {
    many.begin(0, mode::once);
    many.command({"INCR", "n"});
    many.begin(0, mode::once);
    many.start_script(add, 1, 0);
    many.word("n");
  }
  EXPECT_NO_THROW(patient.run(many, [](std::size_t, const reply& first) { EXPECT_FALSE(first.is_error()); }));
  promotion.join();
  EXPECT_EQ(replica.command({"GET", "n"}).text(), "200");
}

TEST_F(Failure, OfAServerThatLoadsItsDataIsRetried) {
  test_server server({.append_only = true, .config = {"appendfsync everysec"}});
  router r(server.address(), {});
  run(r, mode::write, {"SET", "k", std::string(100'000, 'x')});
  batch more;
  for (int i = 0; i < 8000; ++i) {  // it looks at its clients after each 1024 commands that it has loaded
    more.begin(0, mode::write);
    more.command({"APPEND", "k", "more"});
  }
  r.run(more, [](std::size_t, const reply&) {});
  server.end();
  server.config().push_back("key-load-delay 50");  // microseconds for each command: its own help for tests
  server.config().push_back("loading-process-events-interval-bytes 1024");
  server.restart(false);
  wait_until("it loads", [&] {
    router hasty(server.address(), within(milliseconds(400)));
    const auto thrown = error_of([&] { run(hasty, mode::read, {"GETRANGE", "k", "0", "2"}); });
    return thrown && thrown->text().found.starts_with("LOADING");
  });

  std::string answer;
  EXPECT_NO_THROW(answer = run(r, mode::read, {"GETRANGE", "k", "0", "2"}));

  EXPECT_EQ(answer, "xxx");
}

TEST_F(Failure, OfTheNetworkIsRetriedOnlyForCommandsThatMayRunTwice) {
  test_server server;
  proxy network(server.socket());
  router r(network.address("filter"), {});
  std::string answer;
  run(r, mode::once, {"INCR", "warm"});

  for (const bool cut_answers : {true, false}) {
    if (cut_answers) {
      network.cut_after_answers(2);
    } else {
      network.cut_after_questions(10);
    }
    EXPECT_NO_THROW(answer = run(r, mode::write, {"SET", "k", "v"}));
    EXPECT_EQ(answer, "OK");
  }

  server.command({"SET", "n", "0"});
  network.cut_after_answers(2);
  EXPECT_EQ(code_of([&] { run(r, mode::once, {"INCR", "n"}); }), errc::unavailable);
  EXPECT_EQ(server.command({"GET", "n"}).text(), "1") << "the reply was lost, but the command ran exactly once";
  network.cut_after_questions(10);
  EXPECT_EQ(code_of([&] { run(r, mode::once, {"INCR", "n"}); }), errc::unavailable);
  EXPECT_EQ(server.command({"GET", "n"}).text(), "1");
}

TEST_F(Failure, OfALaterCommandRepeatsNoCommandThatMustNotRunTwice) {
  std::atomic<int> increments = 0;
  std::atomic<int> gets = 0;
  stage server([&](std::size_t, const stage::words& command) {
    if (command[0] == "INCR") return ":" + std::to_string(++increments) + "\r\n";
    return std::string(++gets == 1 ? "-TRYAGAIN Multiple keys request during rehashing of slot\r\n" : "+v\r\n");
  });
  router r(server.address(), {});
  const auto run_both = [&](mode of_group) {
    batch b;
    b.begin(0, of_group);
    b.command({"INCR", "n"});
    b.command({"GET", "k"});
    r.run(b, [](std::size_t, const reply&) {});
  };

  EXPECT_EQ(code_of([&] { run_both(mode::once); }), errc::unavailable);
  EXPECT_EQ(increments, 1);

  gets = 0;
  EXPECT_EQ(code_of([&] { run_both(mode::write); }), std::nullopt);
  EXPECT_EQ(increments, 3) << "the whole group ran again";
}

TEST_F(Failure, OfAConnectionMarksGroupsThatMayHaveRunTwiceAndAnswersThatMayBeLost) {
  test_server server;
  proxy network(server.socket());
  router r(network.address("filter"), {});
  const script s{"return redis.call('SETRANGE', KEYS[1], 0, 'v')"};
  batch b;
  b.begin(0, mode::write);
  b.command({"SET", "k", "v"});
  b.begin(0, mode::write);
  b.start_script(s, 1, 0);
  b.word("k");
  std::vector<bool> twice(2);
  const auto run_both = [&] { r.run(b, [&](std::size_t g, const reply&) { twice[g] = r.may_have_run_twice(g); }); };

  run_both();  // the script is loaded
  EXPECT_EQ(twice, (std::vector<bool>{false, false})) << "a group that was refused has not run";
  EXPECT_EQ(r.counters().retries, 1U);
  EXPECT_FALSE(r.has_lost_answers());

  network.instead_of_answer_to("SET", "");
  run_both();
  EXPECT_EQ(twice, (std::vector<bool>{true, true}));
  EXPECT_TRUE(r.has_lost_answers()) << "those of the first call";
  EXPECT_EQ(r.counters().reconnects, 1U);
  EXPECT_EQ(r.counters().retries, 3U);
  EXPECT_EQ(r.possible_restarts(), 1U) << "unless INFO shows another run id, it may be another process";

  r.forget_answers();
  network.cut();
  run_both();
  EXPECT_EQ(twice, (std::vector<bool>{false, false}));
  EXPECT_FALSE(r.has_lost_answers()) << "nothing was answered before on the connection that was lost";
  EXPECT_EQ(r.counters().exchanges, 3U);
  EXPECT_EQ(r.groups_run(), 6U);
}

TEST_F(Failure, OfAConnectionThatWasIdleIsNoFailure) {
  test_server server;
  router r(server.address(), {});
  for (int i = 0; i < 20; ++i) {
    run(r, mode::once, {"INCR", "n"});
    server.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  }
  EXPECT_EQ(server.command({"GET", "n"}).text(), "20");
}

TEST_F(Failure, OfAStoppedNetworkIsReportedInTime) {
  test_server server;
  proxy network(server.socket());
  router r(network.address("f"), within(milliseconds(200)));
  run(r, mode::write, {"SET", "k", "v"});

  network.stop();
  const auto begin = std::chrono::steady_clock::now();
  const auto thrown = error_of([&] { run(r, mode::read, {"GET", "k"}); });
  const auto spent = std::chrono::steady_clock::now() - begin;
  network.stop(false);

  ASSERT_TRUE(thrown);
  EXPECT_EQ(thrown->code(), errc::unavailable);
  EXPECT_GE(spent, milliseconds(200));
  EXPECT_LT(spent, milliseconds(5000));
  EXPECT_EQ(run(r, mode::read, {"GET", "k"}), "v") << "not the late answer of another call";
}

TEST_F(Failure, IsNotReportedOfASlowNetwork) {
  test_server server;
  server.command({"SET", "k", std::string(100'000, 'x')});
  proxy network(server.socket());
  network.slow(milliseconds(1), 3000);
  router r(network.address("f"), {});
  batch b;
  for (int i = 0; i < 3000; ++i) {
    b.begin(0, mode::read);
    b.command({"GETRANGE", "k", std::to_string(i), std::to_string(i + 63)});
  }
  std::size_t told = 0;

  r.run(b, [&](std::size_t, const reply& first) { told += first.text().size() / 64; });

  EXPECT_EQ(told, 3000U);
}

// Both sides are full: the server cannot write, since we do not read, and so reads no more.
TEST_F(Failure, DoesNotHappenToABatchThatFillsAllBuffers) {
  test_server server({.tls = true});
  server.command({"SET", "k", std::string(20'000, 'x')});
  batch b;
  const std::string long_word(20'000, 'y');
  for (int i = 0; i < 2000; ++i) {
    b.begin(0, mode::write);
    b.command({"SET", "l", long_word});
    b.command({"GET", "k"});
    b.command({"ECHO", "short"});
  }
  for (const redis_address& address : {server.address(), server.tcp_address()}) {
    router r(address, {.certificate_authorities = server.file("ca.crt")});
    std::size_t bytes = 0;
    r.run(b, [&](std::size_t, const reply& first) { bytes += first.next().text().size(); });
    EXPECT_EQ(bytes, 2000U * 20'000);
  }
}

// ---- peers that are not servers -------------------------------------------------------------------------------------

// Replies to each command with the same bytes.
stage::actor always(const std::string& bytes) {
  return [bytes](std::size_t, const stage::words&) { return bytes; };
}

TEST_F(Failure, OfAPeerThatIsNotAServerIsReported) {
  std::string integers;
  for (int i = 0; i < 10'000; ++i) integers += ":1\r\n";
  const std::vector<std::pair<std::string, bool>> lies = {
      {"HTTP/1.1 400 Bad Request\r\n\r\n", false},
      {std::string(5000, 'x'), true},
      {"+OK\r\n+and more\r\n", false},
      {integers, true},
      {"*1\r\n", true},
      {"$999999999999\r\n", false},
      {"*2000000000\r\n" + integers, true},
      {"+" + std::string(100'000, 'x'), true},
  };
  for (const auto& [bytes, endless] : lies) {
    SCOPED_TRACE(bytes.substr(0, 20));
    stage server(always(bytes), endless ? std::optional(milliseconds(0)) : std::nullopt);
    router r(server.address(), within(milliseconds(5000)));

    EXPECT_EQ(code_of([&] {
                for (int i = 0; i < 3; ++i) run(r, mode::read, {"GET", "k"});
              }),
              errc::damaged);
  }
}

// Just fast enough to extend the time limit with each byte: this must end, too.
TEST_F(Failure, OfAnEndlessReplyIsReported) {
  stage server(always("$33554432\r\n" + std::string(64 << 10, 'x')), milliseconds(10));
  router r(server.address(), within(milliseconds(30)));

  EXPECT_EQ(code_of([&] { run(r, mode::read, {"GET", "k"}); }), errc::unavailable);
}

TEST_F(Failure, OfAServerWithInvalidSlotsIsReportedInTime) {
  for (const char* bytes :
       {"*0\r\n", "+OK\r\n", "*1\r\n*0\r\n", "*1\r\n:1\r\n", "*1\r\n*3\r\n:0\r\n:99999\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:5\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n", "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:0\r\n",
        "-MOVED 1 :0\r\n", "-MOVED\r\n"}) {
    SCOPED_TRACE(bytes);
    stage server(always(bytes));
    router r(server.address(true), within(milliseconds(60)));

    EXPECT_TRUE(code_of([&] { run(r, mode::read, {"GET", "k"}); }));
  }
  for (const char* bytes :
       {"-MOVED 1 :1\r\n", "-MOVED \r\n", "-MOVED 99999 a\r\n", "-ASK 1 127.0.0.1:1\r\n", "-TRYAGAIN x\r\n",
        "-CLUSTERDOWN x\r\n", "-NOSCRIPT x\r\n", "-READONLY x\r\n", "-LOADING x\r\n"}) {
    SCOPED_TRACE(bytes);
    stage server(always(bytes));
    router r(server.address(), within(milliseconds(60)));
    EXPECT_TRUE(code_of([&] { run(r, mode::read, {"GET", "k"}); }));
  }
}

// ---- TLS ------------------------------------------------------------------------------------------------------------

TEST_F(Failure, OfTrustIsReportedForTlsServers) {
  test_server server({.tls = true, .config = {"bind 127.0.0.1 127.0.0.2"}});
  redis_connection_options trusting;
  trusting.certificate_authorities = server.file("ca.crt");
  trusting.time = milliseconds(5000);
  batch b;
  for (int i = 0; i < 2000; ++i) {
    const std::string text(static_cast<std::size_t>(i) * 10, 'x');
    b.begin(0, mode::write);
    b.command({"ECHO", text});
  }
  for (const char* host : {"127.0.0.1", "localhost"}) {
    redis_address a = server.tcp_address();
    a.endpoints[0].host = host;
    router r(a, trusting);
    std::size_t right = 0;
    r.run(b, [&](std::size_t g, const reply& first) { right += first.text().size() == g * 10 ? 1 : 0; });
    EXPECT_EQ(right, 2000U);
  }

  const auto untrusted =
      error_of([&] { router(server.tcp_address(), within(milliseconds(5000))).run_on_nodes({"PING"}); });
  ASSERT_TRUE(untrusted);
  EXPECT_EQ(untrusted->code(), errc::not_permitted) << untrusted->what();
  redis_address other_name = server.tcp_address();
  other_name.endpoints[0].host = "127.0.0.2";  // the server listens there, too, but its certificate is not for it
  const auto mistaken = error_of([&] { router(other_name, trusting).run_on_nodes({"PING"}); });
  ASSERT_TRUE(mistaken);
  EXPECT_EQ(mistaken->code(), errc::not_permitted) << mistaken->what();
  EXPECT_NE(mistaken->text().what.find("mismatch"), std::string::npos) << mistaken->what();
  test_server plain({.tcp = true});
  redis_address not_tls = plain.tcp_address();
  not_tls.tls = true;
  redis_connection_options quick = trusting;
  quick.time = milliseconds(200);
  EXPECT_EQ(code_of([&] { router(not_tls, quick).run_on_nodes({"PING"}); }), errc::unavailable);
  redis_connection_options no_file = trusting;
  no_file.certificate_authorities = server.file("none");
  EXPECT_EQ(code_of([&] { router(server.tcp_address(), no_file).run_on_nodes({"PING"}); }), errc::invalid_argument);
}

TEST_F(Failure, OfAMissingClientCertificateIsReported) {
  test_server server({.tls = true, .config = {"tls-auth-clients yes"}});
  redis_connection_options options;
  options.certificate_authorities = server.file("ca.crt");
  options.time = milliseconds(300);
  EXPECT_EQ(code_of([&] { router(server.tcp_address(), options).run_on_nodes({"PING"}); }), errc::unavailable);

  options.certificate = server.file("client.crt");
  options.certificate_key = server.file("client.key");
  options.time = milliseconds(5000);

  EXPECT_EQ(router(server.tcp_address(), options).run_on_nodes({"PING"}).front().reply().text(), "PONG");
}

}  // namespace
}  // namespace bloomery_tests
