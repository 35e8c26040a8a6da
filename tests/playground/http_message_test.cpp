#include "playground/http/message.hpp"

#include "support/errors.hpp"

#include <gtest/gtest.h>

#include <string>

namespace bloomery_tests {
namespace {

using namespace bloomery::playground::http;
using bloomery::errc;

request_head with_line(const std::string& line) { return parse_request_head(line + "\r\nHost: localhost"); }

TEST(HttpRequestHead, HasMethodPathQueryAndHeaders) {
  const request_head head = parse_request_head(
      "POST /api/1/filters?key=a%20b+c&key=second&empty&%6Eame=%3d&&last= HTTP/1.1\r\n"
      "Host: localhost:80\r\n"
      "X-EMPTY:\r\n"
      "Accept-Encoding: \t gzip, br \t\r\n"
      "accept-encoding: zstd");

  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path, "/api/1/filters");
  EXPECT_EQ(head.query, (fields{{"key", "a b c"}, {"key", "second"}, {"empty", ""}, {"name", "="}, {"last", ""}}));
  EXPECT_EQ(head.minor_version, 1);
  EXPECT_EQ(head.value("host"), "localhost:80");
  EXPECT_TRUE(head.has("x-empty"));
  EXPECT_EQ(head.value("x-empty"), "");
  EXPECT_EQ(head.count("accept-encoding"), 2u);
  EXPECT_EQ(head.value("accept-encoding"), "gzip, br");
  EXPECT_FALSE(head.has("origin"));
  EXPECT_EQ(head.value("origin"), "");
}

TEST(HttpRequestHead, DecodesPathsWithoutLosingAByte) {
  EXPECT_EQ(with_line("GET /%2e%2E/a%2fb+c HTTP/1.1").path, "/../a/b+c");
  EXPECT_EQ(with_line("GET /a%00b HTTP/1.1").path, std::string("/a\0b", 4));
  EXPECT_EQ(with_line("GET /%ff HTTP/1.1").path, "/\xff");
  EXPECT_EQ(with_line("GET /\xc3\xa9 HTTP/1.1").path, "/\xc3\xa9");
  EXPECT_EQ(with_line("GET /%2525 HTTP/1.1").path, "/%25");
  EXPECT_EQ(with_line("GET //x HTTP/1.1").path, "//x");
}

TEST(HttpRequestHead, IsRefusedAsAWholeIfAnythingInItIsMalformed) {
  for (const std::string& head : {
           std::string(""),
           std::string("GET"),
           std::string("GET /"),
           std::string("GET / HTTP/1.1 "),
           std::string("GET  / HTTP/1.1"),
           std::string(" GET / HTTP/1.1"),
           std::string("GET / / HTTP/1.1"),
           std::string("GET\t/ HTTP/1.1"),
           std::string("GET / HTTP/2.0"),
           std::string("GET / HTTP/1.2"),
           std::string("GET / http/1.1"),
           std::string("GET / HTTP/1.1x"),
           std::string("G(T / HTTP/1.1"),
           std::string("GET x HTTP/1.1"),
           std::string("GET  HTTP/1.1"),
           std::string("GET * HTTP/1.1"),
           std::string("GET http://localhost/ HTTP/1.1"),
           std::string("GET /a#b HTTP/1.1"),
           std::string("GET /a\0b HTTP/1.1", 17),
           std::string("GET /a\x7f HTTP/1.1"),
           std::string("GET /a\rb HTTP/1.1"),
           std::string("GET /a\nb HTTP/1.1"),
           std::string("GET /% HTTP/1.1"),
           std::string("GET /%4 HTTP/1.1"),
           std::string("GET /%4g HTTP/1.1"),
           std::string("GET /?x=%zz HTTP/1.1"),
           std::string("GET / HTTP/1.1\nHost: localhost"),
           std::string("GET / HTTP/1.1\r\nHost"),
           std::string("GET / HTTP/1.1\r\nHost : localhost"),
           std::string("GET / HTTP/1.1\r\n: localhost"),
           std::string("GET / HTTP/1.1\r\nX: 1\r\n folded: 2"),
           std::string("GET / HTTP/1.1\r\n X: 1"),
           std::string("GET / HTTP/1.1\r\nX: a\nY: b"),
           std::string("GET / HTTP/1.1\r\nX: a\rY: b"),
           std::string("GET / HTTP/1.1\r\nX: a\0b", 22),
           std::string("GET / HTTP/1.1\r\nX\xff: a"),
           std::string("GET / HTTP/1.1\r\nX: a\r\n\r\nY: b"),
       }) {
    const auto refused = error_of([&] { parse_request_head(head); });
    ASSERT_TRUE(refused) << head;
    EXPECT_EQ(refused->code(), errc::invalid_argument) << head;
  }
}

TEST(HttpRequestHead, HasATargetOfLimitedLength) {
  const std::string most = "/" + std::string(request_head::most_target - 1, 'a');

  EXPECT_EQ(with_line("GET " + most + " HTTP/1.1").path, most);
  const auto refused = error_of([&] { with_line("GET " + most + "a HTTP/1.1"); });

  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), errc::too_large);
}

TEST(HttpRequestHead, TellsWhetherTheConnectionCloses) {
  const auto closes = [](const std::string& version, const std::string& headers) {
    return parse_request_head("GET / " + version + headers).closes();
  };

  EXPECT_FALSE(closes("HTTP/1.1", ""));
  EXPECT_TRUE(closes("HTTP/1.1", "\r\nConnection: close"));
  EXPECT_TRUE(closes("HTTP/1.1", "\r\nConnection: Upgrade , CLOSE"));
  EXPECT_TRUE(closes("HTTP/1.1", "\r\nConnection: x\r\nconnection: close"));
  EXPECT_FALSE(closes("HTTP/1.1", "\r\nConnection: closed"));
  EXPECT_FALSE(closes("HTTP/1.1", "\r\nX: close"));
  EXPECT_TRUE(closes("HTTP/1.0", ""));
  EXPECT_FALSE(closes("HTTP/1.0", "\r\nConnection: Keep-Alive"));
  EXPECT_TRUE(closes("HTTP/1.0", "\r\nConnection: keep-alive, close"));
}

TEST(HttpResponseHead, HasAStatusLineAndHeadersInOrder) {
  EXPECT_EQ(format_response_head(200, {{"B", "1"}, {"A", "2"}}), "HTTP/1.1 200 OK\r\nB: 1\r\nA: 2\r\n\r\n");
  EXPECT_EQ(format_response_head(100, {}), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(format_response_head(299, {}), "HTTP/1.1 299 \r\n\r\n");
}

TEST(HttpResponseHead, LetsNoValueAddAHeader) {
  EXPECT_EQ(format_response_head(200, {{"A", "1\r\nB: 2\r\n\r\n<html>"}}),
            "HTTP/1.1 200 OK\r\nA: 1  B: 2    <html>\r\n\r\n");
}

}  // namespace
}  // namespace bloomery_tests
