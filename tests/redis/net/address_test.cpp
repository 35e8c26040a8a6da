// Addresses of servers: valid ones, invalid ones, and no password in any message.
#include <bloomery/redis/address.hpp>

#include "support/errors.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery_tests {
namespace {

using bloomery::errc;
using bloomery::redis_address;

class Address : public testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("BLOOMERY_REDIS_USER");
    ::unsetenv("BLOOMERY_REDIS_PASSWORD");
  }
  void TearDown() override { SetUp(); }
};

struct good_address {
  std::string text;
  redis_address is;
  std::string again;  // its text()
};

const std::vector<good_address> good_addresses = {
    {"redis://cache/urls", {.endpoints = {{"cache", 6379}}, .name = "urls"}, "redis://cache:6379/urls"},
    {"redis://cache:7000/seen%20urls?db=2",
     {.endpoints = {{"cache", 7000}}, .database = 2, .name = "seen urls"},
     "redis://cache:7000/seen%20urls?db=2"},
    {"rediss://anna:p%40ss:w%2Frd@10.0.0.1:1/a:b",
     {.endpoints = {{"10.0.0.1", 1}}, .tls = true, .user = "anna", .password = "p@ss:w/rd", .name = "a:b"},
     "rediss://10.0.0.1:1/a:b"},
    {"redis://:secret@h:65535/%00%ff%7B%7d",
     {.endpoints = {{"h", 65535}}, .password = "secret", .name = std::string("\0\xFF{}", 4)},
     "redis://h:65535/%00%FF%7B%7D"},
    {"redis://[2001:db8::1]:7/n", {.endpoints = {{"2001:db8::1", 7}}, .name = "n"}, "redis://[2001:db8::1]:7/n"},
    {"redis://[::1]/n", {.endpoints = {{"::1", 6379}}, .name = "n"}, "redis://[::1]:6379/n"},
    {"unix:///run/my%20redis.sock?name=a%2Fb&db=15",
     {.socket = "/run/my redis.sock", .database = 15, .name = "a/b"},
     "unix:///run/my%20redis.sock?name=a%2Fb&db=15"},
    {"unix:///s?db=0&name=n", {.socket = "/s", .name = "n"}, "unix:///s?name=n"},
    {"redis+cluster://u:p@a:1,[::2]:2,c/n",
     {.endpoints = {{"a", 1}, {"::2", 2}, {"c", 6379}}, .cluster = true, .user = "u", .password = "p", .name = "n"},
     "redis+cluster://a:1,[::2]:2,c:6379/n"},
    {"rediss+cluster://a:1/n",
     {.endpoints = {{"a", 1}}, .cluster = true, .tls = true, .name = "n"},
     "rediss+cluster://a:1/n"},
    {"redis+sentinel://u:p@a:1,[::2],c/my%20db/n?db=3",
     {.endpoints = {{"a", 1}, {"::2", 26379}, {"c", 26379}},
      .user = "u",
      .password = "p",
      .database = 3,
      .name = "n",
      .master = "my db"},
     "redis+sentinel://a:1,[::2]:26379,c:26379/my%20db/n?db=3"},
    {"rediss+sentinel://a/m/n",
     {.endpoints = {{"a", 26379}}, .tls = true, .name = "n", .master = "m"},
     "rediss+sentinel://a:26379/m/n"}};

TEST_F(Address, IsParsed) {
  for (const good_address& good : good_addresses) {
    SCOPED_TRACE(good.text);
    EXPECT_TRUE(redis_address::is_one(good.text));
    EXPECT_EQ(redis_address::parse(good.text), good.is);
  }
}

TEST_F(Address, HasATextWithoutUserAndPasswordThatIsParsedAgain) {
  for (const good_address& good : good_addresses) {
    SCOPED_TRACE(good.text);
    redis_address without = good.is;
    without.user.clear();
    without.password.clear();

    EXPECT_EQ(good.is.text(), good.again);
    EXPECT_EQ(redis_address::parse(good.is.text()), without);
  }
}

