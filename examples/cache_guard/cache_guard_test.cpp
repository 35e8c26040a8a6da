// End-to-end tests of cache_guard with a real database and server: the share of lookups that reach the database, and
// the behavior when the filter's server is killed, frozen, or restarted empty.
#include "table.hpp"

#include "redis/servers.hpp"

#include <gtest/gtest.h>
#include <httplib.h>

#include <sqlite3.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cache_guard {
namespace {

using bloomery_tests::short_folder;
using bloomery_tests::test_server;
using bloomery_tests::wait_until;

std::string user(std::uint64_t i) { return "user-" + std::to_string(i); }

// A database with users 0 .. count-1.
void make_users(const std::string& path, std::uint64_t count) {
  sqlite_table(path)();  // creates the table
  sqlite3* db = nullptr;
  if (sqlite3_open(path.c_str(), &db) != SQLITE_OK) throw std::runtime_error("cannot open the database");
  const std::string sql = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < " +
                          std::to_string(count) + ") INSERT INTO users SELECT 'user-' || i, 'name of ' || i FROM n";
  const int status = sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr);
  sqlite3_close(db);
  if (status != SQLITE_OK) throw std::runtime_error("cannot fill the database");
}

// A cache_guard process.
class program {
 public:
  explicit program(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), CACHE_GUARD);
    arguments.insert(arguments.end(), {"--port", "0"});
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
    std::vector<char*> words;
    for (std::string& a : arguments) words.push_back(a.data());
    words.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], 1);
      ::close(ends[0]);
      ::close(ends[1]);
      ::execv(CACHE_GUARD, words.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    char c = 0;
    while (::read(ends[0], &c, 1) == 1 && c != '\n') greeting_ += c;
    ::close(ends[0]);
    const std::size_t colon = greeting_.find(':');
    if (colon == std::string::npos) {
      end();
      throw std::runtime_error("cache_guard does not start");
    }
    port_ = std::stoi(greeting_.substr(colon + 1));
  }
  program(const program&) = delete;
  program& operator=(const program&) = delete;
  ~program() { end(); }

  httplib::Client client() const {
    httplib::Client c("127.0.0.1", port_);
    c.set_keep_alive(true);
    c.set_tcp_nodelay(true);
    return c;
  }

  // The metrics by name, without the prefix "cache_guard_".
  std::map<std::string, std::uint64_t> metrics() const {
    const auto response = client().Get("/metrics");
    if (!response || response->status != 200) throw std::runtime_error("no metrics");
    std::map<std::string, std::uint64_t> numbers;
    std::size_t at = 0;
    for (std::size_t end; (end = response->body.find('\n', at)) != std::string::npos; at = end + 1) {
      const std::string line = response->body.substr(at, end - at);
      if (line.starts_with("#")) continue;
      const std::size_t blank = line.find(' ');
      numbers[line.substr(12, blank - 12)] = std::stoull(line.substr(blank + 1));
    }
    return numbers;
  }

  const std::string& greeting() const { return greeting_; }

 private:
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGTERM);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
  }

  pid_t pid_ = -1;
  int port_ = 0;
  std::string greeting_;
};

// Looks up `count` keys, one in 20 of them present, with four concurrent clients. Returns the number of wrong answers.
std::uint64_t look_up(const program& service, std::uint64_t users, std::uint64_t lookups) {
  std::atomic<std::uint64_t> wrong = 0;
  std::vector<std::thread> clients;
  for (std::uint64_t c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      httplib::Client client = service.client();
      for (std::uint64_t i = c; i < lookups; i += 4) {
        const bool present = i / 4 % 20 == 0;
        const std::uint64_t number = present ? i * 7919 % users : users + i;
        const auto response = client.Get("/users/" + user(number));
        const bool right =
            response && (present ? response->status == 200 && response->body == "name of " + std::to_string(number)
                                 : response->status == 404);
        if (!right) ++wrong;
      }
    });
  }
  for (std::thread& t : clients) t.join();
  return wrong;
}

class CacheGuard : public testing::Test {
 protected:
  void SetUp() override {
    if (!server.is_there()) GTEST_SKIP() << "SKIP " << test_server::how_to_get_one;
    make_users(database, users);
  }

  std::string filter() const { return "unix://" + server.socket() + "?name=users"; }

  const bool is_long = std::getenv("BLOOMERY_LONG") != nullptr;
  const std::uint64_t users = is_long ? 100'000 : 2'000;
  short_folder folder;
  const std::string database = folder / "users.db";
  test_server server;
};

TEST_F(CacheGuard, KeepsLookupsOfAbsentKeysFromTheDatabase) {
  const std::uint64_t lookups = is_long ? 1'000'000 : 8'000;
  const std::uint64_t present = lookups / 20;
  std::map<std::string, std::uint64_t> with, without;
  {
    const program service({"--table", database, "--no-filter"});
    EXPECT_EQ(look_up(service, users, lookups), 0u);
    without = service.metrics();
  }
  {
    const program service({"--table", database, "--filter", filter()});
    EXPECT_EQ(look_up(service, users, lookups), 0u);
    with = service.metrics();
  }

  std::cout << users << " users, " << lookups << " lookups, " << present << " of them of present keys\n"
            << "queries that reach the database: " << without["database_queries_total"] << " without, "
            << with["database_queries_total"] << " with the filter (" << with["false_positives_total"]
            << " false positives)\n";
  EXPECT_EQ(without["database_queries_total"], lookups);
  EXPECT_EQ(without["filter_negatives_total"], 0u);
  EXPECT_EQ(with["lookups_total"], lookups);
  EXPECT_EQ(with["filter_errors_total"], 0u);
  EXPECT_EQ(with["database_queries_total"], present + with["false_positives_total"]);
  EXPECT_EQ(with["filter_negatives_total"] + with["database_queries_total"], lookups);
  // The target FPR, plus five standard deviations of a binomial.
  const double absent = static_cast<double>(lookups - present);
  EXPECT_LE(static_cast<double>(with["false_positives_total"]), 0.01 * absent + 5 * std::sqrt(0.01 * absent));
}

