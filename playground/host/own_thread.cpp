#include "playground/host/own_thread.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace bloomery::playground {
namespace {

constexpr auto between_updates = std::chrono::seconds(1);

class updated_inspection final : public inspection {
 public:
  explicit updated_inspection(std::unique_ptr<watched> filter) : filter_(std::move(filter)) {
    filter_->when_news([this](std::uint64_t version) {
      {
        const std::lock_guard lock(turn_);
        version_ = version;
      }
      changed_.notify_all();
    });
    thread_ = std::thread([this] { run(); });
  }
  ~updated_inspection() override {
    updated_inspection::stop();
    thread_.join();
  }

  const std::string& name() const noexcept override { return filter_->name(); }
  const char* kind() const noexcept override { return filter_->kind(); }
  json ask(const key_list& keys) override { return filter_->ask(keys); }
  json past(std::int64_t after) override { return filter_->past(after); }

  json look(std::uint64_t after, std::chrono::milliseconds most) override {
    {
      std::unique_lock lock(turn_);
      changed_.wait_for(lock, most, [&] { return stop_ || version_ > after; });
    }
    return filter_->look(after, most);
  }

  void stop() override {
    {
      const std::lock_guard lock(turn_);
      stop_ = true;
    }
    filter_->stop();
    changed_.notify_all();
  }

 private:
  void run() {
    for (;;) {
      const auto begun = std::chrono::steady_clock::now();
      const bool answered = filter_->update();
      // No more than a fifth of a processor. Waiting for a server that does not answer uses none.
      const auto used =
          answered ? std::chrono::steady_clock::now() - begun : std::chrono::steady_clock::duration::zero();
      const auto rest = std::max<std::chrono::steady_clock::duration>(between_updates, 4 * used);
      std::unique_lock lock(turn_);
      if (changed_.wait_for(lock, rest, [&] { return stop_; })) return;
    }
  }

  const std::unique_ptr<watched> filter_;
  std::mutex turn_;  // never held during a call to filter_, which calls when_news() under its own lock
  std::condition_variable changed_;
  std::uint64_t version_ = watched::first_version;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace

job_thread::job_thread(jobs& queue) : queue_(queue) {
  queue_.when_added([this] {
    {
      const std::lock_guard lock(turn_);
      added_ = true;
    }
    changed_.notify_all();
  });
  thread_ = std::thread([this] { run(); });
}

job_thread::~job_thread() {
  queue_.when_added({});
  {
    const std::lock_guard lock(turn_);
    stop_ = true;
  }
  queue_.cancel_all();
  changed_.notify_all();
  thread_.join();
}

void job_thread::run() {
  std::unique_lock lock(turn_);
  while (!stop_) {
    added_ = false;
    lock.unlock();
    const bool has_run = queue_.run_one();
    lock.lock();
    if (!has_run) changed_.wait(lock, [&] { return stop_ || added_; });
  }
}

std::unique_ptr<inspection> in_own_thread(std::unique_ptr<watched> filter) {
  return std::make_unique<updated_inspection>(std::move(filter));
}

}  // namespace bloomery::playground
