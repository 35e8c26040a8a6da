// Listens on a TCP port and serves its connections with a pool of threads.
#pragma once

#include "playground/http/worker_pool.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace bloomery::playground::http {

class listener {
 public:
  /// Takes the port. Clients can connect from now on, and are served from start() on.
  /// @param host  a name or an address of this machine
  /// @param port  0: any that is free
  /// @throws error  invalid_argument: no such host; io: the port is in use, or not allowed
  listener(const std::string& host, std::uint16_t port);
  ~listener();  ///< stops
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;

  std::uint16_t port() const noexcept { return port_; }

  /// Calls `serve` for every connection from now on, in one of so many threads. `serve` has to close the socket.
  /// @throws error              io: the port is in use
  /// @throws std::system_error  no room for so many threads
  void start(std::size_t threads, std::function<void(int socket)> serve);

  /// Whether connections wait that no thread is free for. For `serve` to ask.
  bool crowded() const { return workers_->crowded(); }

  /// Closes the port. Ends when all accepted connections have been served.
  void stop();

 private:
  void accept_all();

  std::string address_;  // "127.0.0.1:80", for errors
  int socket_ = -1;
  int wake_ = -1;  // becomes readable when the listener stops
  std::uint16_t port_ = 0;
  std::unique_ptr<worker_pool> workers_;
  std::thread thread_;
};

}  // namespace bloomery::playground::http
