// Fixtures of tests with servers: one server, or one cluster, for all tests of a suite.
#pragma once

#include "redis/cluster.hpp"
#include "redis/servers.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

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

/// Tests with one server, which is empty at the start of each test.
template <class Suite>
class on_a_server : public sharing<Suite, test_server, server_options> {
 protected:
  void SetUp() override {
    sharing<Suite, test_server, server_options>::SetUp();
    if (server != nullptr) server->command({"FLUSHALL"});
  }
  static bloomery::redis_address at(const std::string& name) { return server->address(name); }

  static inline std::unique_ptr<test_server>& server = sharing<Suite, test_server, server_options>::shared;
};

/// Tests with one cluster.
template <class Suite>
class on_a_cluster : public sharing<Suite, test_cluster, cluster_options> {
 protected:
  static inline std::unique_ptr<test_cluster>& cluster = sharing<Suite, test_cluster, cluster_options>::shared;
};

}  // namespace bloomery_tests