TEST_F(Address, IsRefusedIfItIsInvalid) {
  for (const char* text :
       {// the form of the URL
        "", "redis", "redis:/h/n", "http://h/n", "Redis://h/n", "redis://", "redis:///n", "redis://h", "redis://h/",
        // the port
        "redis://h:/n", "redis://h:0/n", "redis://h:65536/n", "redis://h:+1/n", "redis://h:1x/n",
        "redis://h:18446744073709551617/n",
        // the name
        "redis://h/n/m", "redis://h/n m", "redis://h/n#m", "redis://h/n@m", "redis://h/%", "redis://h/%4",
        "redis://h/%4g", "redis://h/%%41",
        // the parameters
        "redis://h/n?", "redis://h/n?db", "redis://h/n?db=", "redis://h/n?db=-1", "redis://h/n?db=1x",
        "redis://h/n?db=2147483648", "redis://h/n?db=1&db=1", "redis://h/n?db=1&", "redis://h/n?DB=1",
        "redis://h/n?name=m", "redis://h/n?timeout=1",
        // user, password and host
        "redis://h,i/n", "redis://u@h/n", "redis://u:@h/n", "redis://@h/n", "redis://u:p@q@h/n", "redis://u:%zz@h/n",
        "redis://h o/n", "redis://h\xC3\xB6/n", "redis://::1/n", "redis://[::1/n", "redis://[]/n", "redis://[::1]x/n",
        "redis://[host]/n", "redis://[::1]:/n",
        // sockets
        "unix://", "unix://s?name=n", "unix:///s", "unix:///s?", "unix:///s?name=", "unix:///s?name=n&name=m",
        "unix:///s?name=n&db=1&more=1", "unix:///s%00?name=n", "unix:///s@t?name=n",
        // clusters and sentinels
        "redis+cluster://a:1,/n", "redis+cluster://,a:1/n", "redis+cluster://a:1/n?db=0", "redis+cluster://a:1,b:x/n",
        "redis+sentinel://a:1/m", "redis+sentinel://a:1/m/", "redis+sentinel://a:1//n", "redis+sentinel://a:1",
        "redis+sentinel://a:1/m/n/o", "redis+sentinel://a:1,/m/n"}) {
    SCOPED_TRACE(text);
    const auto thrown = error_of([&] { redis_address::parse(text); });

    ASSERT_TRUE(thrown);
    EXPECT_EQ(thrown->code(), errc::invalid_argument);
    EXPECT_FALSE(thrown->text().expected.empty());
  }
  const std::string long_path(107, 'x');
  EXPECT_EQ(code_of([&] { redis_address::parse("unix:///" + long_path + "?name=n"); }), errc::invalid_argument);
  EXPECT_EQ(redis_address::parse("unix://" + ("/" + long_path).substr(0, 107) + "?name=n").socket.size(), 107U);
}

TEST_F(Address, MayLackTheFiltersNameForAServer) {
  const auto expect = [](const char* text, const char* again, const char* name) {
    SCOPED_TRACE(text);
    const redis_address a = redis_address::parse_server(text);

    EXPECT_EQ(a.text(), again);
    EXPECT_EQ(a.name, name);
    EXPECT_EQ(redis_address::parse_server(a.text()), a);
  };

  expect("redis://h", "redis://h:6379", "");
  expect("redis://h/", "redis://h:6379", "");
  expect("rediss://[::1]:1?db=2", "rediss://[::1]:1?db=2", "");
  expect("redis://h/n", "redis://h:6379/n", "n");
  expect("unix:///s", "unix:///s", "");
  expect("unix:///s?db=2", "unix:///s?db=2", "");
  expect("unix:///s?db=2&name=n", "unix:///s?name=n&db=2", "n");
  expect("redis+cluster://a:1,b:2", "redis+cluster://a:1,b:2", "");
  expect("redis+sentinel://a:1,b/m", "redis+sentinel://a:1,b:26379/m", "");
  for (const char* text :
       {"h", "redis://", "redis://h/n/m", "redis://h:x", "unix://s", "redis+sentinel://a:1", "redis+sentinel://a:1/"}) {
    EXPECT_EQ(code_of([&] { redis_address::parse_server(text); }), errc::invalid_argument) << text;
  }
}

