// Base class of inspections: a polling thread and the state it read last.
#pragma once

#include "playground/inspection.hpp"
#include "playground/json.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace bloomery::playground {

/// The hint for errors of the filter itself.
inline constexpr const char* looked_for_again = "put the filter back: it is looked for again every second";

/// A derived class implements read_if_changed() and calls start() at the end of its constructor and end() at the
/// beginning of its destructor.
class watched : public inspection {
 public:
  const std::string& name() const noexcept override { return name_; }
  const char* kind() const noexcept override { return kind_; }
  json look(std::uint64_t after, std::chrono::milliseconds most) override;
  void stop() override;

 protected:
  watched(std::string name, const char* kind);

  void start();
  void end();
  bool ending();

  /// Reads the filter once and publishes changes. The caller publishes an exception as the present problem.
  virtual void read_if_changed() = 0;

  /// Publishes a reading, unless it equals the last one: an idle writer, too, causes repeated readings.
  /// @param at  time of the change if known independently of this reading, in milliseconds since 1970
  void publish(json facts, std::optional<std::int64_t> at = {});

  /// Publishes the progress of the first reading. Later readings keep the earlier state visible.
  void progress(double done);

 private:
  void poll();

  // Null: the problem is over, and the known state is valid again.
  void fail(json problem);
  void notify();

  std::string name_;
  const char* kind_;
  std::mutex turn_;
  std::condition_variable changed_;
  json known_;    // null: never read
  json problem_;  // null: none
  double done_ = 0;
  std::int64_t changed_at_ = 0;  // milliseconds since 1970
  std::int64_t failed_at_ = 0;
  std::uint64_t version_ = 1;
  bool stop_ = false;
  std::thread reader_;
};

}  // namespace bloomery::playground
