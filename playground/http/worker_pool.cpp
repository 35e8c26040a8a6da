#include "playground/http/worker_pool.hpp"

#include <unistd.h>

#include <utility>

namespace bloomery::playground::http {

worker_pool::worker_pool(std::size_t threads, std::size_t most_waiting, std::function<void(int socket)> serve)
    : most_waiting_(most_waiting), serve_(std::move(serve)) {
  threads_.reserve(threads);
  try {
    while (threads_.size() < threads) threads_.emplace_back([this] { work(); });
  } catch (...) {
    stop();
    throw;
  }
}

worker_pool::~worker_pool() { stop(); }

void worker_pool::add(int socket) {
  std::unique_lock lock(mutex_);
  taken_.wait(lock, [&] { return stopped_ || waiting_.size() < most_waiting_; });
  if (stopped_) {
    ::close(socket);
    return;
  }
  waiting_.push_back(socket);
  arrived_.notify_one();
}

bool worker_pool::crowded() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size() > free_;
}

void worker_pool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  arrived_.notify_all();
  taken_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void worker_pool::work() {
  for (;;) {
    int socket = -1;
    {
      std::unique_lock lock(mutex_);
      ++free_;
      arrived_.wait(lock, [&] { return stopped_ || !waiting_.empty(); });
      --free_;
      if (waiting_.empty()) return;
      socket = waiting_.front();
      waiting_.pop_front();
    }
    taken_.notify_one();
    serve_(socket);
  }
}

}  // namespace bloomery::playground::http
