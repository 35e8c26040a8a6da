// The transport in situations that are rare with real servers, played by a scripted server.
#include "redis/fixtures.hpp"
#include "redis/net/connection.hpp"
#include "redis/net/router.hpp"
#include "redis/stage.hpp"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

// ---- simulated host names -------------------------------------------------------------------------------------------

namespace bloomery_tests {
namespace {

std::atomic<int> look_ups = 0;  // of names that end in ".test"

}  // namespace
}  // namespace bloomery_tests

extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** found) {
  using system_function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto system = reinterpret_cast<system_function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const std::string_view whole = name == nullptr ? "" : name;
  if (!whole.ends_with(".test")) return system(name, service, hints, found);
  ++bloomery_tests::look_ups;
  if (whole == "again.test") return EAI_AGAIN;
  if (whole != "two.test") return EAI_NONAME;
  addrinfo* second = nullptr;
  if (const int problem = system("127.0.0.2", service, hints, found); problem != 0) return problem;
  if (const int problem = system("127.0.0.1", service, hints, &second); problem != 0) return problem;
  (*found)->ai_next = second;
  return 0;
}

namespace bloomery_tests {
namespace {

using bloomery::errc;
using bloomery::redis_address;
using bloomery::redis_connection_options;
using bloomery::redis_filter;
using bloomery::redis::connection;
using bloomery::redis::mode;
using bloomery::redis::reply;
using bloomery::redis::router;
using std::chrono::milliseconds;

bool shows(const bloomery::error& e, std::string_view text) {
  return std::string_view(e.what()).find(text) != std::string_view::npos;
}

// ---- replicas that have what was written ----------------------------------------------------------------------------

// Each connection is to another server: the first takes the write, and the others have one replica each.
std::optional<std::string> takes_a_write_and_is_lost(std::size_t number, const stage::words& command) {
  if (command[0] == "SET") return "+OK\r\n";
  if (number == 0) return std::nullopt;
  return command[0] == "WAIT" ? ":1\r\n" : "+PONG\r\n";
}

TEST(Transport, CountsNoReplicasOfAnotherConnectionThanTheOneThatWrote) {
  stage server(takes_a_write_and_is_lost);
  router r(server.address(), {});

  run(r, mode::write, {"SET", "k", "v"});
  EXPECT_EQ(code_of([&] { r.wait_for_replicas(1, milliseconds(100)); }), errc::unavailable);
  EXPECT_EQ(run(r, mode::read, {"PING"}), "PONG") << "the next call is another one";
  EXPECT_EQ(r.wait_for_replicas(1, milliseconds(100)), 1U) << "nothing was written";
}

TEST(Transport, CountsNoReplicasOfAConnectionThatCameAfterTheOneThatWrote) {
  stage server(takes_a_write_and_is_lost);
  router r(server.address(), {});

  run(r, mode::write, {"SET", "k", "v"});
  run(r, mode::read, {"PING"});
  EXPECT_EQ(code_of([&] { r.wait_for_replicas(1, milliseconds(100)); }), errc::unavailable);

  run(r, mode::write, {"SET", "k", "v"});
  EXPECT_EQ(r.wait_for_replicas(1, milliseconds(100)), 1U) << "the same connection";
}

TEST(Transport, ForgetsWritesOfCallsThatAreOver) {
  stage server(takes_a_write_and_is_lost);
  router r(server.address(), {});
  run(r, mode::write, {"SET", "k", "v"});
  run(r, mode::read, {"PING"});

  r.forget_writes();
  run(r, mode::write, {"SET", "k", "v"});

  EXPECT_EQ(r.wait_for_replicas(1, milliseconds(100)), 1U);
}

// ---- passwords ------------------------------------------------------------------------------------------------------

TEST(Transport, ShowsNoPasswordThatAServerRepeats) {
  for (const char* answer : {"-ERR unknown command 'AUTH', with args beginning with: 'hunter2'\r\n",
                             "-LOADING hunter2\r\n", "-hunter2\r\n"}) {
    for (const bool cluster : {false, true}) {
      SCOPED_TRACE(answer);
      stage server([&](std::size_t, const stage::words&) { return answer; });
      redis_address a = server.address(cluster);
      a.password = "hunter2";

      const auto thrown = error_of([&] { router(a, within(milliseconds(60))).run_on_nodes({"PING"}); });

      ASSERT_TRUE(thrown);
      EXPECT_FALSE(shows(*thrown, "hunter2")) << thrown->what();
    }
  }
}

TEST(Transport, ReportsAnInvalidPassword) {
  stage server([](std::size_t, const stage::words&) { return "-WRONGPASS invalid username-password pair\r\n"; });
  redis_address a = server.address();
  a.password = "hunter2";

  const auto thrown = error_of([&] { router(a, {}).run_on_nodes({"PING"}); });

  ASSERT_TRUE(thrown);
  EXPECT_EQ(thrown->code(), errc::not_permitted);
  EXPECT_TRUE(thrown->text().found.starts_with("WRONGPASS")) << thrown->what();
}

// ---- time -----------------------------------------------------------------------------------------------------------

TEST(Transport, TriesTheNextAddressOfANameIfOneIsSilent) {
  stage server([](std::size_t, const stage::words&) { return "+PONG\r\n"; });
  redis_address a = server.address();
  a.endpoints[0].host = "two.test";
  // The other address, at the same port: no process accepts connections, and the queue is full.
  sockaddr_in other{};
  other.sin_family = AF_INET;
  other.sin_port = htons(server.port());
  ASSERT_EQ(::inet_pton(AF_INET, "127.0.0.2", &other.sin_addr), 1);
  const auto* const where = reinterpret_cast<const sockaddr*>(&other);
  std::array<int, 5> sockets{};
  for (int& fd : sockets) fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(sockets[0], where, sizeof other), 0);
  ASSERT_EQ(::listen(sockets[0], 0), 0);
  for (std::size_t i = 1; i < sockets.size(); ++i) (void)::connect(sockets[i], where, sizeof other);
  redis_connection_options o = within(milliseconds(20'000));
  o.connect_time = milliseconds(400);

  EXPECT_EQ(router(a, o).run_on_nodes({"PING"}).front().reply().text(), "PONG");
  for (const int fd : sockets) ::close(fd);
}

TEST(Transport, AsksForANameOnceMoreOnlyIfThereIsNone) {
  connection c;
  look_ups = 0;
  c.open({"again.test", 1, {}}, nullptr, milliseconds(100));
  EXPECT_EQ(look_ups, 1);
  EXPECT_EQ(c.failure(), ::gai_strerror(EAI_AGAIN));

  look_ups = 0;
  c.open({"none.test", 1, {}}, nullptr, milliseconds(100));
  EXPECT_EQ(look_ups, 2);
  EXPECT_EQ(c.failure(), ::gai_strerror(EAI_NONAME));
}

TEST(Transport, GivesASlowNodeMoreTimeToReportItsSlots) {
  if (test_server::program().empty()) GTEST_SKIP() << test_server::how_to_get_one;
  test_server server({.tcp = true, .config = {"cluster-enabled yes"}});
  ASSERT_EQ(server.command({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}).text(), "OK");
  wait_until("the slots are there", [&] {
    return server.command({"CLUSTER", "INFO"}).text().find("cluster_state:ok") != std::string::npos;
  });
  proxy network(server.socket());
  network.slow(milliseconds(350), 65536);  // there, and back again
  redis_address a = server.tcp_address();
  a.cluster = true;
  a.endpoints[0].port = network.port();
  redis_connection_options o = within(milliseconds(20'000));
  o.connect_time = milliseconds(10'000);
  router r(a, o);

  EXPECT_EQ(run(r, mode::write, {"SET", "k", "v"}), "OK");
}

TEST(Transport, TakesAnyTimeButNone) {
  stage server([](std::size_t, const stage::words& command) { return command[0] == "WAIT" ? ":3\r\n" : "+OK\r\n"; });
  redis_connection_options o = within(milliseconds::max());
  o.connect_time = milliseconds::max();
  router r(server.address(), o);

  EXPECT_EQ(run(r, mode::write, {"SET", "k", "v"}), "OK");
  EXPECT_EQ(r.wait_for_replicas(3, milliseconds::max()), 3U);
  for (const milliseconds none : {milliseconds(0), milliseconds(-1), milliseconds::min()}) {
    for (const redis_connection_options& wrong :
         {redis_connection_options{.time = none}, redis_connection_options{.connect_time = none}})
      EXPECT_EQ(code_of([&] { router(server.address(), wrong); }), errc::invalid_argument);
  }
}

TEST(Transport, EndsSoonWhenItIsToStop) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  redis_connection_options o = within(milliseconds(30'000));
  o.stop_descriptor = ends[0];
  stage silent([](std::size_t, const stage::words&) { return ""; });
  for (const bool cluster : {false, true}) {
    const auto thrown = error_of([&] { router(silent.address(cluster), o).run_on_nodes({"PING"}); });

    ASSERT_TRUE(thrown);
    EXPECT_EQ(thrown->code(), errc::unavailable);
    EXPECT_TRUE(shows(*thrown, "stopped")) << thrown->what();
  }
  stage well([](std::size_t, const stage::words&) { return "+PONG\r\n"; });
  EXPECT_EQ(router(well.address(), o).run_on_nodes({"PING"}).front().reply().text(), "PONG");
  ::close(ends[0]);
  ::close(ends[1]);
}

// ---- errors ---------------------------------------------------------------------------------------------------------

TEST(Transport, UnderstandsErrorsWithinAScriptsError) {
  stage server([](std::size_t connection, const stage::words&) {
    const std::string in_script = "-ERR Error running script (call to f_0): @user_script: 1: -";
    return connection == 0   ? in_script + "READONLY You can't write against a read only replica.\r\n"
           : connection == 1 ? in_script + "OOM command not allowed when used memory > 'maxmemory'.\r\n"
                             : "+OK\r\n";
  });
  router r(server.address(), {});

  const auto thrown = error_of([&] { run(r, mode::write, {"EVALSHA", "0", "0"}); });

  EXPECT_EQ(server.connections(), 2U) << "another one after READONLY";
  ASSERT_TRUE(thrown);
  EXPECT_EQ(thrown->code(), errc::too_large) << thrown->what();
}

TEST(Transport, ReportsNoEarlierProblem) {
  std::uint16_t own = 0;
  stage node([&](std::size_t, const stage::words& command) {
    return command[0] == "CLUSTER" ? all_slots_at({own}) : std::string();
  });
  own = node.port();
  const int nobody = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  redis_address a = node.address(true);
  a.endpoints.insert(a.endpoints.begin(), {"127.0.0.1", bind_to_loopback(nobody)});
  router r(a, within(milliseconds(300)));

  const auto thrown = error_of([&] { run(r, mode::read, {"GET", "k"}); });
  ::close(nobody);

  ASSERT_TRUE(thrown);
  EXPECT_EQ(thrown->code(), errc::unavailable);
  EXPECT_EQ(thrown->text().found, "") << "the first endpoint was refused, and the second one helped";
}

// ---- maps -----------------------------------------------------------------------------------------------------------

TEST(Transport, TakesAMapWithAThousandNodesOfARangeAndNoMore) {
  std::uint16_t own = 0;
  std::size_t others = 999;
  stage server([&](std::size_t, const stage::words& command) {
    if (command[0] != "CLUSTER") return std::string("+OK\r\n");
    std::vector<std::uint16_t> ports{own};
    for (std::size_t i = 0; i < others; ++i) ports.push_back(static_cast<std::uint16_t>(1 + i));
    return all_slots_at(ports);
  });
  own = server.port();
  {
    router r(server.address(true), within(milliseconds(20'000)));
    EXPECT_EQ(run(r, mode::read, {"GET", "k"}), "OK");
    EXPECT_EQ(r.run_on_nodes({"PING"}).size(), 1U);
  }

  others = 1000;
  const auto thrown = error_of([&] {
    router r(server.address(true), within(milliseconds(100)));
    run(r, mode::read, {"GET", "k"});
  });
  ASSERT_TRUE(thrown);
  EXPECT_TRUE(shows(*thrown, "too many nodes")) << thrown->what();
}

TEST(Transport, ReadsFromAMasterThatHasBecomeAReplica) {
  std::atomic<bool> swapped = false;
  std::atomic<int> moved = 0;
  std::atomic<int> read_at_first = 0;
  std::array<std::uint16_t, 2> ports{};
  // As a server does: a replica answers reads only of those who said READONLY, and writes never.
  const auto answer = [&](std::size_t self, std::vector<bool>& readers, std::size_t number,
                          const stage::words& command) {
    readers.resize(std::max(readers.size(), number + 1));
    const std::size_t master = swapped ? 1 : 0;
    if (command[0] == "CLUSTER") return all_slots_at({ports[master], ports[1 - master]});
    if (command[0] == "READONLY") {
      readers[number] = true;
      return std::string("+OK\r\n");
    }
    if (self == master) return std::string("+OK\r\n");
    if (command[0] == "GET" && readers[number]) {
      if (self == 0) ++read_at_first;
      return std::string("+OK\r\n");
    }
    ++moved;
    return "-MOVED 0 127.0.0.1:" + std::to_string(ports[master]) + "\r\n";
  };
  std::array<std::vector<bool>, 2> readers;
  stage first([&](std::size_t n, const stage::words& c) { return answer(0, readers[0], n, c); });
  stage second([&](std::size_t n, const stage::words& c) { return answer(1, readers[1], n, c); });
  ports = {first.port(), second.port()};
  router r(first.address(true), {.read_from_replicas = true});
  run(r, mode::write, {"SET", "k", "v"});
  run(r, mode::read, {"GET", "k"});

  swapped = true;
  wait_until("it knows of the change", [&] {
    run(r, mode::write, {"SET", "k", "v"});
    run(r, mode::read, {"GET", "k"});
    return read_at_first > 0;
  });

  const int before = moved;
  for (int i = 0; i < 5; ++i) run(r, mode::read, {"GET", "k"});
  EXPECT_EQ(moved, before);
}

TEST(Transport, AvoidsAnUnreachableReplicaForAWhile) {
  std::atomic<bool> well = false;
  std::atomic<int> answered = 0;
  std::array<std::uint16_t, 2> ports{};
  stage master([&](std::size_t, const stage::words& command) {
    return command[0] == "CLUSTER" ? all_slots_at({ports[0], ports[1]}) : std::string("+OK\r\n");
  });
  stage replica([&](std::size_t, const stage::words& command) -> std::optional<std::string> {
    if (!well) return std::nullopt;
    if (command[0] == "GET") ++answered;
    return "+OK\r\n";
  });
  ports = {master.port(), replica.port()};
  router r(master.address(true), {.read_from_replicas = true});

  for (int i = 0; i < 20; ++i) EXPECT_EQ(run(r, mode::read, {"GET", "k"}), "OK");

  EXPECT_LT(replica.connections(), 20U) << "not one for each call";
  well = true;
  wait_until("it is asked again", [&] {
    run(r, mode::read, {"GET", "k"});
    return answered > 0;
  });
}

// ---- with servers ---------------------------------------------------------------------------------------------------

TEST(Transport, ReportsAnEncryptedCertificateKeyWithoutAPrompt) {
  if (test_server::program().empty()) GTEST_SKIP() << test_server::how_to_get_one;
  test_server server({.tls = true});
  const std::string key = server.file("encrypted.key");
  ASSERT_EQ(std::system(("openssl pkey -in " + server.file("client.key") + " -aes256 -passout pass:sesame -out " + key +
                         " 2>/dev/null >/dev/null")
                            .c_str()),
            0);
  redis_connection_options o;
  o.certificate_authorities = server.file("ca.crt");
  o.certificate = server.file("client.crt");
  o.certificate_key = key;

  const auto thrown = error_of([&] { router(server.tcp_address(), o).run_on_nodes({"PING"}); });

  ASSERT_TRUE(thrown);
  EXPECT_EQ(thrown->code(), errc::invalid_argument);
  EXPECT_EQ(thrown->text().where, key);
  EXPECT_NE(thrown->text().what.find("encrypted"), std::string::npos) << thrown->what();
}

TEST(Transport, WaitsForReplicasThoughTheConnectionWasLostBetweenCalls) {
  if (test_server::program().empty()) GTEST_SKIP() << test_server::how_to_get_one;
  replicated_servers servers;
  proxy network(servers.master.socket());
  redis_filter f =
      redis_filter::create(network.address(), {.filter = {.capacity = 1000, .target_fpr = 0.01}}, {.wait_replicas = 1});

  for (const char* key : {"a", "b", "c"}) {
    network.cut();
    EXPECT_TRUE(f.insert(key));
  }
}

}  // namespace
}  // namespace bloomery_tests
