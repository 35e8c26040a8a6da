// The part that all inspections share: a thread that reads the filter again and again, and what it read last.
#pragma once

#include "playground/inspect/inspection.hpp"
#include "playground/json/json.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace bloomery::playground {

/// The hint of errors of the filter itself.
inline constexpr const char* looked_for_again = "put the filter back: it is looked for again every second";

/// A subclass reads its filter in read_if_changed(). It calls start() at the end of its constructor and end() at the
/// begin of its destructor.
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

  /// Reads the filter once, and publishes what has changed. An exception is published as the present problem.
  virtual void read_if_changed() = 0;

  /// A writer that is at work makes us read again, also when it waits for keys: that is no news.
  /// @param at  when it was changed, if something other than this reading tells; milliseconds since 1970
  void publish(json facts, std::optional<std::int64_t> at = {});

  /// Of the first time: the earlier state stays visible while it is read again.
  void progress(double done);

 private:
  void look_again_and_again();

  // Null: nothing is wrong any more, and what was known is true again.
  void fail(json problem);
  void news();

  std::string name_;
  const char* kind_;
  std::mutex turn_;
  std::condition_variable changed_;
  json known_;    // null: it was never read
  json problem_;  // null: none
  double done_ = 0;
  std::int64_t changed_at_ = 0;  // milliseconds since 1970
  std::int64_t failed_at_ = 0;
  std::uint64_t version_ = 1;
  bool stop_ = false;
  std::thread reader_;
};

}  // namespace bloomery::playground
