// The server's end of its connections: none is waited for longer than the others can bear.
//
// The library that parses HTTP gives every connection a thread and waits for every single byte. Here a request's head is
// read before it is parsed, all of it within a time; bodies and answers have to move on; and while others wait for a
// thread, who says nothing loses his.
#pragma once

#include <httplib.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace bloomery::playground {

/// Threads that answer connections one after another.
class crew final : public httplib::TaskQueue {
 public:
  explicit crew(std::size_t threads);
  void enqueue(std::function<void()> task) override;
  void shutdown() override;  ///< when all tasks are done

  /// Whether connections wait for a thread.
  bool crowded() const;

 private:
  void work();

  mutable std::mutex turn_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::size_t free_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

/// A connection. Closes its socket in the end.
class visit final : public httplib::Stream {
 public:
  static constexpr std::size_t most_head = 16'384;  ///< bytes, from the request's line to the empty one

  /// @param hurry  whether others wait
  /// @param over   whether the server ends
  visit(socket_t socket, std::function<bool()> hurry, const std::atomic<bool>& over);
  ~visit() override;
  visit(const visit&) = delete;
  visit& operator=(const visit&) = delete;

  enum class head { complete, none, too_long };

  /// Reads the next request's head, so that parsing it waits for nothing.
  /// @param patience  how long the request may not have come
  head read_head(std::chrono::milliseconds patience);

  /// The head has been parsed: a body of so many bytes follows.
  void begin_body(std::uint64_t bytes);

  /// Whether the connection stands where the next request begins.
  bool at_next_request() const noexcept { return in_body_ && body_left_ == 0; }

  /// Lets the other side read the answer that it has got, though nobody reads what it still sends.
  void part();

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* to, std::size_t size) override;
  ssize_t write(const char* from, std::size_t size) override;
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  using clock = std::chrono::steady_clock;

  // Waits until the socket is ready; false: too long. Who has moved so many bytes since `start` has the time for them.
  bool wait(short events, clock::time_point start, std::uint64_t bytes, std::chrono::milliseconds patience) const;
  bool receive();  // more bytes, into what is held

  socket_t socket_;
  std::function<bool()> hurry_;
  const std::atomic<bool>& over_;
  std::string held_;  // received, and not yet read
  std::size_t read_ = 0;
  bool in_body_ = false;
  std::uint64_t body_left_ = 0;
  std::uint64_t received_ = 0;  // of this request
  std::uint64_t sent_ = 0;
  clock::time_point begun_;
  clock::time_point answered_;
};

/// The header in which a request's Accept-Encoding is found.
inline constexpr const char* accepted_encodings = "Bloomery-Accept-Encoding";

/// httplib's server with connections as above.
class http_server final : public httplib::Server {
 public:
  explicit http_server(std::size_t threads);

  /// Waiting connections end.
  void end() { over_ = true; }

 private:
  bool process_and_close_socket(socket_t socket) override;

  std::atomic<crew*> crew_{nullptr};  // of the library, while it listens
  std::atomic<bool> over_{false};
};

}  // namespace bloomery::playground
