// A network proxy for tests, between a client and a server: it can cut, stop and slow connections, and forward data in
// small pieces.
#pragma once

#include "redis/servers.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace bloomery_tests {

/// Forwards connections of 127.0.0.1:port() to a Unix socket, in its own thread.
class proxy {
 public:
  explicit proxy(std::string server_socket) : server_(std::move(server_socket)) {
    if (::pipe(wake_) != 0) throw std::runtime_error("no proxy for the test");
    thread_ = std::thread([this] { work(); });
  }
  proxy(const proxy&) = delete;
  proxy& operator=(const proxy&) = delete;
  ~proxy() {
    ending_ = true;
    wake();
    thread_.join();
    for (const pair& p : pairs_) close(p);
    ::close(wake_[0]);
    ::close(wake_[1]);
  }

  std::uint16_t port() const { return listening_.port(); }
  std::size_t connections() const { return accepted_; }

  /// The address of a filter on the server, through this proxy.
  bloomery::redis_address address(const std::string& name = "x") const {
    bloomery::redis_address a;
    a.endpoints = {{"127.0.0.1", port()}};
    a.name = name;
    return a;
  }

  /// Closes all connections immediately.
  void cut() {
    const std::size_t before = cuts_done_;
    cut_ = true;
    wake();
    while (cuts_done_ == before) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  /// Closes a connection after `count` more bytes from the server to the client; -1: never. The server has then
  /// executed commands whose replies the client does not receive.
  void cut_after_answers(std::int64_t count) { answers_until_cut_ = count; }

  /// Closes a connection after `count` more bytes to the server.
  void cut_after_questions(std::int64_t count) { questions_until_cut_ = count; }

  /// Runs `act` once, in the proxy's thread, before the server receives a request that contains this text.
  void before(std::string text, std::function<void()> act) { watch({std::move(text), std::move(act), std::nullopt}); }

  /// Replaces, once, the reply to a request that contains this text; if `answer` is empty, closes the connection
  /// instead. The server still executes the request. `act` as above.
  void instead_of_answer_to(std::string text, std::string answer, std::function<void()> act = nullptr) {
    watch({std::move(text), std::move(act), std::move(answer)});
  }

  /// Whether the action of before() or instead_of_answer_to() has run.
  bool has_acted() const { return acted_; }

  /// Forwards nothing and closes nothing.
  void stop(bool stopped = true) {
    stopped_ = stopped;
    wake();
  }

  /// Delays each portion by `delay`, and limits it to `portion` bytes.
  void slow(std::chrono::milliseconds delay, std::size_t portion) {
    portion_ = portion;
    delay_ms_ = static_cast<int>(delay.count());
  }

 private:
  struct pair {
    int client;
    int server;
  };

  struct watched {
    std::string text;
    std::function<void()> act;
    std::optional<std::string> answer;
  };

  void watch(watched w) {
    const std::lock_guard lock(watching_);
    watched_ = std::move(w);
    acted_ = false;
  }

  std::optional<watched> take_watched(std::string_view buffer) {
    const std::lock_guard lock(watching_);
    if (!watched_ || buffer.find(watched_->text) == buffer.npos) return std::nullopt;
    return std::exchange(watched_, std::nullopt);
  }

  // The server's answer is taken away. False: the connection is over.
  bool answer_instead(const pair& p, const std::string& answer) {
    char buffer[65536];
    const bool answered = ::recv(p.server, buffer, sizeof buffer, 0) > 0;
    acted_ = answered;
    return answered && !answer.empty() &&
           ::send(p.client, answer.data(), answer.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(answer.size());
  }

  void wake() {
    if (::write(wake_[1], "x", 1) != 1) throw std::runtime_error("no pipe");
  }

  static void close(const pair& p) {
    ::close(p.client);
    ::close(p.server);
  }

  // False: the connection is over.
  bool forward(int from, int to, std::atomic<std::int64_t>& until_cut, bool question) {
    std::vector<char> buffer(std::min<std::size_t>(portion_, 65536));
    const ssize_t got = ::recv(from, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0) return false;
    if (const int delay = delay_ms_; delay > 0) std::this_thread::sleep_for(std::chrono::milliseconds(delay));
    std::optional<watched> found;
    if (question) found = take_watched({buffer.data(), static_cast<std::size_t>(got)});
    if (found && found->act) {
      found->act();
      acted_ = true;
    }
    std::int64_t pass = got;
    bool last = false;
    if (until_cut >= 0) {
      last = pass >= until_cut;
      pass = std::min<std::int64_t>(pass, until_cut);
      until_cut = last ? std::int64_t{-1} : until_cut - pass;
    }
    for (std::int64_t sent = 0; sent < pass;) {
      const ssize_t n = ::send(to, buffer.data() + sent, static_cast<std::size_t>(pass - sent), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      sent += n;
    }
    if (found && found->answer) return answer_instead({from, to}, *found->answer);
    return !last;
  }

  void work() {
    std::vector<pollfd> polled;
    while (!ending_) {
      polled.clear();
      polled.push_back({wake_[0], POLLIN, 0});
      const bool stopped = stopped_;
      if (!stopped) polled.push_back({listening_.fd(), POLLIN, 0});
      if (!stopped) {
        for (const pair& p : pairs_) {
          polled.push_back({p.client, POLLIN, 0});
          polled.push_back({p.server, POLLIN, 0});
        }
      }
      if (::poll(polled.data(), polled.size(), 1000) < 0) continue;
      if ((polled[0].revents & POLLIN) != 0) {
        char buffer[64];
        if (::read(wake_[0], buffer, sizeof buffer) < 0) continue;
      }
      if (cut_.exchange(false)) {
        for (const pair& p : pairs_) close(p);
        pairs_.clear();
        ++cuts_done_;
        continue;
      }
      if (stopped) continue;
      const std::size_t before = pairs_.size();
      std::vector<pair> left;
      for (std::size_t i = 0; i < before; ++i) {
        const pair p = pairs_[i];
        bool open = true;
        if (polled[2 + 2 * i].revents != 0) open = forward(p.client, p.server, questions_until_cut_, true);
        if (open && polled[3 + 2 * i].revents != 0) open = forward(p.server, p.client, answers_until_cut_, false);
        if (open) {
          left.push_back(p);
        } else {
          close(p);
        }
      }
      pairs_ = left;
      if (polled[1].revents != 0) accept();
    }
  }

  void accept() {
    const int client = ::accept4(listening_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    ++accepted_;
    const int server = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, server_.data(), std::min(server_.size(), sizeof address.sun_path - 1));
    if (::connect(server, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      ::close(client);
      ::close(server);
      return;
    }
    pairs_.push_back({client, server});
  }

  std::string server_;
  loopback_listener listening_{16};
  int wake_[2] = {-1, -1};
  std::atomic<bool> ending_ = false;
  std::atomic<bool> cut_ = false;
  std::atomic<bool> stopped_ = false;
  std::atomic<int> delay_ms_ = 0;
  std::atomic<std::size_t> portion_ = 65536;
  std::atomic<std::int64_t> answers_until_cut_ = -1;
  std::atomic<std::int64_t> questions_until_cut_ = -1;
  std::atomic<std::size_t> accepted_ = 0;
  std::atomic<std::size_t> cuts_done_ = 0;
  std::mutex watching_;
  std::optional<watched> watched_;
  std::atomic<bool> acted_ = false;
  std::vector<pair> pairs_;
  std::thread thread_;
};

}  // namespace bloomery_tests
