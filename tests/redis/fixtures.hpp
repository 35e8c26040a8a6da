// What tests with servers include: servers, clusters, networks that fail, keys, and fixtures with one server or one
// cluster for all tests of a suite.
#pragma once

#include "redis/cluster.hpp"
#include "redis/filters.hpp"
#include "redis/proxy.hpp"
#include "redis/servers.hpp"
#include "support/errors.hpp"
#include "support/long_tests.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/redis.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace bloomery_tests {

/// Starts a Server with Suite::options() before the first test, and stops it after the last. If no server program is
/// installed, each test is skipped with a message.
template <class Suite, class Server, class Options>
class sharing : public testing::Test {
 public:
  static Options options() { return {}; }

 protected:
  static void SetUpTestSuite() {
    if (!test_server::program().empty()) shared = std::make_unique<Server>(Suite::options());
  }
  static void TearDownTestSuite() { shared.reset(); }
  void SetUp() override {
    if (shared == nullptr) GTEST_SKIP() << test_server::how_to_get_one;
  }

  static inline std::unique_ptr<Server> shared;
};

/// Tests with one server, which is empty at the start of each test. The filter of most tests is called "x".
template <class Suite>
class on_a_server : public sharing<Suite, test_server, server_options> {
 protected:
  void SetUp() override {
    sharing<Suite, test_server, server_options>::SetUp();
    if (server != nullptr) server->command({"FLUSHALL"});
  }

  static bloomery::redis_address at(const std::string& name) { return server->address(name); }

  static inline std::unique_ptr<test_server>& server = sharing<Suite, test_server, server_options>::shared;

  /// The address of a user who may use these keys, and only the commands that the rules permit.
  static bloomery::redis_address limited(const std::vector<std::string>& rules, const std::string& name = "x",
                                         const std::string& keys = "~*") {
    server->command({"ACL", "SETUSER", "limited", "reset", "on", "nopass", keys});
    for (const std::string& rule : rules) server->command({"ACL", "SETUSER", "limited", rule});
    bloomery::redis_address a = at(name);
    a.user = "limited";
    a.password = "any";
    return a;
  }
  static bloomery::redis_address without(const std::string& command, const std::string& name = "x") {
    return limited({"+@all", "-" + command}, name);
  }

  /// Creates the filter "x" on the server, which is emptied before.
  static bloomery::redis_filter fresh(const bloomery::redis_params& p, const bloomery::redis_options& o = {}) {
    server->command({"FLUSHALL"});
    return bloomery::redis_filter::create(at("x"), p, o);
  }

  /// Creates the filter "x" and inserts keys.
  static bloomery::redis_filter filled(const bloomery::redis_params& p, const std::vector<std::uint64_t>& keys) {
    bloomery::redis_filter f = bloomery::redis_filter::create(at("x"), p);
    insert_all(f, keys);
    return f;
  }

  /// The names of the server's keys, sorted, without marks of dropped filters.
  static std::vector<std::string> names(const std::string& pattern = "*") {
    std::vector<std::string> found;
    const auto all = server->command({"KEYS", pattern});
    for (std::size_t i = 0; i < all.reply().size(); ++i) {
      if (!is_mark(all.reply()[i].text())) found.emplace_back(all.reply()[i].text());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  /// Calls of a command since reset_calls().
  static std::uint64_t calls_of(const std::string& command) {
    const std::string text = server->command({"INFO", "commandstats"}).text();
    const std::string begin = "cmdstat_" + command + ":calls=";
    const std::size_t at = text.find(begin);
    return at == std::string::npos ? 0 : std::stoull(text.substr(at + begin.size()));
  }
  static void reset_calls() { server->command({"CONFIG", "RESETSTAT"}); }
};

/// All keys are found, or an error reports the damage. No key may be reported absent.
inline void expect_never_absent(bloomery::redis_filter& f, const std::vector<std::uint64_t>& keys) {
  std::uint64_t there = keys.size();
  const auto code = code_of([&] { there = count_found(f, keys); });
  if (code) {
    EXPECT_TRUE(code == bloomery::errc::damaged || code == bloomery::errc::not_found) << static_cast<int>(*code);
  }
  EXPECT_EQ(there, keys.size());
}

/// Tests with one cluster.
template <class Suite>
class on_a_cluster : public sharing<Suite, test_cluster, cluster_options> {
 protected:
  static inline std::unique_ptr<test_cluster>& cluster = sharing<Suite, test_cluster, cluster_options>::shared;
};

/// Tests that start their own servers.
class with_own_servers : public testing::Test {
 protected:
  void SetUp() override {
    if (test_server::program().empty()) GTEST_SKIP() << test_server::how_to_get_one;
  }
};

/// Runs work(t) in threads numbered from 0, and waits for them. An error fails the test.
template <class Work>
void in_threads(std::uint64_t count, Work work) {
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < count; ++t) {
    threads.emplace_back([&work, t] {
      const auto thrown = error_of([&] { work(t); });
      EXPECT_FALSE(thrown.has_value()) << thrown->what();
    });
  }
  for (std::thread& t : threads) t.join();
}

/// A thread that repeats work() until end(), also if the test throws.
class background {
 public:
  template <class Work>
  explicit background(Work work)
      : thread_([this, work = std::move(work)]() mutable {
          const auto thrown = error_of([&] {
            while (!end_) work();
          });
          EXPECT_FALSE(thrown.has_value()) << thrown->what();
        }) {}
  ~background() { end(); }
  void end() {
    end_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> end_ = false;
  std::thread thread_;
};

}  // namespace bloomery_tests