TEST_F(Address, ShowsNoPasswordWhereverAMistakeIs) {
  for (const char* text :
       {// the slip is elsewhere
        "redis://anna:hunter2@/n", "redis://anna:hunter2@h", "redis://anna:hunter2@h/", "redis://anna:hunter2@h:x/n",
        "redis://anna:hunter2@h/n?x=1", "redis+cluster://anna:hunter2@h,/n", "unix://anna:hunter2@/s?name=n",
        "http://anna:hunter2@h/n", "anna:hunter2@h/n", "redis+sentinel://anna:hunter2@h/m",
        "redis://anna:pw@h/n?password=hunter2",
        // the slip is in the password
        "redis://anna:hun/ter2@h/n", "redis://anna:hun?ter2@h/n", "redis://anna:hun#ter2@h/n",
        "redis://anna:hun@ter2@h/n", "redis://anna:hun%ter2@h/n", "redis://anna:hun ter2@h/n",
        // the password is where something else belongs
        "rediss://hunter2@h/n", "redis://:hunter2:6379/n", "redis://:hunter2/n", "redis://:hunter2",
        "redis://anna:hunter2/n", "redis://anna:hunter2?db=1", "redis+cluster://a:1,:hunter2:6379/n",
        "redis+cluster://a:1,anna:hunter2/n", "redis+sentinel://h:1,anna:hunter2/m/n", "postgres://:hunter2:6379/n",
        // the password is in a parameter
        "redis://h/n?password=hunter2", "redis://h/n?db=1&password=hunter2", "redis://h/n?password=hun=ter2&db=x",
        "redis+cluster://h/n?auth=hunter2", "unix:///s?name=n&password=hunter2"}) {
    SCOPED_TRACE(text);
    const auto thrown = error_of([&] { redis_address::parse(text); });

    ASSERT_TRUE(thrown);
    EXPECT_EQ(std::string_view(thrown->what()).find("hun"), std::string_view::npos) << thrown->what();
    EXPECT_EQ(std::string_view(thrown->what()).find("ter2"), std::string_view::npos) << thrown->what();
  }
}

TEST_F(Address, IsShownWithoutWhatMayBeAPassword) {
  struct slip {
    const char* text;
    const char* where;
    const char* found;
  };
  for (const slip& s : {
           slip{"redis://h:65536/n", "redis://h:65536/n", "'65536'"},
           slip{"redis://[::1]:/n", "redis://[::1]:/n", ""},
           slip{"redis://:12345/n", "redis://:.../n", ""},
           slip{"redis://anna:pw@h:0/n", "redis://...@h:0/n", "'0'"},
           slip{"redis://h:x/n", "redis://h:.../n", ""},
           slip{"redis://h/n?timeout=1&db=2", "redis://h/n?timeout=...&db=2", "'timeout'"},
           slip{"redis://h/n?db=x", "redis://h/n?db=x", "'x'"},
           slip{"redis+cluster://a:1,b:0/n", "redis+cluster://a:1,b:0/n", "'0'"},
       }) {
    SCOPED_TRACE(s.text);
    const auto thrown = error_of([&] { redis_address::parse(s.text); });

    ASSERT_TRUE(thrown);
    EXPECT_EQ(thrown->text().where, s.where);
    EXPECT_EQ(thrown->text().found, s.found);
  }
}

TEST_F(Address, TakesUserAndPasswordFromTheEnvironmentIfItHasNone) {
  ::setenv("BLOOMERY_REDIS_PASSWORD", "from outside", 1);
  EXPECT_EQ(redis_address::parse("redis://h/n").password, "from outside");
  EXPECT_EQ(redis_address::parse("redis://h/n").user, "");
  EXPECT_EQ(redis_address::parse("redis://:own@h/n").password, "own");
  EXPECT_EQ(redis_address::parse("unix:///s?name=n").password, "from outside");

  ::setenv("BLOOMERY_REDIS_USER", "ben", 1);
  EXPECT_EQ(redis_address::parse("redis://h/n").user, "ben");
  EXPECT_EQ(redis_address::parse("redis://:own@h/n").user, "");

  ::unsetenv("BLOOMERY_REDIS_PASSWORD");
  EXPECT_EQ(code_of([] { redis_address::parse("redis://h/n"); }), errc::invalid_argument);
}

}  // namespace
}  // namespace bloomery_tests
