// A child process: a shell command with a pipe to its standard input and a pipe from its standard output.
//
// The child and its descendants form a process group. Its standard error is that of this process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

namespace bloomery::cli {

class child_process {
 public:
  /// Starts `sh -c COMMAND`. Our ends of the pipes do not block. @throws error io
  explicit child_process(const std::string& command);
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  ~child_process();  ///< kills the process group, and waits for the child

  int input() const noexcept { return input_; }    ///< to its standard input; -1 after close_input()
  int output() const noexcept { return output_; }  ///< from its standard output
  void close_input() noexcept;

  /// Waits until the child ends. False if it still runs after this time, or on a stop signal.
  bool wait(std::chrono::milliseconds most) const;

  /// "exited with status 3", "was ended by signal 9 (Killed)", "is still running". Does not wait.
  std::string ending() const;

  /// 0 to 255; none while it runs, and if a signal ended it.
  std::optional<int> exit_code() const;

 private:
  pid_t process_ = -1;
  int input_ = -1;
  int output_ = -1;
};

}  // namespace bloomery::cli
