#include "playground/http/server.hpp"

#include "playground/http/admission.hpp"

#include "support/errors.hpp"

#include <gtest/gtest.h>

namespace bloomery_tests {
namespace {

using namespace bloomery::playground::http;
using bloomery::errc;
using bloomery::playground::api;

TEST(Server, AcceptsOnlyItsOwnHostNames) {
  for (const char* own : {"127.0.0.1:80", "127.0.0.1", "localhost", "LocalHost:80", "[::1]:80", "[::1]", "10.0.0.7:80",
                          "my.machine:80", "MY.machine"}) {
    EXPECT_TRUE(is_own_host(own, "my.machine", 80)) << own;
  }
  for (const char* foreign : {"",
                              ":",
                              ":8080",
                              "evil.example:8080",
                              "localhost",
                              "127.0.0.1",
                              "localhost:80",
                              "localhost:08080",
                              "localhost:8080:8080",
                              "localhost.evil.example:8080",
                              "127.0.0.1.evil.example:8080",
                              "evil.example#127.0.0.1:8080",
                              "0x7f.1:8080",
                              "127.1:8080",
                              "[::1:8080",
                              "::1]:8080",
                              " localhost:8080",
                              "localhost :8080",
                              "localhost:8080 ",
                              "[localhost]:8080",
                              "1.2.3.4.5:8080",
                              "256.0.0.1:8080"}) {
    EXPECT_FALSE(is_own_host(foreign, "127.0.0.1", 8080)) << foreign;
  }
}

TEST(Server, RecognizesLoopbackAddresses) {
  for (const char* alone : {"127.0.0.1", "127.1.2.3", "localhost", "LOCALHOST", "::1"})
    EXPECT_TRUE(is_this_machine(alone));
  for (const char* others : {"0.0.0.0", "::", "10.0.0.1", "127.evil.example", "localhost.evil.example", ""}) {
    EXPECT_FALSE(is_this_machine(others)) << others;
  }
}

TEST(Server, ListensOnAFreePortUntilItEnds) {
  api answers({});
  std::uint16_t port = 0;
  {
    server first(answers, "127.0.0.1", 0);
    port = first.port();
    EXPECT_NE(port, 0);
    EXPECT_EQ(first.url(), "http://127.0.0.1:" + std::to_string(port) + "/");

    const auto taken = error_of([&] { server second(answers, "127.0.0.1", port); });

    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->code(), errc::io);
    EXPECT_EQ(taken->text().where, "127.0.0.1:" + std::to_string(port));
    EXPECT_NE(taken->text().hint.words(), "");
  }
  EXPECT_NO_THROW(server again(answers, "127.0.0.1", port));
}

TEST(Server, RefusesAnEmptyHost) {
  api answers({});

  const auto refused = error_of([&] { server everywhere(answers, "", 0); });

  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), errc::invalid_argument);
  EXPECT_EQ(refused->text().where, "--host");
}

}  // namespace
}  // namespace bloomery_tests
