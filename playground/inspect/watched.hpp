// Base class of inspections: the state read last, and its version.
#pragma once

#include "playground/inspect/history.hpp"
#include "playground/inspect/inspection.hpp"
#include "playground/json/json.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace bloomery::playground {

/// The hint for errors of the filter itself.
inline constexpr const char* looked_for_again = "restore the filter; the playground checks for it every second";

/// A derived class implements read_if_changed(). The base class starts no thread: the owner calls update() from time to
/// time, or gives the object to in_own_thread() (playground/host/own_thread.hpp).
class watched : public inspection {
 public:
  const std::string& name() const noexcept override { return name_; }
  const char* kind() const noexcept override { return kind_; }
  json look(std::uint64_t after, std::chrono::milliseconds most) override;  ///< at once
  json past(std::int64_t after) override;
  void stop() override;

  /// Reads the filter if it has changed, and publishes what it finds, or what is wrong. Not from two threads at once.
  /// @returns  false: its server did not answer
  bool update();

  /// Calls `call` with each new version, in the thread that updates; it must not use this inspection.
  void when_news(std::function<void(std::uint64_t version)> call);

  static constexpr std::uint64_t first_version = 1;  ///< before anything was read

 protected:
  watched(std::string name, const char* kind);

  bool ending();

  /// Reads the filter once and publishes changes. The caller publishes an exception as the present problem.
  virtual void read_if_changed() = 0;

  /// Publishes a reading, unless it equals the last one: an idle writer, too, causes repeated readings.
  /// @param at  time of the change if known independently of this reading, in milliseconds since 1970
  void publish(json facts, std::optional<std::int64_t> at = {});

  /// Publishes the progress of the first reading. Later readings keep the earlier state visible.
  void progress(double done);

 private:
  // Null: the problem is over, and the known state is valid again.
  void fail(json problem);
  void remember(bool readable);
  void notify();

  std::string name_;
  const char* kind_;
  std::mutex turn_;
  std::function<void(std::uint64_t)> when_news_;
  json known_;    // null: never read
  json problem_;  // null: none
  history history_;
  double done_ = 0;
  std::int64_t changed_at_ = 0;  // milliseconds since 1970
  std::int64_t failed_at_ = 0;
  std::uint64_t version_ = first_version;
  bool stop_ = false;
};

}  // namespace bloomery::playground
