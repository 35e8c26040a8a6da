// A scripted server, for replies that a real server cannot be made to send: a function returns the reply to each
// command.
#pragma once

#include "redis/servers.hpp"

#include <bloomery/redis/address.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>

namespace bloomery_tests {

/// Serves any number of connections to 127.0.0.1:port() in its own thread.
class stage {
 public:
  using words = std::vector<std::string>;

  /// Returns the reply to a command on a connection (numbered from 0): bytes, or none to send nothing; nullopt closes
  /// the connection.
  using actor = std::function<std::optional<std::string>(std::size_t connection, const words& command)>;

  /// @param repeats  sends each reply again and again, with this pause, until the connection is closed
  explicit stage(actor a, std::optional<std::chrono::milliseconds> repeats = {})
      : actor_(std::move(a)), repeats_(repeats) {
    if (::pipe(wake_) != 0) throw std::runtime_error("no stage");
    thread_ = std::thread([this] { work(); });
  }
  stage(const stage&) = delete;
  stage& operator=(const stage&) = delete;
  ~stage() {
    ending_ = true;
    ::close(wake_[1]);
    thread_.join();
    for (const guest& g : guests_) ::close(g.fd);
    ::close(wake_[0]);
  }

  std::uint16_t port() const { return listening_.port(); }
  std::size_t connections() const { return accepted_; }

  bloomery::redis_address address(bool cluster = false) const {
    bloomery::redis_address a;
    a.endpoints = {{"127.0.0.1", port()}};
    a.cluster = cluster;
    a.name = "f";
    return a;
  }

 private:
  struct guest {
    int fd;
    std::size_t number;
    std::string bytes = {};
  };

  // Takes a complete command from the front of the bytes; nullopt if there is none yet.
  static std::optional<words> taken_from(std::string& received) {
    std::size_t at = 0;
    const auto number = [&]() -> std::optional<std::size_t> {
      const std::size_t end = received.find("\r\n", at);
      if (end == std::string::npos) return std::nullopt;
      const std::size_t value = std::stoul(received.substr(at + 1, end - at - 1));
      at = end + 2;
      return value;
    };
    const std::optional<std::size_t> count = number();
    words found;
    while (count && found.size() < *count) {
      const std::optional<std::size_t> length = number();
      if (!length || received.size() < at + *length + 2) return std::nullopt;
      found.push_back(received.substr(at, *length));
      at += *length + 2;
    }
    if (!count) return std::nullopt;
    received.erase(0, at);
    return found;
  }

  // Returns false if the connection has ended.
  bool serve(guest& g) {
    char some[4096];
    const ssize_t got = ::recv(g.fd, some, sizeof some, 0);
    if (got <= 0) return false;
    g.bytes.append(some, static_cast<std::size_t>(got));
    while (const std::optional<words> command = taken_from(g.bytes)) {
      const std::optional<std::string> answer = actor_(g.number, *command);
      if (!answer) return false;
      do {
        for (std::size_t sent = 0; sent < answer->size();) {
          const ssize_t n = ::send(g.fd, answer->data() + sent, answer->size() - sent, MSG_NOSIGNAL);
          if (n <= 0) return false;
          sent += static_cast<std::size_t>(n);
        }
        if (repeats_) std::this_thread::sleep_for(*repeats_);
      } while (repeats_ && !ending_);
    }
    return true;
  }

  void work() {
    std::vector<pollfd> polled;
    while (true) {
      polled = {{wake_[0], POLLIN, 0}, {listening_.fd(), POLLIN, 0}};
      for (const guest& g : guests_) polled.push_back({g.fd, POLLIN, 0});
      if (::poll(polled.data(), polled.size(), -1) < 0) continue;
      if (polled[0].revents != 0) return;
      std::vector<guest> left;
      for (std::size_t i = 0; i < guests_.size(); ++i) {
        if (polled[2 + i].revents == 0 || serve(guests_[i])) {
          left.push_back(std::move(guests_[i]));
        } else {
          ::close(guests_[i].fd);
        }
      }
      guests_ = std::move(left);
      if (polled[1].revents == 0) continue;
      const int fd = ::accept4(listening_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
      if (fd >= 0) guests_.push_back({fd, accepted_++});
    }
  }

  actor actor_;
  std::optional<std::chrono::milliseconds> repeats_;
  std::atomic<bool> ending_ = false;
  loopback_listener listening_{16};
  int wake_[2] = {-1, -1};
  std::atomic<std::size_t> accepted_ = 0;
  std::vector<guest> guests_;
  std::thread thread_;
};

/// The reply to CLUSTER SLOTS of a cluster in which these ports of 127.0.0.1 have all slots, the master first.
inline std::string all_slots_at(const std::vector<std::uint16_t>& ports) {
  std::string text = "*1\r\n*" + std::to_string(2 + ports.size()) + "\r\n:0\r\n:16383\r\n";
  for (const std::uint16_t port : ports) text += "*2\r\n$9\r\n127.0.0.1\r\n:" + std::to_string(port) + "\r\n";
  return text;
}

}  // namespace bloomery_tests
