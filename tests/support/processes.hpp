// Child processes for tests, in lockstep with the test.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <utility>

namespace bloomery_tests {

/// Runs work() -> int in a child process; its result is the exit status, 99 if it throws.
template <class Work>
pid_t start_child(Work work) {
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child > 0) return child;
  int status = 99;
  try {
    status = work();
  } catch (...) {
  }
  ::_exit(status);
}

/// The child's exit status, or 128 + the signal that ended it, as in a shell.
inline int wait_for(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw std::runtime_error("cannot wait for the child");
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

template <class Work>
int status_of_child(Work work) {
  return wait_for(start_child(std::move(work)));
}

/// One process says it, another one waits for it.
class message {
 public:
  message() {
    if (::pipe(ends_) != 0) throw std::runtime_error("cannot make a pipe");
  }
  message(const message&) = delete;
  message& operator=(const message&) = delete;
  ~message() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

  void say() const {
    if (::write(ends_[1], "x", 1) != 1) std::abort();
  }
  void wait() const {
    char byte = 0;
    if (::read(ends_[0], &byte, 1) != 1) std::abort();
  }

 private:
  int ends_[2];
};

}  // namespace bloomery_tests
