#include "signals.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace bloomery::cli {
namespace {

std::atomic<int> received{0};
int wake[2] = {-1, -1};

void on_stop(int signal) {
  if (received.exchange(signal) != 0) _exit(128 + signal);
  const int before = errno;
  const char byte = 0;
  [[maybe_unused]] const ssize_t ignored = ::write(wake[1], &byte, 1);
  errno = before;
}

void on_bus_error(int) {
  static constexpr char text[] = "bloomery: a mapped filter file became shorter or unreadable, or its disk is full\n";
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text, sizeof text - 1);
  _exit(2);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);  // no SA_RESTART: a blocked read must wake
}

// nohup and shells' background jobs start us with a signal ignored: it stays so.
void handle_unless_ignored(int signal) {
  struct sigaction inherited {};
  ::sigaction(signal, nullptr, &inherited);
  if (inherited.sa_handler != SIG_IGN) handle(signal, on_stop);
}

}  // namespace

void install_signal_handlers() {
  if (::pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0) std::abort();
  handle_unless_ignored(SIGINT);
  handle_unless_ignored(SIGTERM);
  handle_unless_ignored(SIGHUP);
  handle(SIGBUS, on_bus_error);
  handle(SIGPIPE, SIG_IGN);
  handle(SIGXFSZ, SIG_IGN);
}

int stop_signal() noexcept { return received.load(); }
int stop_descriptor() noexcept { return wake[0]; }

void point_of_no_return() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) handle(signal, SIG_IGN);
  if (stop_signal() != 0) throw interrupted();
}

void die_of(int signal) {
  handle(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace bloomery::cli