TEST_F(CacheGuard, FindsWhatWasWritten) {
  const program service({"--table", database, "--filter", filter()});
  httplib::Client client = service.client();
  EXPECT_EQ(client.Get("/users/zoe")->status, 404);

  EXPECT_EQ(client.Post("/users/zoe", "Zoe", "text/plain")->status, 201);
  EXPECT_EQ(client.Post("/users/a%2Fb%20c", "odd", "text/plain")->status, 201);

  EXPECT_EQ(client.Get("/users/zoe")->body, "Zoe");
  EXPECT_EQ(client.Get("/users/a%2Fb%20c")->body, "odd");
  EXPECT_EQ(client.Get("/users/a%2Fb")->status, 404);
  EXPECT_EQ(sqlite_table(database)()->find("zoe"), "Zoe");
}

TEST_F(CacheGuard, AnswersRightWhenTheFiltersServerIsKilledAndWhenItComesBackEmpty) {
  const program service({"--table", database, "--filter", filter(), "--pause", "100", "--filter-time", "50"});
  EXPECT_EQ(look_up(service, users, 400), 0u);
  ASSERT_EQ(service.metrics()["database_queries_total"], 20 + service.metrics()["false_positives_total"]);

  // Stops the server during lookups.
  std::thread killer([&] {
    wait_until("lookups go on", [&] { return service.metrics()["lookups_total"] > 600; });
    server.kill_hard();
  });
  EXPECT_EQ(look_up(service, users, 4'000), 0u);
  killer.join();
  EXPECT_EQ(service.client().Post("/users/late", "Late", "text/plain")->status, 201);
  EXPECT_EQ(service.client().Get("/users/late")->body, "Late");
  EXPECT_EQ(look_up(service, users, 400), 0u);

  auto away = service.metrics();
  EXPECT_EQ(away["filter_up"], 0u);
  EXPECT_GE(away["filter_errors_total"], 1u);
  EXPECT_GE(away["filter_skipped_total"], 400u);
  EXPECT_EQ(away["keys_not_in_filter"], 1u);
  EXPECT_EQ(away["filter_negatives_total"] + away["database_queries_total"], away["lookups_total"]);

  server.restart();  // empty: the filter is rebuilt from the table
  wait_until("the filter is back", [&] { return service.metrics()["filter_up"] == 1; });
  const auto before = service.metrics();
  EXPECT_EQ(look_up(service, users, 2'000), 0u);
  EXPECT_EQ(service.client().Get("/users/late")->body, "Late");
  auto after = service.metrics();
  EXPECT_EQ(after["filter_skipped_total"], before.at("filter_skipped_total"));
  EXPECT_EQ(after["keys_not_in_filter"], 0u);
  EXPECT_LE(after["database_queries_total"] - before.at("database_queries_total"), 101u + 19 + 5 * 4.4);
}

TEST_F(CacheGuard, DoesNotBelieveAFilterThatSomebodyHasEmptied) {
  const program service({"--table", database, "--filter", filter(), "--pause", "100", "--filter-time", "50"});
  EXPECT_EQ(look_up(service, users, 400), 0u);

  for (int i = 0; i < 3; ++i) {
    bloomery::redis_filter::open(bloomery::redis_address::parse(filter())).clear();

    EXPECT_EQ(look_up(service, users, 400), 0u);
    wait_until("the filter is full again", [&] { return service.metrics()["filter_up"] == 1; });
  }
  EXPECT_GE(service.metrics()["filter_errors_total"], 3u);
  EXPECT_EQ(look_up(service, users, 400), 0u);
}

TEST_F(CacheGuard, LeavesAFrozenServerAlone) {
  const program service({"--table", database, "--filter", filter(), "--pause", "100000", "--filter-time", "50"});
  server.freeze();

  EXPECT_EQ(look_up(service, users, 2'000), 0u);

  // At most the four lookups in progress have waited for it.
  auto frozen = service.metrics();
  server.thaw();
  EXPECT_GE(frozen["filter_errors_total"], 1u);
  EXPECT_LE(frozen["filter_errors_total"], 4u);
  EXPECT_GE(frozen["filter_skipped_total"], 2'000u - 4);
}

TEST_F(CacheGuard, StartsWithoutTheFiltersServerAndTakesItUpLater) {
  server.kill_hard();
  const program service({"--table", database, "--filter", filter(), "--pause", "100", "--filter-time", "50"});
  EXPECT_TRUE(service.greeting().ends_with("without a filter"));
  EXPECT_EQ(look_up(service, users, 400), 0u);
  EXPECT_EQ(service.metrics()["database_queries_total"], 400u);

  server.restart();

  wait_until("the filter is taken up", [&] { return service.metrics()["filter_up"] == 1; });
  EXPECT_EQ(look_up(service, users, 400), 0u);
  EXPECT_GT(service.metrics()["filter_negatives_total"], 350u);
}

}  // namespace
}  // namespace cache_guard
