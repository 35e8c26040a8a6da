// A fixed number of threads that serve connections one after another.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace bloomery::playground::http {

class worker_pool {
 public:
  /// @param threads       how many connections are served at once
  /// @param most_waiting  connections that may wait for a thread
  /// @param serve         takes over the socket of a connection; called by all threads
  worker_pool(std::size_t threads, std::size_t most_waiting, std::function<void(int socket)> serve);
  ~worker_pool();  ///< stops
  worker_pool(const worker_pool&) = delete;
  worker_pool& operator=(const worker_pool&) = delete;

  /// Hands over a connection. Waits while too many wait already.
  void add(int socket);

  /// Whether connections wait that no thread is free for.
  bool crowded() const;

  /// Ends when every connection handed over has been served. Further ones are closed.
  void stop();

 private:
  void work();

  const std::size_t most_waiting_;
  const std::function<void(int)> serve_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;  // a connection, or the end
  std::condition_variable taken_;    // a connection, or the end
  std::deque<int> waiting_;
  std::size_t free_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace bloomery::playground::http
