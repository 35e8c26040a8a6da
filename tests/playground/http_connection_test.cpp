#include "playground/http/connection.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

namespace bloomery_tests {
namespace {

using namespace std::chrono_literals;
using bloomery::playground::http::connection;
using head_state = connection::head_state;
using clock = std::chrono::steady_clock;

// A connection, and the socket of its client.
class HttpConnection : public testing::Test {
 protected:
  HttpConnection()
      : sockets_(pair()),
        served(
            sockets_[0], [this] { return crowded.load(); }, stopping) {}
  ~HttpConnection() override { hang_up(); }

  void send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t size = ::send(sockets_[1], text.data(), text.size(), MSG_NOSIGNAL);
      ASSERT_GT(size, 0) << std::system_category().message(errno);
      text.remove_prefix(static_cast<std::size_t>(size));
    }
  }

  // All that comes until the connection ends.
  std::string received() const {
    std::string text;
    std::array<char, 4096> bytes;
    for (ssize_t size; (size = ::recv(sockets_[1], bytes.data(), bytes.size(), 0)) > 0;) {
      text.append(bytes.data(), static_cast<std::size_t>(size));
    }
    return text;
  }

  void send_no_more() const { ::shutdown(sockets_[1], SHUT_WR); }

  void hang_up() {
    if (sockets_[1] >= 0) ::close(sockets_[1]);
    sockets_[1] = -1;
  }

  // Sends single bytes for as long as `served` accepts them, at most ten seconds.
  std::thread dripping() const {
    return std::thread([this] {
      for (const auto begun = clock::now(); clock::now() - begun < 10s && !done;) {
        if (::send(sockets_[1], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN) return;
        std::this_thread::sleep_for(10ms);
      }
    });
  }

 private:
  static std::array<int, 2> pair() {
    std::array<int, 2> both{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both.data()) != 0) {
      throw std::system_error(errno, std::system_category());
    }
    return both;
  }

  std::array<int, 2> sockets_;

 protected:
  std::atomic<bool> crowded{false};
  std::atomic<bool> stopping{false};
  std::atomic<bool> done{false};
  connection served;
};

TEST_F(HttpConnection, ReadsRequestsThatFollowEachOther) {
  std::string body;
  send("POST /a HTTP/1.1\r\nA: 1\r\n\r\nbodyGET /b HTTP/1.1\r\n\r\nPOST /c HTTP/1.1\r\n\r\n");

  ASSERT_EQ(served.read_head(5s), head_state::complete);
  EXPECT_EQ(served.head(), "POST /a HTTP/1.1\r\nA: 1");
  EXPECT_TRUE(served.read_body(4, body));
  EXPECT_EQ(body, "body");
  ASSERT_EQ(served.read_head(5s), head_state::complete);
  EXPECT_EQ(served.head(), "GET /b HTTP/1.1");
  EXPECT_TRUE(served.read_body(0, body));
  EXPECT_EQ(body, "");
  ASSERT_EQ(served.read_head(5s), head_state::complete);
  EXPECT_EQ(served.head(), "POST /c HTTP/1.1");
  send_no_more();
  EXPECT_EQ(served.read_head(5s), head_state::none);
}

TEST_F(HttpConnection, KeepsWhatFollowsABodyThatComesInPieces) {
  std::string body;
  const std::string sent(100'000, 'b');
  std::thread client([&] {
    send("POST / HTTP/1.1\r\n");
    std::this_thread::sleep_for(50ms);
    send("\r\n" + sent);
    std::this_thread::sleep_for(50ms);
    send(sent + "GET /next HTTP/1.1\r\n\r\n");
  });

  EXPECT_EQ(served.read_head(5s), head_state::complete);
  EXPECT_TRUE(served.read_body(200'000, body));
  EXPECT_EQ(body, sent + sent);
  EXPECT_EQ(served.read_head(5s), head_state::complete);
  EXPECT_EQ(served.head(), "GET /next HTTP/1.1");
  client.join();
}

TEST_F(HttpConnection, TellsWhatCameOfABodyThatStops) {
  std::string body;
  send("POST / HTTP/1.1\r\n\r\nhalf");
  send_no_more();

  ASSERT_EQ(served.read_head(5s), head_state::complete);
  EXPECT_FALSE(served.read_body(1000, body));
  EXPECT_EQ(body, "half");
}

TEST_F(HttpConnection, ReadsAHeadOfTheGreatestLengthAndNoLonger) {
  const std::string longest(connection::most_head - 4, 'h');
  send(longest + "\r\n\r\n" + longest + "h\r\n\r\n");

  ASSERT_EQ(served.read_head(5s), head_state::complete);
  EXPECT_EQ(served.head(), longest);
  EXPECT_EQ(served.read_head(5s), head_state::too_long);
}

TEST_F(HttpConnection, WaitsForASilentClientOnlyForItsPatience) {
  const auto begun = clock::now();

  EXPECT_EQ(served.read_head(200ms), head_state::none);

  EXPECT_GE(clock::now() - begun, 200ms);
  EXPECT_LT(clock::now() - begun, 5s);
}

TEST_F(HttpConnection, GivesUpASilentClientSoonWhenOthersWaitOrTheServerStops) {
  for (std::atomic<bool>* reason : {&crowded, &stopping}) {
    *reason = true;
    const auto begun = clock::now();
    EXPECT_EQ(served.read_head(30s), head_state::none);
    EXPECT_LT(clock::now() - begun, 10s);
    *reason = false;
  }
}

TEST_F(HttpConnection, GivesUpAClientThatSendsAHeadByteByByte) {
  crowded = true;
  std::thread client = dripping();
  const auto begun = clock::now();

  EXPECT_EQ(served.read_head(30s), head_state::none);

  EXPECT_LT(clock::now() - begun, 8s);
  done = true;
  client.join();
}

TEST_F(HttpConnection, GivesUpAClientThatSendsABodyByteByByte) {
  std::string body;
  send("POST / HTTP/1.1\r\n\r\n");
  ASSERT_EQ(served.read_head(5s), head_state::complete);
  crowded = true;
  std::thread client = dripping();
  const auto begun = clock::now();

  EXPECT_FALSE(served.read_body(1'000'000, body));

  EXPECT_LT(clock::now() - begun, 8s);
  done = true;
  client.join();
}

TEST_F(HttpConnection, GivesUpAClientThatDoesNotReadItsResponse) {
  crowded = true;
  const auto begun = clock::now();

  EXPECT_FALSE(served.write(std::string(64 << 20, 'r')));

  EXPECT_LT(clock::now() - begun, 30s);
}

TEST_F(HttpConnection, WritesToAClientThatIsGoneWithoutASignal) {
  hang_up();

  EXPECT_FALSE(served.write("response"));
}

TEST_F(HttpConnection, LetsAClientReadTheResponseToABodyThatIsDropped) {
  const std::string unread(4 << 20, 'u');
  std::thread client([&] {
    send("POST / HTTP/1.1\r\n\r\n" + unread);
    send_no_more();
  });

  EXPECT_EQ(served.read_head(5s), head_state::complete);
  EXPECT_TRUE(served.write("refused"));
  served.drop_rest();
  client.join();

  EXPECT_EQ(received(), "refused");
}

}  // namespace
}  // namespace bloomery_tests
