// Sentinels: the master that they name is used, verified and replaced, and their replies are not trusted.
#include <bloomery/redis/address.hpp>

#include "redis/fixtures.hpp"
#include "redis/net/batch.hpp"
#include "redis/net/router.hpp"
#include "redis/stage.hpp"

#include <mutex>

namespace bloomery_tests {
namespace {

using bloomery::errc;
using bloomery::redis_address;
using bloomery::redis::mode;
using bloomery::redis::router;
using std::chrono::milliseconds;

std::string bulk(const std::string& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; }

std::string place_reply(const std::string& host, const std::string& port) { return "*2\r\n" + bulk(host) + bulk(port); }

// A server that answers ROLE, and to all else with its reply, and keeps what it was sent.
class acting_server {
 public:
  acting_server(std::string role, std::string answer) : role_(std::move(role)), answer_(std::move(answer)) {}

  std::string port() const { return std::to_string(stage_.port()); }
  std::vector<std::string> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }

 private:
  std::string role_;
  std::string answer_;
  std::mutex mutex_;
  std::vector<std::string> heard_;
  stage stage_{[this](std::size_t, const stage::words& command) {
    const std::lock_guard lock(mutex_);
    heard_.push_back(command[0]);
    return command[0] == "ROLE" ? "*2\r\n" + bulk(role_) + ":0\r\n" : answer_;
  }};
};

redis_address behind(const stage& sentinel) {
  redis_address a = sentinel.address();
  a.master = "main";
  return a;
}

TEST(Sentinel, IsAskedForTheMasterByItsName) {
  acting_server master("master", "+here\r\n");
  std::vector<std::string> asked;
  stage sentinel([&](std::size_t, const stage::words& command) {
    asked = command;
    return place_reply("127.0.0.1", master.port());
  });
  router r(behind(sentinel), {});

  EXPECT_EQ(run(r, mode::write, {"GET", "k"}), "here");
  EXPECT_EQ(asked, (std::vector<std::string>{"SENTINEL", "get-master-addr-by-name", "main"}));
  EXPECT_EQ(r.run_on_nodes({"PING"}).front().node, "127.0.0.1:" + master.port());
  EXPECT_EQ(master.heard(), (std::vector<std::string>{"ROLE", "GET", "PING"}));
  EXPECT_EQ(sentinel.connections(), 1U) << "once for each connection";
}

TEST(Sentinel, IsAskedAgainWhenTheNodeIsNotAMaster) {
  acting_server stale("slave", "+stale\r\n");
  acting_server master("master", "+here\r\n");
  stage sentinel([&](std::size_t connection, const stage::words&) {
    return place_reply("127.0.0.1", connection < 2 ? stale.port() : master.port());
  });
  router r(behind(sentinel), {});

  EXPECT_EQ(run(r, mode::write, {"SET", "k", "v"}), "here");
  EXPECT_EQ(stale.heard(), (std::vector<std::string>{"ROLE", "ROLE"})) << "nothing else was sent to it";
}

TEST(Sentinel, IsAskedAgainWhenTheMasterHasBecomeAReplica) {
  acting_server demoted("master", "-READONLY You can't write against a read only replica.\r\n");
  acting_server master("master", "+here\r\n");
  stage sentinel([&](std::size_t connection, const stage::words&) {
    return place_reply("127.0.0.1", connection == 0 ? demoted.port() : master.port());
  });
  router r(behind(sentinel), {});

  EXPECT_EQ(run(r, mode::write, {"SET", "k", "v"}), "here");
}

TEST(Sentinel, IsNotBelievedWithoutAnAddress) {
  const std::vector<std::string> answers = {place_reply("127.0.0.1", "0"),
                                            place_reply("127.0.0.1", "65536"),
                                            place_reply("127.0.0.1", "-1"),
                                            place_reply("127.0.0.1", "1x"),
                                            place_reply("127.0.0.1", ""),
                                            place_reply("", "1"),
                                            place_reply("a\nb", "1"),
                                            place_reply("\xFF", "1"),
                                            place_reply(std::string(254, 'h'), "1"),
                                            "*1\r\n" + bulk("127.0.0.1"),
                                            "*3\r\n" + bulk("127.0.0.1") + bulk("1") + bulk("2"),
                                            ":5\r\n",
                                            bulk("127.0.0.1:1"),
                                            "*2\r\n*0\r\n*0\r\n",
                                            "*0\r\n"};
  in_threads(answers.size(), [&](std::uint64_t i) {
    SCOPED_TRACE(answers[i]);
    stage sentinel([&](std::size_t, const stage::words&) { return answers[i]; });
    router r(behind(sentinel), within(milliseconds(400)));

    const auto thrown = error_of([&] { run(r, mode::write, {"GET", "k"}); });

    ASSERT_TRUE(thrown);
    EXPECT_EQ(thrown->code(), errc::unavailable);
    EXPECT_EQ(thrown->text().found, "the sentinel's reply is not an address");
  });
}

TEST(Sentinel, IsReportedAtOnceIfItDoesNotKnowTheMaster) {
  stage sentinel([&](std::size_t, const stage::words&) { return "*-1\r\n"; });
  const auto began = std::chrono::steady_clock::now();
  router r(behind(sentinel), {});

  EXPECT_EQ(code_of([&] { run(r, mode::write, {"GET", "k"}); }), errc::invalid_argument);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(1));
}

TEST(Sentinel, GetsThePasswordOnlyIfItRequiresOne) {
  for (const bool requires_one : {false, true}) {
    acting_server master("master", "+here\r\n");
    std::atomic<unsigned> authentications = 0;
    stage sentinel([&](std::size_t connection, const stage::words& command) -> std::string {
      if (command[0] == "AUTH") {
        ++authentications;
        return "+OK\r\n";
      }
      if (requires_one && connection == 0) return "-NOAUTH Authentication required.\r\n";
      return place_reply("127.0.0.1", master.port());
    });
    redis_address a = behind(sentinel);
    a.password = "hunter2";
    router r(a, {});

    EXPECT_EQ(run(r, mode::write, {"GET", "k"}), "here");
    EXPECT_EQ(authentications, requires_one ? 1U : 0U);
  }
}

}  // namespace
}  // namespace bloomery_tests
